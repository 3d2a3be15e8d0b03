"""scripts/roofline: whose peaks its roofs are."""

import json
import unittest
import xml.etree.ElementTree

from stand_ins import ScriptTest


class Roofline(ScriptTest):
    def draw(self, peaks, *arguments):
        """Of a row with one and with two threads, and these measured peaks of "int8" and others."""
        context = {f"read_bytes_per_second/threads:{threads}": "4e10" for threads in (1, 2)}
        for name, peak in peaks.items():
            for kind in ("int8", "bf16", "f32"):
                context[f"{kind}_{name}"] = str(peak)
        rows = [{"name": f"matmul/Q8_0/64x64/tokens:1/AVX9/threads:{threads}/real_time",
                 "ops_per_byte": 2.0, "ops_per_second": 5e10} for threads in (1, 2)]
        measured = self.folder / "ops.json"
        measured.write_text(json.dumps({"context": context, "benchmarks": rows}))
        return self.run_script("roofline", measured, *arguments)

    def test_has_the_peak_of_all_threads(self):
        # Two threads of one core reach less than twice as much.
        peaks = {"ops_per_second/AVX9/threads:1": 1e12, "ops_per_second/AVX9/threads:2": 1.3e12}
        for threads, peak in ((1, "int8 1000 Gop/s"), (2, "int8 1300 Gop/s")):
            done = self.draw(peaks, "--threads", threads)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(peak, done.stdout)
            xml.etree.ElementTree.fromstring(done.stdout)

    def test_reads_earlier_files_of_one_thread(self):
        peaks = {"ops_per_second_of_one_core/AVX9": 1e12}
        self.assertIn("int8 1000 Gop/s", self.draw(peaks).stdout)
        done = self.draw(peaks, "--threads", "2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no peaks of AVX9 with 2 threads", done.stderr)
        self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
