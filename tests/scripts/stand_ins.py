"""Programs that stand in for those that the scripts run."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Notes how it was called, then runs the body with `arguments` and the number of `earlier` calls.
_PROGRAM = """#!{python} -IS
import json, pathlib, sys
here = pathlib.Path(__file__)
arguments = sys.argv[1:]
calls = here.with_suffix(".calls")
made = json.loads(calls.read_text()) if calls.exists() else []
calls.write_text(json.dumps(made + [arguments]))
earlier = len(made)
def value(flag, absent="0"):
    return arguments[arguments.index(flag) + 1] if flag in arguments else absent
{body}
"""


class ScriptTest(unittest.TestCase):
    """A test with a folder of its own, in which stand-ins lie."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "m.gguf"
        self.model.write_text("weights")

    def program(self, name, body):
        """The path of a program with this Python code."""
        path = self.folder / name
        path.write_text(_PROGRAM.format(python=sys.executable, body=body))
        path.chmod(0o755)
        return str(path)

    def calls(self, name):
        """The arguments of each call of a program, in order."""
        path = (self.folder / name).with_suffix(".calls")
        return json.loads(path.read_text()) if path.exists() else []

    def run_script(self, name, *arguments, **environment):
        return subprocess.run([sys.executable, str(ROOT / "scripts" / name), *map(str, arguments)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, **environment})


# Writes a model where it is told to.
WRITES_MODELS = """
if arguments[0] == "synth":
    pathlib.Path(value("-o")).write_text("weights")
    sys.exit(0)
"""


def answers(*values):
    """The body of a program that prints the next of these as JSON; a text ends it with an error."""
    return f"""
answers = json.loads({json.dumps(json.dumps(values))})
answer = answers[min(earlier, len(answers) - 1)]
if isinstance(answer, str):
    sys.exit(answer)
print(json.dumps(answer))
"""


def inlay_row(test, tokens, seconds, depth=0, batch=1):
    """A row of `inlay bench -o json`."""
    return {"test": test, "tokens": tokens, "batch": batch, "depth": depth, "seconds": seconds,
            "target": "AVX9", "threads": 2, "peak": "int8", "percent_of_peak": 60.0,
            "percent_of_read_bandwidth": 97.0, "limit_bytes_per_second": 40e9,
            "limit_ops_per_second": 2e12, "peak_memory_bytes": 300, "file_bytes": 200,
            "first_token_seconds": 0.25}


def peer_row(prompt, generated, rates, depth=0):
    """A row of `llama-bench -o json`."""
    return {"n_prompt": prompt, "n_gen": generated, "n_depth": depth, "avg_ts": 1.0,
            "samples_ts": rates, "build_commit": "abc"}
