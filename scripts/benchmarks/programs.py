"""Runs the benchmark programs of Inlay and its peers, in turn, on files that may have random weights."""

import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INLAY = ROOT / "build/release/inlay"


class Failure(Exception):
    """What a program could not do, in one sentence."""


@functools.cache
def digest(path):
    """Of a file's bytes, read once."""
    found = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                found.update(block)
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}")
    return found.hexdigest()


def find_program(program):
    """Its path, found as a shell finds it."""
    found = shutil.which(program)
    if found is None:
        raise Failure(f"{program} is not a program")
    return found


@functools.cache
def program_digest(program):
    """Of a program and of the shared libraries that lie beside it."""
    found = find_program(program)
    folder = pathlib.Path(found).resolve().parent
    files = sorted({path.resolve() for path in folder.glob("*.so*")})
    return hashlib.sha256("".join(map(digest, [found, *files])).encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class Model:
    """A model to measure: a file, or CONFIG:TYPE for one with random weights."""
    word: str    # as it was given
    name: str    # without a folder
    digest: str  # of the file; "" of CONFIG:TYPE, whose weights the program makes anew

    @classmethod
    def of(cls, word):
        if os.path.exists(word):
            return cls(word, os.path.basename(word), digest(word))
        return cls(word, word, "")


@dataclasses.dataclass(frozen=True)
class Work:
    """What a benchmark program is asked to do in one run."""
    prompt: int = 0      # tokens of prefill; 0: none
    generate: int = 0    # tokens of decode of each conversation; 0: none
    depths: tuple = (0,)  # tokens before, in each conversation
    batch: int = 1       # conversations that are decoded together
    repetitions: int = 2


@dataclasses.dataclass
class Measured:
    """What one engine did with one kind of work.

    `records` is {(test, depth): record} with test "pp" (prefill) or "tg" (decode). A record has the
    "rates" of all repetitions in tokens per second, of all conversations together, the "source" of
    the program, and as "rounds" what else each of its runs said.
    """
    records: dict = dataclasses.field(default_factory=dict)
    seconds: float = 0  # that its program ran
    failure: str = ""   # why there are no records


def shown(command):
    """The command with files by their names alone: pages that quote it are published."""
    return " ".join(os.path.basename(word) if "/" in word else word for word in command)


def _without_folders(text, command):
    """What a command said, with files by their names alone."""
    # The folders of the command are known, whatever is in their names; others end at a space or a
    # quotation mark.
    folders = {os.path.dirname(word) for word in command if "/" in word}
    for folder in sorted(folders - {"", "/"}, key=len, reverse=True):
        text = text.replace(folder + "/", "")
    text = re.sub(r"(?<=['\"`])/[^'\"`]*/", "", text)
    return re.sub(r"(?<![\w.])/(?:[^\s'\"/]+/)*(?=\w)", "", text)


def run(command):
    """What a command prints."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8", errors="replace")
    except OSError as error:
        raise Failure(f"{shown(command[:1])} does not start: {error.strerror}")
    if done.returncode != 0:
        words = done.stderr.strip().splitlines() or ["it says nothing"]
        reason = _without_folders(words[-1], command)
        raise Failure(f"{shown(command)} ended with status {done.returncode}: {reason}")
    return done.stdout


def run_json(command):
    """The JSON that a command prints."""
    try:
        return json.loads(run(command))
    except json.JSONDecodeError:
        raise Failure(f"{shown(command)} printed no JSON")


class Inlay:
    name = "Inlay"

    def __init__(self, program, arguments=""):
        self.program = program
        self.arguments = arguments.split()

    def takes(self, work):
        return True

    def run(self, model, threads, work):
        """The records of one run, without "rounds"."""
        rows = run_json([self.program, "bench", "-m", model, "-p", str(work.prompt), "-n",
                         str(work.generate), "-d", ",".join(map(str, work.depths)), "-b",
                         str(work.batch), "-t", str(threads), "-r", str(work.repetitions), "-o",
                         "json"] + self.arguments)
        records = {}
        for row in rows:
            row["rates"] = [row["tokens"] * row["batch"] / s for s in row["seconds"]]
            row["source"] = f"{row['target']} kernels"
            records[row["test"], row["depth"]] = row
        return records


class Peer:
    """llama.cpp, or a program with its flags and its output.

    `bench` is its llama-bench and `batched_bench` its llama-batched-bench, which decodes several
    conversations together; either may be None.
    """

    def __init__(self, name, bench, batched_bench=None, arguments=""):
        self.name = name
        self.bench = bench
        self.batched_bench = batched_bench
        self.arguments = arguments.split()

    def _program(self, work):
        return self.bench if work.batch == 1 else self.batched_bench

    def takes(self, work):
        return self._program(work) is not None

    def digest(self, work):
        """Of the program that does the work."""
        return program_digest(self._program(work))

    def run(self, model, threads, work):
        if work.batch == 1:
            return self._run_bench(model, threads, work)
        return self._run_batched_bench(model, threads, work)

    def _run_bench(self, model, threads, work):
        command = [self.bench, "-m", model, "-p", str(work.prompt), "-n", str(work.generate), "-t",
                   str(threads), "-r", str(work.repetitions), "-o", "json"]
        if work.depths != (0,):  # older programs do not know the flag
            command += ["-d", ",".join(map(str, work.depths))]
        records = {}
        for row in run_json(command + self.arguments):
            test = "pp" if row["n_prompt"] > 0 else "tg"
            rates = row.get("samples_ts") or [row["avg_ts"]]
            records[test, row.get("n_depth", 0)] = {
                "rates": rates, "source": f"commit {row.get('build_commit', 'unknown')}"}
        return records

    def _run_batched_bench(self, model, threads, work):
        """Decode only. The program repeats nothing and does not say which build it is.

        It also runs one conversation: its log is another thread's, which the end of the process may
        overtake, so that the last row is lost.
        """
        records = {}
        for depth in work.depths:
            size = work.batch * (depth + work.generate)
            command = [self.batched_bench, "-m", model, "-c", str(size), "-npp", str(depth), "-ntg",
                       str(work.generate), "-npl", f"{work.batch},1", "-t", str(threads)]
            rates = []
            for _ in range(work.repetitions):
                # | PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s | T s | S t/s |
                row = re.search(rf"^\|(\s*{depth}\s*\|\s*{work.generate}\s*\|\s*{work.batch}\s*\|"
                                r"(?:\s*[\d.]+\s*\|){7})\s*$", run(command + self.arguments),
                                re.MULTILINE)
                if row is None:
                    raise Failure(f"{shown(command)} printed no row of figures")
                rates.append(float(row[1].split("|")[7]))
            records["tg", depth] = {"rates": rates}
        return records


def check_model(word):
    """Fails where find_model() cannot know what a word means, before hours of measuring."""
    if not os.path.exists(word) and (":" not in word or "/" in word):
        raise Failure(f"{word} is neither a file nor CONFIG:TYPE")


def find_model(word, program, folder, vocabulary=False):
    """The file that a word names, and whether it was written just now.

    A word is a GGUF file, or CONFIG:TYPE for one with random weights, which `inlay synth` writes
    into the folder if it is not there, with a vocabulary if that is asked for.
    """
    check_model(word)
    if os.path.exists(word):
        return word, False
    config, _, kind = word.rpartition(":")
    words = "-words" if vocabulary else ""
    path = pathlib.Path(folder) / f"{config}-{kind}{words}.gguf"
    if path.exists():
        return str(path), False
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        run([program, "synth", config, "-o", str(path), "--type", kind]
            + ["--vocabulary"] * vocabulary)
    except Failure as failure:
        raise Failure(f"{word}: {failure}")
    return str(path), True


def measure_in_turn(engines, model, threads, work, rounds):
    """{engine's name: Measured} after so many rounds, in turns which engine goes first.

    The first engine must be able to do the work; a peer that cannot has a failure. Says on the
    error stream what runs.
    """
    results = {engine.name: Measured() for engine in engines}
    for round_number in range(rounds):
        order = engines if round_number % 2 == 0 else engines[::-1]
        for engine in order:
            measured = results[engine.name]
            if measured.failure:
                continue
            print(f"{pathlib.Path(model).stem}, threads: {threads}, round {round_number + 1} of "
                  f"{rounds}: {engine.name}", file=sys.stderr)
            start = time.monotonic()
            try:
                records = engine.run(model, threads, work)
            except Failure as failure:
                if engine is engines[0]:
                    raise
                measured.failure = str(failure)
                measured.records = {}
                print(f"{engine.name} failed: {failure}", file=sys.stderr)
                continue
            finally:
                measured.seconds += time.monotonic() - start
            for key, record in records.items():
                kept = measured.records.setdefault(key, dict(record, rates=[], rounds=[]))
                kept["rates"] += record.pop("rates")
                kept["rounds"].append(record)
    return results
