"""inlay-mpi against inlay: the same bytes from any number of ranks, and what ends a group.

ranks_test.py PROGRAM RANKS_PROGRAM DISTURB_LIBRARY, from the root of the sources.
"""

import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

PROGRAM, RANKS_PROGRAM, DISTURB = (os.path.abspath(path) for path in sys.argv[1:4])
BARD = "models/bard.gguf"
PATIENCE = 300  # seconds: a hang; on a busy machine, too, what is well takes far less
PROMPT = "ROMEO:\nBut soft, what light through yonder window breaks?\n" * 8
GENERATE = ["generate", "-m", BARD, "-p", "To be", "-s", "3", "--temp", "0.8", "-t", "1"]


def environment(**more):
    """No rank is bound to a processor, started over a network, or refused as root."""
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none",
                OMPI_MCA_plm="isolated", **{"INLAY_RANK_DEADLINE": str(PATIENCE), **more})


def mpirun(count, arguments, disturb=None):
    disturbed = ["-x", f"LD_PRELOAD={DISTURB}", "-x", f"INLAY_TEST_DISTURB={disturb}"]
    return ["mpirun", *(disturbed if disturb else []), "-n", str(count), RANKS_PROGRAM, *arguments]


def run(command, **more):
    return subprocess.run(command, capture_output=True, env=environment(**more), timeout=PATIENCE)


