"""Keeps what a report has measured in a JSON file, from which it can be continued and drawn."""

import dataclasses
import datetime
import json
import os
import statistics

from benchmarks.programs import Failure

_FORMAT = 1


def _now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _summary(record):
    """What is kept of a record of programs.Measured: rates, and of Inlay's the share of the limit.

    The limit is the machine's: the bytes of the work at the read bandwidth or its operations at the
    peak of the dot products, whichever takes longer.
    """
    kept = {"rates": record["rates"], "source": record.get("source")}
    rounds = [r for r in record["rounds"] if "percent_of_peak" in r]
    if rounds:
        kept["percent"] = statistics.median(
            max(r["percent_of_peak"], r["percent_of_read_bandwidth"]) for r in rounds)
        kept["memory"] = max(
            ((r["peak_memory_bytes"] or 0) / r["file_bytes"] for r in rounds))
    return kept


class Results:
    """The cells of a report: one for each (model, number of threads, Work), saved once measured."""

    def __init__(self, path, fresh, identity):
        """Goes on with the file if it is there, unless `fresh`.

        `identity` is {what: text} that all cells have in common; a file with another is refused.
        """
        self.path = path
        self.data = {"format": _FORMAT, "identity": identity, "begun": _now(), "spent": {},
                     "cells": []}
        if fresh or not path.exists():
            return
        try:
            found = json.loads(path.read_text())
            theirs = found["identity"] if found["format"] == _FORMAT else {"format": "another"}
        except (OSError, ValueError, KeyError, TypeError):
            raise Failure(f"{path} is not a report's data; --fresh begins anew")
        for what, text in identity.items():
            if theirs.get(what) != text:
                raise Failure(f"{path} was measured with another {what}; --fresh begins anew, "
                              "--name measures beside it")
        self.data = found

    def find(self, model, threads, work, rounds, engines):
        """The cell in which all these engines did the work or failed to, if there is one."""
        for cell in self.data["cells"]:
            if ((cell["model"], cell["threads"], cell["rounds"]) == (model, threads, rounds)
                    and cell["work"] == json.loads(json.dumps(dataclasses.asdict(work)))
                    and all(e.name in cell["engines"] for e in engines if e.takes(work))):
                return cell
        return None

    def add(self, model, threads, work, rounds, measured):
        """Keeps what programs.measure_in_turn() gave, in the place of an earlier cell."""
        work = json.loads(json.dumps(dataclasses.asdict(work)))
        key = (model, threads, work, rounds)
        self.data["cells"] = [c for c in self.data["cells"] if (
            c["model"], c["threads"], c["work"], c["rounds"]) != key]
        engines = {}
        for name, m in measured.items():
            engines[name] = {"seconds": m.seconds, "failure": m.failure,
                             "tests": {test: _summary(r) for (test, _), r in m.records.items()}}
            self.spend(name, m.seconds)
        self.data["cells"].append({"model": model, "threads": threads, "work": work,
                                   "rounds": rounds, "date": _now(), "engines": engines})
        self.save()

    def spend(self, what, seconds):
        self.data["spent"][what] = self.data["spent"].get(what, 0) + seconds

    def save(self):
        """In one step: a report that is stopped loses no cell but the one it is at."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(self.path.name + ".new")
        fresh.write_text(json.dumps(self.data, indent=1) + "\n")
        os.replace(fresh, self.path)
