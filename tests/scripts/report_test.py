"""scripts/report with stand-ins for all programs: what it asks of them and what it writes."""

import json
import os
import shutil
import subprocess
import unittest
import xml.etree.ElementTree

from stand_ins import WRITES_MODELS, ScriptTest, inlay_row, peer_row

# 1000 tokens/s of prefill, 100 of decode, 50 of it after a long conversation, 16 x 20 together; half
# as many with one thread. Cannot run what the file "broken" names.
INLAY = WRITES_MODELS + """
if arguments[0] == "limits":
    if "json" in arguments:
        print(json.dumps({"targets": {"chosen": "AVX9"}}))
    else:
        print("in use AVX9")
    sys.exit(0)
broken = here.with_name("broken")
if broken.exists() and broken.read_text() in value("-m"):
    sys.exit("too little memory")
slower = 2 if value("-t") == "1" else 1
depth, batch = int(value("-d")), int(value("-b"))
rows = []
for test, count, rate in (("pp", int(value("-p")), 1000), ("tg", int(value("-n")), 100)):
    if count == 0:
        continue
    if depth == 300:
        rate = 50
    if batch > 1:
        rate = 20
    row = dict(ROW, test=test, tokens=count, depth=depth, batch=batch,
               seconds=[slower * count / rate] * int(value("-r")))
    rows.append(row)
print(json.dumps(rows))
""".replace("ROW", repr(inlay_row("", 0, [])))

# A fourth of Inlay's rates with two threads.
BENCH = """
rows = []
for key, count, rate in (("n_prompt", int(value("-p")), 250), ("n_gen", int(value("-n")), 25)):
    if count:
        row = dict(ROW, **{key: count}, n_depth=int(value("-d")))
        row["samples_ts"] = [12.5 if value("-d") == "300" else rate]
        rows.append(row)
print(json.dumps(rows))
""".replace("ROW", repr(peer_row(0, 0, [])))

BATCHED_BENCH = """
print("|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s | T s | S t/s |")
print("|-------|--------|------|--------|----------|----------|----------|----------|-----|-------|")
print("|    64 |     32 |   16 |   1536 |    1.000 |  1024.00 |    8.000 |    64.00 | 9.0 | 170.0 |")
"""

OPS_BENCH = """
assert "--targets=AVX9" in arguments
context = {"read_bytes_per_second/threads:1": "4e10"}
for kind in ("int8", "bf16", "f32"):
    context[f"{kind}_ops_per_second/AVX9/threads:1"] = "1e12"
print(json.dumps({"context": context, "benchmarks": [
    {"name": "matmul/Q8_0/64x64/tokens:1/AVX9/threads:1/min_time:0.1/real_time",
     "ops_per_byte": 2.0, "ops_per_second": 5e10}]}))
"""


