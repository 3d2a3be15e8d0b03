"""What a step costs in Python beside the same step in compiled code: step_overhead.py MODEL...

A step appends one token to a sequence and computes its logits. Both ways are measured in turns in
one process, on the same sequence at the same length: `Sequence.append` with `Sequence.logits`, and a
loop in C that a compiler (cc) makes here. The difference of the medians is Python's share.
"""
from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import inlay
from inlay._cdef import ffi
from inlay._library import lib

LOOP = r"""
#include <stddef.h>
#include <stdint.h>
#include <time.h>
typedef int (*append_function)(void*, const int32_t*, size_t, float*);
/* Nanoseconds of one step; negative when it failed. */
int64_t time_step(void* append, void* cache, int32_t token, float* logits) {
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  int status = ((append_function)append)(cache, &token, 1, logits);
  clock_gettime(CLOCK_MONOTONIC, &end);
  if (status != 0) return -1;
  return (end.tv_sec - start.tv_sec) * INT64_C(1000000000) + end.tv_nsec - start.tv_nsec;
}
"""


def compiled_step() -> Any:
    """The function time_step, compiled."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "step.c"), Path(folder, "step.so")
        source.write_text(LOOP)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
        from cffi import FFI  # type: ignore[import]
        declared = FFI()
        declared.cdef("int64_t time_step(void *, void *, int32_t, float *);")
        return declared.dlopen(str(library), declared.RTLD_NOW | declared.RTLD_NODELETE)


def measure(path: str, steps: int, threads: int) -> dict[str, Any]:
    """Medians in microseconds over `steps` pairs of steps."""
    model = inlay.Model.load(path, threads=threads)
    sequence = model.sequence([1] * 32)
    native = compiled_step()
    logits = ffi.new("float[]", model.vocabulary_size)
    append = ffi.addressof(lib, "inlay_append")
    python_ns: list[int] = []
    native_ns: list[int] = []

    def in_python(token: int) -> bytes:
        start = time.perf_counter_ns()
        sequence.append(token)
        row = sequence.logits
        python_ns.append(time.perf_counter_ns() - start)
        return row.tobytes()

    def in_c(token: int) -> bytes:
        spent = native.time_step(append, sequence._handle, token, logits)
        assert spent >= 0, "the step in C failed"
        native_ns.append(spent)
        return bytes(ffi.buffer(logits))

    warm_up = steps // 10
    for i in range(warm_up + steps):
        found = set()
        for way in (in_python, in_c) if i % 2 == 0 else (in_c, in_python):
            found.add(way(i % 100))
            sequence.rewind(32)
        assert len(found) == 1, "the two steps differ"
    del python_ns[:warm_up], native_ns[:warm_up]
    python, compiled = statistics.median(python_ns) / 1e3, statistics.median(native_ns) / 1e3
    return {"model": model.config, "threads": threads, "steps": steps,
            "python_us": round(python, 2), "compiled_us": round(compiled, 2),
            "overhead_us": round(python - compiled, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", help="model files")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    for path in arguments.models:
        print(json.dumps(measure(path, arguments.steps, arguments.threads)))


if __name__ == "__main__":
    main()