def status_of(pid):
    """What /proc says after the program's name: its state, its parent...; nothing if it has ended."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return stat.rsplit(")", 1)[1].split()


def children_of(process):
    """The ranks, in the order of their numbers."""
    return sorted(pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                  if status_of(pid)[1:2] == [str(process.pid)])


def is_running(pid):
    return status_of(pid)[:1] not in ([], ["Z"], ["X"])


class Bits(unittest.TestCase):
    def same(self, arguments, counts=(1, 2, 3, 4), disturb=None):
        alone = run([PROGRAM, *arguments])
        self.assertEqual(alone.returncode, 0, alone.stderr)
        for count in counts:
            ranks = run(mpirun(count, arguments, disturb))
            self.assertEqual(ranks.returncode, 0, ranks.stderr)
            self.assertEqual(ranks.stdout, alone.stdout, f"{count} ranks")

    def test_generate(self):
        self.same([*GENERATE, "-n", "60"])

    def test_draft_model(self):
        self.same([*GENERATE, "-n", "30", "--draft-model", BARD], (2,))

    def test_several_threads(self):
        self.same([*GENERATE[:-1], "2", "-n", "20"], (2,))

    def test_a_batch_job_is_done_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            requests = f"{folder}/requests.jsonl"
            with open(requests, "w") as file:
                for i in range(7):
                    json.dump({"custom_id": f"{i}", "method": "POST", "url": "/v1/completions",
                               "body": {"prompt": f"To be {i}", "max_tokens": 8, "seed": i}}, file)
                    file.write("\n")
            results = []
            for start in ([PROGRAM], mpirun(2, [])):
                out = f"{folder}/{len(results)}"
                done = run([*start, "batch", "-m", BARD, requests, "-o", out, "-t", "1"])
                self.assertEqual(done.returncode, 0, done.stderr)
                results.append(pathlib.Path(out).read_bytes())
            self.assertEqual(results[0].count(b"\n"), 7)
            self.assertEqual(results[1], results[0])

    def test_perplexity(self):
        """With its list, though mpirun makes standard output a terminal."""
        self.same(["perplexity", "-m", BARD, "-f", "tests/golden/demo/heldout.txt", "-c", "64",
                   "--chunks", "4", "-t", "1"], (2,))

    def test_late_collectives(self):
        for late in (0, 1):
            self.same([*GENERATE, "-n", "8"], (2,), f"late {late} 1")
        self.same([*GENERATE, "-n", "8"], (3,), "each 200")


class Refusals(unittest.TestCase):
    def refused(self, command, sentence, **more):
        result = run(command, **more)
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(result.stdout, b"")
        lines = [line for line in result.stderr.decode().splitlines() if "inlay" in line.split(":")[0]]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertRegex(lines[0], sentence)

    def test_a_missing_file(self):
        self.refused(mpirun(2, ["generate", "-m", "none.gguf", "-p", "a"]), "none.gguf")

    def test_other_weights(self):
        arguments = ["generate", "-m", "model.gguf", "-p", "a", "-n", "1", "-t", "1"]
        with tempfile.TemporaryDirectory() as folder:
            for rank, model in enumerate(["lfm2-tiny-iq4_xs", "lfm2-tiny-q6_k"]):
                os.mkdir(f"{folder}/{rank}")
                shutil.copy(f"tests/golden/models/{model}.gguf", f"{folder}/{rank}/model.gguf")
            command = ["mpirun"]
            for rank in (0, 1):
                command += ["-n", "1", "-wdir", f"{folder}/{rank}", RANKS_PROGRAM, *arguments, ":"]
            self.refused(command[:-1], "model.gguf at rank 1 gives weights of the hash")

    def test_another_instruction_set(self):
        self.refused([*mpirun(1, GENERATE), ":", "-n", "1", "env", f"INLAY_TARGET={OTHER_TARGET}",
                      RANKS_PROGRAM, *GENERATE], f"at rank 1 gives the instruction set {OTHER_TARGET}, not ")

    def test_another_program(self):
        with tempfile.TemporaryDirectory() as folder:
            other = shutil.copy(RANKS_PROGRAM, folder)
            with open(other, "ab") as file:
                file.write(b"another")
            self.refused([*mpirun(1, GENERATE), ":", "-n", "1", other, *GENERATE],
                         "rank 1 runs another program than rank 0")

    def test_a_sandbox(self):
        self.refused(mpirun(2, [*GENERATE, "--sandbox"]), "--sandbox leaves no way to the other ranks")

    def test_a_deadline_that_is_none(self):
        self.refused(mpirun(2, GENERATE), "INLAY_RANK_DEADLINE is '-1'", INLAY_RANK_DEADLINE="-1")


class Faults(unittest.TestCase):
    def ends(self, process):
        """The group ends by itself, with an error, and nothing of it remains."""
        ranks = children_of(process)
        try:
            _, errors = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail("the group still runs")
        self.assertNotEqual(process.returncode, 0)
        for rank in ranks:
            end = time.monotonic() + PATIENCE
            while is_running(rank):
                self.assertLess(time.monotonic(), end, "a rank is left")
                time.sleep(0.02)
        return errors.decode()

    def test_a_collective_that_never_comes(self):
        for rank in (0, 1):
            result = run(mpirun(2, [*GENERATE, "-n", "50"], f"never {rank} 40"),
                         INLAY_RANK_DEADLINE="0.5")
            self.assertNotEqual(result.returncode, 0)
            # Of both, which wait, the first ends the other.
            self.assertRegex(result.stderr.decode(),
                             "rank [01] of 2 waited 501 ms for the other ranks")

    def test_a_rank_that_is_killed_at_any_moment(self):
        draw = random.Random(1)
        for _ in range(6):
            process = subprocess.Popen(mpirun(3, [*GENERATE, "-n", "2000"], "late 1 5"),
                                       env=environment(), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            while len(children_of(process)) < 3 and process.poll() is None:
                time.sleep(0.01)
            time.sleep(draw.uniform(0, 1))
            os.kill(draw.choice(children_of(process)), signal.SIGKILL)
            self.assertIn("signal 9", self.ends(process))


class Kept(unittest.TestCase):
    """What a server of several ranks keeps when it ends, or when one of them is killed."""

    def serve(self, command, *flags):
        process = subprocess.Popen(
            [*command, "serve", "-m", BARD, "--port", "0", "-t", "1", *flags],
            env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        seen = ""
        for line in process.stderr:
            seen += line
            port = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if port:
                return process, int(port[1])
        self.fail(f"the server did not start: {seen}")

    @staticmethod
    def ask(port, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply.status, json.loads(text)

    def turn(self, port, parent, prompt, count):
        status, reply = self.ask(port, "/v1/sessions/play/turns",
                                 {"parent": parent, "prompt": prompt, "seed": parent,
                                  "max_tokens": count})
        self.assertEqual(status, 200, reply)
        return reply["text"]

    def tell(self, command, folder, kill):
        os.mkdir(folder)
        process, port = self.serve(command, "--sessions", folder)
        self.ask(port, "/v1/sessions", {"name": "play"})
        told = [self.turn(port, 0, "ROMEO:", 30), self.turn(port, 1, "JULIET:", 30)]
        if kill:
            os.kill(children_of(process)[1], signal.SIGKILL)
            process.wait(timeout=PATIENCE)
            self.assertNotEqual(process.returncode, 0)
            process, port = self.serve(command, "--sessions", folder)
        told.append(self.turn(port, 2, "NURSE:", 30))
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=PATIENCE)
        return told

    def test_signals_that_follow_each_other_reload_and_end_the_server(self):
        """No other thread of rank 0 takes one of them while the first is worked on."""
        with tempfile.TemporaryDirectory() as folder:
            keys = pathlib.Path(folder, "keys")
            keys.write_text("key-of-somebody\n")
            process, _ = self.serve(["mpirun", "-n", "2", RANKS_PROGRAM], "--api-key-file", str(keys))
            rank = children_of(process)[0]
            for number in [signal.SIGHUP] * 1000 + [signal.SIGTERM]:
                os.kill(rank, number)
            self.assertEqual(process.wait(timeout=PATIENCE), 0)
            errors = process.stderr.read()
            self.assertIn("read the API keys again", errors)
            self.assertIn("ending", errors)

    def test_a_session_goes_on_after_a_rank_was_killed(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = self.tell([PROGRAM], f"{folder}/alone", False)
            for count in (2, 3):
                ranks = self.tell(["mpirun", "-n", str(count), RANKS_PROGRAM],
                                  f"{folder}/{count}", True)
                self.assertEqual(ranks, alone)

    @staticmethod
    def store_is_used(port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as reply:
            return re.search(r"shared_prefixes_up 1$", reply.read().decode(), re.M) is not None

    def complete(self, count, folder):
        """The answer of a server of so many ranks, and how many tokens of its prompt it knew."""
        command = ["mpirun", "-n", str(count), RANKS_PROGRAM] if count > 1 else [PROGRAM]
        process, port = self.serve(command, "--shared-prefixes", folder, "--shared-prefixes-min",
                                   "32", "--shared-prefixes-wait", "20000")
        while not self.store_is_used(port):  # nothing waits for it
            time.sleep(0.01)
        status, reply = self.ask(port, "/v1/completions",
                                 {"model": "bard", "prompt": PROMPT, "max_tokens": 30,
                                  "seed": 1})
        self.assertEqual(status, 200, reply)
        # mpirun would fail if it were told to end.
        os.kill(children_of(process)[0] if count > 1 else process.pid, signal.SIGTERM)
        self.assertEqual(process.wait(timeout=PATIENCE), 0, process.stderr.read())
        return reply["choices"][0]["text"], reply["usage"]["prompt_tokens_details"]["cached_tokens"]

    def test_prefixes_last_over_a_restart_with_as_many_ranks(self):
        with tempfile.TemporaryDirectory() as folder:
            text, cached = self.complete(2, folder)
            self.assertEqual(cached, 0)
            again, cached = self.complete(2, folder)
            self.assertEqual(again, text)
            self.assertGreater(cached, 100)
            for count in (1, 3):  # which cannot use that state, and store another
                self.assertEqual(self.complete(count, folder), (text, 0))
                again, cached = self.complete(count, folder)
                self.assertEqual(again, text)
                self.assertGreater(cached, 100)


def other_target():
    """An instruction set that this CPU has and that is not the one chosen."""
    wrong = run([PROGRAM, *GENERATE], INLAY_TARGET="none").stderr.decode()
    return re.search(r"run on this CPU \((.*)\)", wrong)[1].split(", ")[-1]


if __name__ == "__main__":
    if shutil.which("mpirun") is None:
        print("mpirun is missing: apt-get install openmpi-bin")
        sys.exit(77)
    OTHER_TARGET = other_target()
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
