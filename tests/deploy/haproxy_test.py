"""deploy/haproxy/haproxy.cfg with stand-ins for the replicas: who gets which request, what is sent
again, and what is not."""

import collections
import grp
import http.client
import http.server
import json
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

CONFIG = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "haproxy" / "haproxy.cfg"
PATIENCE = 300  # seconds: a hang; on a busy machine, too, what is well takes far less


class Replica(http.server.ThreadingHTTPServer):
    """Replies with its number, or as it is told."""

    daemon_threads = True

    def __init__(self, number):
        # Bound without listening: nobody else gets the port while this one does not listen there.
        self.keeper = socket.socket()
        self.keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.keeper.bind(("127.0.0.1", 0))
        self.number = number
        self.start()

    def start(self):
        super().__init__(self.keeper.getsockname(), Handler)
        self.health, self.act = 200, "reply"
        self.seen = []  # paths, without /health
        self.may_end = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # HAProxy closes connections as it likes


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        replica = self.server
        if self.path == "/health":
            return self.reply(replica.health, b"")
        act = replica.act  # before the test sees the request and changes it
        replica.seen.append(self.path)
        if act == "close":
            self.close_connection = True
            return
        if act == "wait":
            replica.may_end.wait(PATIENCE)
        self.reply(503 if act == "503" else 200, b"%d" % replica.number)

    do_POST = do_DELETE = do_GET


