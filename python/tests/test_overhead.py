"""The benchmark of a step runs, and its two ways give the same bits."""
from __future__ import annotations

import json
import subprocess
import sys

from conftest import BARD, ROOT


def test_both_ways_are_measured() -> None:
    run = subprocess.run([sys.executable, ROOT / "python/benchmarks/step_overhead.py", BARD,
                          "--steps", "30"], check=True, capture_output=True, text=True)
    found = json.loads(run.stdout)
    assert found["model"] == "bard" and found["steps"] == 30
    assert found["python_us"] > 0 and found["compiled_us"] > 0
