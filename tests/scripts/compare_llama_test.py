"""scripts/compare-llama with stand-ins for both programs: what it asks of them and makes of it."""

import json
import os
import unittest

from stand_ins import WRITES_MODELS, ScriptTest, answers, inlay_row, peer_row


class CompareLlama(ScriptTest):
    def compare(self, peer, model, *more):
        models = model if isinstance(model, list) else [model]
        return self.run_script("compare-llama", peer, *models, "--inlay", self.folder / "inlay",
                               "--models", self.folder / "made", "-t", "2", "-p", "100", "-n", "10",
                               *more)

    def test_takes_medians_over_rounds_and_alternates(self):
        # Rates of prefill 100, 200, 400 against 50, 40, 10.
        self.program("inlay", answers(*([inlay_row("pp", 100, [s]), inlay_row("tg", 10, [0.1])]
                                        for s in (1.0, 0.5, 0.25))))
        peer = self.program("peer", answers(*([peer_row(100, 0, [r]), peer_row(0, 10, [80.0])]
                                              for r in (50, 40, 10))))
        done = self.compare(peer, self.model, "--rounds", "3", "-r", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| m | 200 | 40.0 | 5.00 | 60 % | 100 | 80.0 | 1.25 | 97 % | 1.50 | 0.25 |",
                      done.stdout)
        self.assertIn("commit abc", done.stdout)
        self.assertIn("AVX9", done.stdout)
        turns = [line.rsplit(": ", 1)[1] for line in done.stderr.splitlines()]
        self.assertEqual(turns, ["Inlay", "llama.cpp", "llama.cpp", "Inlay", "Inlay", "llama.cpp"])
        self.assertNotIn("-d", self.calls("peer")[0])

    def test_gives_each_depth_a_row(self):
        self.program("inlay", answers([inlay_row("pp", 100, [1.0], d) for d in (0, 64)]))
        peer = self.program("peer", answers([peer_row(100, 0, [50.0 if d == 0 else 20.0], d)
                                             for d in (0, 64)]))
        done = self.compare(peer, self.model, "-d", "0,64", "-n", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| m | 100 | 50.0 | 2.00 |", done.stdout)
        self.assertIn("| m @ d64 | 100 | 20.0 | 5.00 |", done.stdout)
        call = self.calls("peer")[0]
        self.assertEqual(call[call.index("-d") + 1], "0,64")

    def test_leaves_cells_empty_where_a_peer_fails(self):
        self.program("inlay", answers([inlay_row("pp", 100, [1.0])]))
        peer = self.program("peer", answers("unknown architecture"))
        done = self.compare(peer, self.model, "-n", "0", "--rounds", "2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("| m | 100 |  |  | 60 % |", done.stdout)
        self.assertIn("unknown architecture", done.stderr)
        self.assertEqual(len(self.calls("peer")), 1)

    def test_keeps_what_was_measured_where_a_model_fails(self):
        self.program("inlay", WRITES_MODELS + """
if "broken" in value("-m"):
    sys.exit("damaged weights")
""" + answers([inlay_row("pp", 100, [1.0])]))
        peer = self.program("peer", answers([peer_row(100, 0, [50.0])]))
        save = self.folder / "samples.json"
        done = self.compare(peer, ["broken:Q8_0", self.model], "-n", "0", "--rounds", "1",
                            "--discard", "--save", str(save))
        self.assertEqual(done.returncode, 1)
        self.assertIn("| m | 100 | 50.0 | 2.00 |", done.stdout)
        self.assertNotIn("broken", done.stdout)
        self.assertIn("1 measurement failed: broken:Q8_0, threads: 2: ", done.stderr)
        self.assertIn("damaged weights", done.stderr)
        self.assertEqual(len(json.loads(save.read_text())), 2)
        self.assertEqual(os.listdir(self.folder / "made"), [])

    def test_tells_what_was_measured_when_it_is_interrupted(self):
        # The second call of the program is what Ctrl-C interrupts.
        self.program("inlay", """
if earlier == 1:
    import os, signal
    os.kill(os.getppid(), signal.SIGINT)
    signal.pause()
""" + answers([inlay_row("pp", 100, [1.0])]))
        peer = self.program("peer", answers([peer_row(100, 0, [50.0])]))
        second = self.folder / "second.gguf"
        second.write_text("weights")
        done = self.compare(peer, [self.model, second], "-n", "0", "--rounds", "1")
        self.assertEqual(done.returncode, 130, done.stderr)
        self.assertIn("| m | 100 | 50.0 | 2.00 |", done.stdout)

    def test_looks_at_all_words_first(self):
        self.program("inlay", answers([inlay_row("pp", 100, [1.0])]))
        peer = self.program("peer", answers([peer_row(100, 0, [50.0])]))
        for models, more, words in (
                ([self.model, "nowhere"], [], "nowhere is neither a file nor"),
                ([self.model], ["--also", "other=no/such"], "no/such is not a program")):
            done = self.compare(peer, models, *more)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)
        self.assertEqual(self.calls("inlay"), [])

    def test_writes_random_models_and_discards_them(self):
        self.program("inlay", WRITES_MODELS + answers([inlay_row("pp", 100, [1.0])]))
        peer = self.program("peer", answers([peer_row(100, 0, [50.0])]))
        save = self.folder / "samples.json"
        done = self.compare(peer, "gemma-3-270m:Q4_0", "-n", "0", "--rounds", "1", "--discard",
                            "--save", str(save))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| gemma-3-270m-Q4_0 | 100 | 50.0 | 2.00 |", done.stdout)
        self.assertEqual(self.calls("inlay")[0][:2], ["synth", "gemma-3-270m"])
        self.assertEqual(os.listdir(self.folder / "made"), [])
        samples = json.loads(save.read_text())
        self.assertEqual([s["rates"] for s in samples], [[100.0], [50.0]])

    def test_says_in_one_sentence_what_is_wrong(self):
        self.program("inlay", answers("no such model"))
        peer = self.program("peer", answers([peer_row(100, 0, [50.0])]))
        for model, words in (("nowhere", "neither a file nor"), (self.model, "no such model")):
            done = self.compare(peer, model)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)
            self.assertNotIn("Traceback", done.stderr)
        done = self.compare("peer", "m", "--rounds", "0")
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