class HAProxy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.replicas = [Replica(i + 1) for i in range(3)]
        env = {f"INLAY_REPLICA_{r.number}": f"127.0.0.1:{r.server_port}" for r in cls.replicas}
        cls.admin = os.path.join(folder.name, "socket")
        listener = socket.create_server(("127.0.0.1", 0))
        cls.port = listener.getsockname()[1]
        cls.log = pathlib.Path(folder.name, "log")
        log = cls.log.open("w")
        cls.haproxy = subprocess.Popen(
            ["haproxy", "-db", "-f", CONFIG], pass_fds=[listener.fileno()], stdout=log, stderr=log,
            env=dict(os.environ, **env, INLAY_BIND=f"fd@{listener.fileno()}",
                     INLAY_HAPROXY_SOCKET=cls.admin,
                     INLAY_HAPROXY_USER=pwd.getpwuid(os.getuid()).pw_name,
                     INLAY_HAPROXY_GROUP=grp.getgrgid(os.getgid()).gr_name))
        listener.close()
        log.close()
        cls.addClassCleanup(cls.haproxy.wait)
        cls.addClassCleanup(cls.haproxy.kill)

    def setUp(self):
        for replica in self.replicas:
            replica.health, replica.act, replica.seen = 200, "reply", []
            replica.may_end.clear()
        # All of them are up, as HAProxy sees it.
        self.wait_for(lambda: len({self.ask("GET", "/v1/models")[1] for _ in range(9)}) == 3)
        for replica in self.replicas:
            replica.seen = []

    def wait_for(self, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, "it does not come about")
            time.sleep(0.02)

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body and json.dumps(body), headers or {})
            reply = connection.getresponse()
            text = reply.read().decode()
            if reply.status == 200:
                self.assertEqual(reply.getheader("X-Inlay-Replica"), "r" + text)
            return reply.status, text
        finally:
            connection.close()

    def is_quiet(self):
        """Whether HAProxy counts no request as running: the last one, too, has ended there."""
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.admin)
            s.sendall(b"show stat\n")
            rows = s.makefile().read().splitlines()
        return all(row.split(",")[4] == "0" for row in rows if ",BACKEND," in row)

    def replica_of(self, path, body, headers=None):
        self.wait_for(self.is_quiet)  # else the load counts, too
        status, text = self.ask("POST", path, body, headers)
        self.assertEqual(status, 200)
        return text

    def of_session(self, name):
        return self.replicas[int(self.replica_of(f"/v1/sessions/{name}/turns", {})) - 1]

    def seen(self):
        return sum(len(replica.seen) for replica in self.replicas)

    def test_requests_follow_their_session(self):
        used = collections.Counter()
        for i in range(60):
            path = f"/v1/sessions/name-{i}"
            first = self.replica_of(path + "/turns", {"content": "a" * i})
            used[first] += 1
            for method, rest in [("GET", ""), ("GET", "?tokens=1"), ("GET", "/running"),
                                 ("POST", "/stop"), ("POST", "/turns"), ("DELETE", "")]:
                self.assertEqual(self.ask(method, path + rest), (200, first))
        self.assertEqual(len(used), 3)
        self.assertGreater(min(used.values()), 6, used)

    def test_requests_follow_what_their_conversation_begins_with(self):
        def user(text):
            return {"role": "user", "content": text}

        def blocks(text):
            return [{"type": "text", "text": text}]

        system = {"role": "system", "content": "be brief"}
        more = [{"role": "assistant", "content": "yes"}, user("and then?")]
        for path, make in [
                ("/v1/chat/completions", lambda t, m: {"model": "x", "messages": [user(t), *m]}),
                ("/v1/chat/completions", lambda t, m: {"messages": [system, user(t), *m]}),
                ("/v1/chat/completions", lambda t, m: {"messages": [system, user(blocks(t)), *m]}),
                ("/v1/messages", lambda t, m: {"messages": [user(t), *m], "system": "be brief"}),
                ("/v1/messages", lambda t, m: {"system": blocks("be brief"),
                                               "messages": [user(blocks(t)), *m]}),
                ("/v1/messages", lambda t, m: {"system": blocks(f"x-anthropic-billing-header: {m}"),
                                               "messages": [user(t), *m]}),
                ("/v1/responses", lambda t, m: {"input": t}),
                ("/v1/responses", lambda t, m: {"input": [user(t), *m], "instructions": "i"}),
                ("/v1/responses", lambda t, m: {"input": [user(blocks(t)), *m]}),
                ("/v1/completions", lambda t, m: {"prompt": t + "x" * 300 + str(m)})]:
            used = set()
            for i in range(24):
                first = self.replica_of(path, make(f"question {i}", []))
                used.add(first)
                for _ in range(2):
                    self.assertEqual(self.replica_of(path, make(f"question {i}", more)), first)
            self.assertEqual(len(used), 3, path)
        # Of Claude Code the lines for who bills and the marks of what is cached change with each turn.
        used = set()
        for i in range(24):
            def claude(turn, after):
                mark = {"cache_control": {"type": "ephemeral"}}
                billing = [{"type": "text", "text": f"x-anthropic-billing-header: cch={turn};"}]
                first = [*blocks("<system-reminder>"), {**blocks(f"question {i}")[0], **after}]
                return {"messages": [{"role": "user", "content": first}, *more[:2 * turn]],
                        "system": [*billing, {**blocks("You are")[0], **mark}]}
            places = {self.replica_of("/v1/messages", claude(turn, after))
                      for turn, after in enumerate([{"cache_control": {"type": "ephemeral"}}, {}])}
            self.assertEqual(len(places), 1)
            used |= places
        self.assertEqual(len(used), 3)
        # What is longer than is looked into still goes by its beginning.
        long = [user("z" * 50_000) for _ in range(4)]
        place = self.replica_of("/v1/chat/completions", {"messages": [user("hello")]})
        self.assertEqual(
            self.replica_of("/v1/chat/completions", {"messages": [user("hello"), *long]}), place)
        # By the key as well.
        places = {self.replica_of("/v1/chat/completions", {"messages": [user("hello")]},
                                  {"Authorization": f"Bearer {i}"}) for i in range(24)}
        self.assertEqual(len(places), 3)

    def test_what_no_replica_has_replied_to_is_sent_to_another(self):
        for act in ("close", "503"):
            with self.subTest(act):
                self.setUp()
                replica = self.of_session("one")
                replica.act = act
                status, text = self.ask("POST", "/v1/sessions/one/turns", {"parent": 0})
                self.assertEqual(status, 200)
                self.assertNotEqual(text, str(replica.number))
                self.assertGreaterEqual(len(replica.seen), 2)
                for path in ("/v1/chat/completions", "/v1/messages", "/v1/completions"):
                    for i in range(9):
                        self.assertEqual(self.ask("POST", path, {"prompt": f"{i}"})[0], 200)
                self.assertEqual(self.ask("GET", "/v1/sessions/one")[0], 200)

    def test_what_is_refused_is_sent_to_another(self):
        replica = self.of_session("one")
        replica.shutdown()
        replica.server_close()
        try:
            for path in ("/v1/sessions/one/turns", "/v1/sessions/one/fork", "/v1/sessions",
                         "/v1/completions"):
                for _ in range(6):
                    self.assertEqual(self.ask("POST", path, {"parent": 0})[0], 200, path)
        finally:
            replica.start()

    def test_what_must_not_be_done_twice_is_sent_once(self):
        for act, expected in (("close", 502), ("503", 503)):
            for replica in self.replicas:
                replica.act = act
            for method, path in [("POST", "/v1/sessions"), ("POST", "/v1/sessions/one/fork"),
                                 ("POST", "/v1/sessions/one/rewind"),
                                 ("POST", "/v1/sessions/one/load"), ("POST", "/v1/sessions/one/stop"),
                                 ("DELETE", "/v1/sessions/one")]:
                before = self.seen()
                self.assertEqual(self.ask(method, path, {})[0], expected, path)
                self.assertEqual(self.seen(), before + 1, path)

    def test_a_replica_that_shuts_down_gets_nothing_new_and_ends_what_it_has(self):
        replica = self.of_session("one")
        replica.act = "wait"
        results = []
        running = threading.Thread(target=lambda: results.append(
            self.ask("POST", "/v1/sessions/one/turns", {})))
        running.start()
        self.wait_for(lambda: len(replica.seen) == 2)
        replica.health = 503
        replica.act = "reply"  # to others than the one that waits
        self.wait_for(lambda: self.gets_nothing(replica))
        self.assertNotEqual(self.ask("GET", "/v1/sessions/one")[1], str(replica.number))
        self.assertEqual(results, [])
        replica.may_end.set()
        running.join()
        self.assertEqual(results, [(200, str(replica.number))])
        replica.health = 200
        self.wait_for(lambda: self.of_session("one") is replica)

    def gets_nothing(self, replica):
        """Whether requests that are sent to all in turn do not reach it."""
        before = len(replica.seen)
        for _ in range(6):
            self.ask("GET", "/v1/models")
        return len(replica.seen) == before

    def test_bodies_are_bounded(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as s:
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 33554433\r\n\r\n")
            reply = http.client.HTTPResponse(s)
            reply.begin()
            self.assert_error(reply, 413, x_should_retry="false")

    def assert_error(self, reply, status, **headers):
        """HAProxy's own reply, as clients of OpenAI's and Anthropic's servers read it."""
        self.assertEqual(reply.status, status)
        self.assertEqual(reply.getheader("Content-Type"), "application/json")
        for name, value in headers.items():
            self.assertEqual(reply.getheader(name.replace("_", "-")), value)
        body = json.loads(reply.read())
        self.assertEqual(body["type"], "error")
        self.assertTrue(body["error"]["message"])

    def test_where_no_replica_is_up_clients_are_told_to_come_again(self):
        for replica in self.replicas:
            replica.health = 503
        self.wait_for(lambda: self.ask("GET", "/v1/models")[0] == 503)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        for path in ("/v1/models", "/v1/sessions/one"):
            connection.request("GET", path)
            self.assert_error(connection.getresponse(), 503, Retry_After="1")
        connection.close()

    def test_each_request_is_logged(self):
        self.assertEqual(self.ask("GET", "/v1/models?logged")[0], 200)
        self.wait_for(lambda: "GET /v1/models?logged" in self.log.read_text())


class RedisTunnel(unittest.TestCase):
    def test_a_name_is_asked_for_again(self):
        """redis-tls.cfg: HAProxy may begin before names are known."""
        with tempfile.TemporaryDirectory() as folder, \
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as names:
            names.bind(("127.0.0.1", 0))
            names.settimeout(PATIENCE)
            # In the place of the section that HAProxy makes of resolv.conf.
            more = pathlib.Path(folder, "names.cfg")
            more.write_text("resolvers default\n"
                            f"    nameserver here 127.0.0.1:{names.getsockname()[1]}\n")
            haproxy = subprocess.Popen(
                ["haproxy", "-db", "-q", "-f", CONFIG.with_name("redis-tls.cfg"), "-f", more],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env=dict(os.environ, INLAY_REDIS="redis.invalid:6380",
                         INLAY_REDIS_BIND=f"unix@{folder}/redis"))
            try:
                self.assertIn(b"\5redis\7invalid\0", names.recv(1000))
            finally:
                haproxy.kill()
                haproxy.wait()


if __name__ == "__main__":
    os.environ["PATH"] += ":/usr/sbin"  # where Debian has haproxy
    if shutil.which("haproxy") is None:
        print("skipped: haproxy is not installed")
        sys.exit(77)
    unittest.main()