class Report(ScriptTest):
    def setUp(self):
        super().setUp()
        self.program("inlay", INLAY)
        self.out = self.folder / "out"

    def report(self, *more, types="Q8_0", **environment):
        return self.run_script(
            "report", "--inlay", self.folder / "inlay", "--ops-bench", self.folder / "ops_bench",
            "--folder", self.folder / "made", "-o", self.out, "--name", "here", "-t", "1,2", "-d",
            "300", "--models", "gemma-3-270m,mamba2-130m", "--types", types, "--rounds", "2", *more,
            **environment)

    def peer(self):
        return ["--peer", "llama.cpp=" + self.program("bench", BENCH),
                "--batched", "llama.cpp=" + self.program("batched", BATCHED_BENCH)]

    def page(self):
        return (self.out / "here.md").read_text(encoding="utf-8")

    def cells(self):
        return json.loads((self.out / "here.json").read_text())["cells"]

    def benches(self):
        return [call for call in self.calls("inlay") if call[0] == "bench"]

    def test_fills_every_cell(self):
        self.program("ops_bench", OPS_BENCH)
        done = self.report(*self.peer())
        self.assertEqual(done.returncode, 0, done.stderr)
        page = self.page()
        for model in ("gemma-3-270m", "mamba2-130m"):
            # The share of the limit is the greater of 60 % of the peak and 97 % of the bandwidth.
            self.assertIn(f"| {model} Q8_0 | 1,000 (97 %) | 4.00 | 100 (97 %) | 4.00 "
                          "| 50.0 (97 %) | 4.00 | 320 (97 %) | 5.00 | 1.50 |", page)
            self.assertIn(f"| {model} Q8_0 | 500 (97 %) | 2.00 | 50.0 (97 %) | 2.00 "
                          "| 25.0 (97 %) | 2.00 | 160 (97 %) | 2.50 | 1.50 |", page)
        for words in ("in use AVX9", "AVX9 kernels", "commit abc", "scripts/report --inlay",
                      "prefill 512", "decode 32 after 300", "decode 32 of 16 conversations"):
            self.assertIn(words, page)
        self.assertNotIn("failed", page)
        # A page can be published as it is: it shows no folder of the machine.
        for name in ("here.md", "here.json"):
            self.assertNotIn(str(self.folder), (self.out / name).read_text())
        self.assertEqual(os.listdir(self.folder / "made"), [])
        for name in ("prefill", "decode", "decode-long", "decode-together", "roofline"):
            self.assertIn(f"(here-{name}.svg)", page)
            xml.etree.ElementTree.parse(self.out / f"here-{name}.svg")
        chart = (self.out / "here-decode.svg").read_text()
        for words in ("gemma-3-270m Q8_0", "100 tokens/s", "25.0 tokens/s",
                      "Inlay: 97 % of the limit", "llama.cpp: 24 % of the limit"):
            self.assertIn(words, chart)

    def test_asks_the_same_of_all_engines(self):
        self.report(*self.peer(), "--rounds", "1")
        self.assertEqual(
            {tuple(call[call.index(flag) + 1] for flag in ("-p", "-n", "-d", "-b"))
             for call in self.benches()},
            {("512", "64", "0", "1"), ("0", "32", "300", "1"), ("0", "32", "64", "16")})
        self.assertEqual({tuple(call[2:6]) for call in self.calls("bench")},
                         {("-p", "512", "-n", "64"), ("-p", "0", "-n", "32")})
        for call in self.calls("batched"):
            self.assertEqual(call[2:10], ["-c", "1536", "-npp", "64", "-ntg", "32", "-npl", "16,1"])

    def test_goes_on_where_it_was_stopped(self):
        (self.folder / "broken").write_text("mamba2-130m")
        done = self.report()
        self.assertEqual(done.returncode, 1)
        self.assertIn("too little memory", done.stderr)
        self.assertIn("| mamba2-130m Q8_0 | failed | failed | failed | failed | unknown |",
                      self.page())
        self.assertIn("- mamba2-130m:Q8_0, threads: 2: ", self.page())
        (self.folder / "broken").unlink()
        before = len(self.benches())
        done = self.report()
        self.assertEqual(done.returncode, 0, done.stderr)
        new = self.benches()[before:]
        # Two rounds of three kinds of work with one and with two threads.
        self.assertEqual(len(new), 12)
        self.assertTrue(all("mamba2-130m" in call[2] for call in new))
        self.assertNotIn("failed", self.page())
        page = self.page()
        self.assertEqual(self.report().returncode, 0)
        self.assertEqual(len(self.benches()), before + 12)
        self.assertEqual(self.page(), page)

    def test_grows_by_types_and_peers(self):
        self.report()
        before = len(self.benches())
        self.report(types="Q8_0,BF16")
        self.assertEqual(len(self.benches()), 2 * before)
        self.assertIn("| gemma-3-270m BF16 | 1,000", self.page())
        # A peer runs in turn with Inlay, so that both are measured, where it can do the work.
        done = self.report("--peer", "llama.cpp=" + self.program("bench", BENCH))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.benches()), 2 * before + before * 2 // 3)
        self.assertIn("| gemma-3-270m Q8_0 | 1,000 (97 %) | 4.00 | 100 (97 %) | 4.00 | 50.0 (97 %) "
                      "| 4.00 | 320 (97 %) | 1.50 |", self.page())

    def test_tries_a_failed_peer_again(self):
        # The program stays as it is: what it lacked may have been memory.
        lacks = 'if here.with_name("full").exists(): sys.exit("no memory")\n'
        peer = ["-t", "2", "--rounds", "1", "--peer", "old=" + self.program("bench", lacks + BENCH)]
        (self.folder / "full").write_text("")
        self.report(*peer)
        self.assertIn(": old: bench -m MODEL", self.page())
        (self.folder / "full").unlink()
        before = len(self.benches())
        self.report(*peer)
        self.assertNotIn("failed", self.page())
        self.assertIn("| gemma-3-270m Q8_0 | 1,000 (97 %) | 4.00 |", self.page())
        # In turn with Inlay, where the peer takes part: all but many conversations together.
        self.assertEqual(len(self.benches()), before + before * 2 // 3)

    def test_measures_again_with_another_file_or_peer(self):
        command = ["--models", str(self.model), "-t", "2", "--rounds", "1", *self.peer()]
        self.report(*command)
        first = len(self.benches())
        self.report(*command)
        self.assertEqual(len(self.benches()), first)
        self.model.write_text("others!")  # of the same size
        self.report(*command)
        self.assertEqual(len(self.benches()), 2 * first)
        self.program("bench", BENCH.replace("250", "500"))
        self.report(*command)
        self.assertEqual(len(self.benches()), 2 * first + first * 2 // 3)
        self.assertIn("| m | 1,000 (97 %) | 2.00 |", self.page())
        (self.folder / "libggml.so").write_text("the code of both of the peer's programs")
        self.report(*command)
        self.assertEqual(len(self.benches()), 3 * first + first * 2 // 3)
        self.assertEqual(len(self.cells()), 3)

    def test_reads_data_that_do_not_name_files_and_programs(self):
        one = ["-t", "2", "--rounds", "1"]
        self.report(*one, *self.peer())
        first = len(self.benches())
        data = json.loads((self.out / "here.json").read_text())
        for cell in data["cells"]:
            del cell["file"]
            for engine in cell["engines"].values():
                engine.pop("program", None)
        data["cells"].append(dict(data["cells"][0], model="/a/private/folder/m.gguf"))
        (self.out / "here.json").write_text(json.dumps(data))
        # All that counts of Inlay's is there; what measured the peers is not known.
        self.assertEqual(self.report(*one).returncode, 0)
        self.assertEqual(len(self.benches()), first)
        self.assertEqual(self.report(*one, *self.peer()).returncode, 0)
        self.assertEqual(len(self.benches()), 2 * first)
        self.assertNotIn("private", (self.out / "here.json").read_text())

    def test_names_no_folder(self):
        spaces = self.folder / "a private=folder of mine"
        spaces.mkdir()
        model = spaces / "bard.gguf"
        model.write_text("weights")
        says = ('sys.exit(f"0.00.095.367 E failed to load \'{value(\'-m\')}\' and "'
                ' "\'/usr/private lib/x.so\' of /private/y and /private: no such file")')
        peer = spaces / "bench"
        self.program("bench", says)
        (self.folder / "bench").rename(peer)
        (self.folder / "broken").write_text("mamba2")
        os.symlink(spaces, self.folder / "private")
        relative = os.path.relpath(self.folder / "private" / "two.gguf")
        (spaces / "two.gguf").write_text("weights")
        self.report("-t2", "--rounds=1", f"--models={model},mamba2-130m,{relative}",
                    f"--peer=llama.cpp={peer}", "--batched=other=/bin/false")
        self.assertIn("mamba2-130m:Q8_0, threads: 2: inlay bench", self.page())
        self.assertIn("failed to load 'MODEL' and 'x.so' of y and private: no", self.page())
        self.assertEqual({cell["model"] for cell in self.cells()},
                         {"bard.gguf", "two.gguf"})
        for path in self.out.iterdir():
            text = path.read_text(encoding="utf-8").replace("and private: no", "")
            self.assertNotIn("private", text, path)
            self.assertNotIn(str(self.folder), text, path)

    def test_writes_utf8_in_any_locale(self):
        (self.folder / "CMakeCache.txt").write_text("CMAKE_BUILD_TYPE:STRING=Größe\n",
                                                    encoding="utf-8")
        done = self.report("--rounds", "1", *self.peer(), LC_ALL="C", PYTHONUTF8="0",
                           PYTHONCOERCECLOCALE="0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("× llama.cpp", self.page())
        self.assertIn("Größe build", self.page())

    def test_lists_what_a_peer_cannot_do(self):
        done = self.report("--peer", "old=" + self.program("bench", 'sys.exit("no such model")'))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("× old", self.page())  # a column without a figure
        self.assertIn("- 2 threads, gemma-3-270m Q8_0, mamba2-130m Q8_0: old: bench -m MODEL ",
                      self.page())
        self.assertNotIn(str(self.folder), self.page())
        self.assertEqual(len(self.calls("bench")), 2 * 2 * 2)  # not again in the second round

    def test_names_the_commit_that_was_measured(self):
        if shutil.which("git") is None:
            self.skipTest("there is no git")
        source = self.folder / "source"
        source.mkdir()
        (source / "engine.cc").write_text("int x;\n")

        def git(*words):
            return subprocess.run(
                ["git", "-C", source, "-c", "user.name=a", "-c", "user.email=a@b",
                 "-c", "commit.gpgsign=false", *words],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True).stdout.strip()

        def commit():
            self.report("--fresh", "--models", "gemma-3-270m", "-t", "2", "--rounds", "1")
            return next(line for line in self.page().splitlines() if line.startswith("- commit: "))
        git("init")
        git("add", "engine.cc")
        git("commit", "-m", "One")
        self.assertEqual(commit(), "- commit: unknown")  # in no build folder
        (self.folder / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={source}\n")
        name = git("rev-parse", "HEAD")
        self.assertEqual(commit(), f"- commit: {name}")
        (source / "engine.cc").write_text("int y;\n")
        self.assertEqual(commit(), f"- commit: {name} with changes")
        (self.folder / "CMakeCache.txt").write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/\n")
        self.assertEqual(commit(), "- commit: unknown")

    def test_says_which_models_a_peer_lacks(self):
        lacks = 'if "mamba2" in sys.argv[2]: sys.exit("0.00.095.367 E no such model")\n'
        done = self.report("--peer", "old=" + self.program("bench", lacks + BENCH))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| gemma-3-270m Q8_0 | 1,000 (97 %) | 4.00 | 100 (97 %) | 4.00 |", self.page())
        self.assertIn("| mamba2-130m Q8_0 | 1,000 (97 %) | failed | 100 (97 %) | failed |",
                      self.page())
        self.assertRegex(self.page(),
                         "- 2 threads, mamba2-130m Q8_0: old: bench -m MODEL .*: E no such")

    def test_measures_files_and_keeps_models_where_it_is_told_to(self):
        done = self.report("--models", f"{self.model},gemma-3-270m", "--keep")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| m | 1,000", self.page())
        self.assertTrue(self.model.exists())
        self.assertEqual(os.listdir(self.folder / "made"), ["gemma-3-270m-Q8_0.gguf"])

    def test_takes_one_type_of_a_config(self):
        done = self.report("--models", "gemma-3-1b:Q4_0,gemma-3-270m", types="Q8_0,BF16")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split(" | ")[0] for line in self.page().splitlines() if " | 1,000" in line]
        self.assertEqual(rows, ["| gemma-3-1b Q4_0", "| gemma-3-270m Q8_0", "| gemma-3-270m BF16"])

    def test_refuses_what_another_program_measured(self):
        self.report()
        data = (self.out / "here.json").read_text()
        self.program("inlay", INLAY + "# another build\n")
        done = self.report()
        self.assertEqual(done.returncode, 1)
        self.assertIn("was measured with another program", done.stderr)
        self.assertEqual((self.out / "here.json").read_text(), data)
        self.assertEqual(self.report("--fresh").returncode, 0)
        (self.out / "here.json").write_text("{")
        self.assertIn("is not a report's data", self.report().stderr)

    def test_says_in_one_sentence_what_is_wrong(self):
        other = self.folder / "other" / "m.gguf"
        other.parent.mkdir()
        other.write_text("weights")
        for more, status, words in ((["-t", "0"], 2, "at least 1"),
                                    (["-t", "many"], 2, "takes numbers"),
                                    (["--peer", "llama-bench"], 2, "NAME=PROGRAM"),
                                    (["--name", "a/b"], 2, "does not fit"),
                                    (["--inlay", "nowhere"], 1, "cannot be read"),
                                    (["--peer", "x=nowhere"], 1, "is not a program"),
                                    (["--models", "no/m.gguf"], 1, "there is no no/m.gguf"),
                                    (["--models", f"{self.model},{other}"], 1, "one name"),
                                    (["-o", self.model / "below"], 1, "cannot be written")):
            done = self.report(*more)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            self.assertEqual(self.benches(), [])

    def test_saves_each_cell(self):
        (self.folder / "broken").write_text("nothing")
        self.report("--models", "gemma-3-270m", "-t", "2", "--rounds", "1")
        cells = self.cells()
        self.assertEqual([cell["work"]["depths"] for cell in cells], [[0], [300], [64]])
        self.assertEqual(cells[0]["engines"]["Inlay"]["tests"]["pp"]["rates"], [1000.0, 1000.0])


if __name__ == "__main__":
    unittest.main()
