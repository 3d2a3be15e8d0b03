"""flags_test.py OPS_BENCH STATIC_BENCH: which flags the microbenchmarks take and refuse."""

import json
import os
import subprocess
import sys
import unittest

OPS_BENCH, STATIC_BENCH = sys.argv.pop(1), sys.argv.pop(1)


def run(*command, **environment):
    others = {name: text for name, text in os.environ.items() if name != "INLAY_TARGET"}
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", env={**others, **environment})


def runnable_targets():
    """Best first, as the program names them where it refuses one."""
    refused = run(OPS_BENCH, "--targets=Z80")
    line = next(line for line in refused.stderr.splitlines() if "this CPU runs:" in line)
    return line.split("this CPU runs:")[1].split(";")[0].split()


def rows(*flags, **environment):
    """The names of the rows that would run: listing them measures nothing."""
    done = run(OPS_BENCH, "--benchmark_filter=^rms_norm/2048/tokens:1/", "--benchmark_list_tests",
               *flags, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


class OpsBench(unittest.TestCase):
    def test_help_has_all_flags(self):
        done = run(OPS_BENCH, "--help")
        self.assertEqual(done.returncode, 0)
        for flag in ("--targets=", "--threads=", "--benchmark_filter="):
            self.assertIn(flag, done.stdout)

    def test_refuses_what_it_does_not_know(self):
        for flag in ("--targets=Z80", "--threads=0", "--thread=1", "words"):
            done = run(OPS_BENCH, flag)
            self.assertEqual(done.returncode, 2)
            self.assertIn(flag, done.stderr)
        self.assertGreater(len(runnable_targets()), 0)
        done = run(OPS_BENCH, INLAY_TARGET="Z80")
        self.assertEqual(done.returncode, 2)
        self.assertIn("Z80", done.stderr)

    def test_fails_without_a_row(self):
        self.assertEqual(run(OPS_BENCH, "--benchmark_filter=no_such_row",
                             "--benchmark_list_tests").returncode, 1)

    def test_takes_the_target_of_the_environment(self):
        last = runnable_targets()[-1]
        self.assertEqual(len(rows("--benchmark_min_time=0.001", INLAY_TARGET=last)), 1)
        names = rows("--benchmark_min_time=0.001")
        self.assertEqual(len(names), len(runnable_targets()))
        self.assertTrue(names[-1].startswith(f"rms_norm/2048/tokens:1/{last}/threads:1"), names)

    def test_takes_the_time_of_the_caller(self):
        target = "--targets=" + runnable_targets()[-1]
        self.assertIn("min_time:0.1", rows(target)[0])
        self.assertNotIn("min_time:0.1", rows(target, "--benchmark_min_time=0.001")[0])

    def test_measures_rows_and_limits(self):
        target = runnable_targets()[-1]
        done = run(OPS_BENCH, f"--targets={target}", "--benchmark_min_time=0.001",
                   "--benchmark_filter=^rms_norm/2048/tokens:1/", "--benchmark_format=json")
        self.assertEqual(done.returncode, 0, done.stderr)
        data = json.loads(done.stdout)
        names = [f"{kind}_ops_per_second/{target}" for kind in ("int8", "bf16", "f32")]
        for name in ["read_bytes_per_second", *names]:
            self.assertGreater(float(data["context"][f"{name}/threads:1"]), 1e6, name)
        [row] = data["benchmarks"]
        self.assertTrue(row["name"].startswith(f"rms_norm/2048/tokens:1/{target}/threads:1"), row)
        self.assertGreater(row["percent_of_limit"], 0)


class StaticBench(unittest.TestCase):
    def test_takes_no_arguments(self):
        done = run(STATIC_BENCH, "--help")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--help", done.stderr)


if __name__ == "__main__":
    unittest.main()
