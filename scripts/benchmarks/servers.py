"""A server's process and its answers over HTTP, for programs that load servers."""

import asyncio
import json
import subprocess
import time

from benchmarks.programs import Failure


class Server:
    """A server's process, on a port of its own."""

    def __init__(self, command, port):
        self.port = port
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                asyncio.run(fetch(port, "GET", "/health"))
                return
            except (OSError, Failure):
                if self.process.poll() is not None:
                    words = self.process.stderr.read().strip().splitlines() or ["nothing"]
                    raise Failure(f"{command[0]} ended: {words[-1]}")
                time.sleep(0.1)
        raise Failure(f"{command[0]} did not become ready")

    def stop(self):
        self.process.terminate()
        try:
            self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()


def request_bytes(method, path, body=None):
    """A request after whose reply the connection ends."""
    text = b"" if body is None else json.dumps(body).encode()
    return (f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
            ).encode() + text


async def fetch(port, method, path, body=None):
    """The body of a whole reply."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request_bytes(method, path, body))
    data = await reader.read()
    writer.close()
    head, _, rest = data.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    if status != 200:
        raise Failure(f"{path} replied {status}: {rest[:200]!r}")
    return rest


async def stream(port, body):
    """Times of the pieces of a streamed answer, from the request on, and its last usage."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    start = time.monotonic()
    writer.write(request_bytes("POST", "/v1/completions", body))
    times, usage, status = [], {}, None
    while True:
        line = await reader.readline()
        if not line:
            break
        if status is None:
            status = int(line.split()[1])
        if status != 200:
            raise Failure(f"the answer is refused: {line + await reader.read()!r}")
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        usage = event.get("usage") or usage
        if event.get("timings"):
            usage = dict(usage, timings=event["timings"])
        if event.get("choices"):
            times.append(time.monotonic() - start)
    writer.close()
    if not times:
        raise Failure("an answer ended without a token; the server may have ended")
    return times, usage
