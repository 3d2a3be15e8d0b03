"""Keeps what a report has measured in a JSON file, from which it can be continued and drawn."""

import dataclasses
import datetime
import json
import os
import statistics

from benchmarks.programs import Failure, Peer

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


def _key(cell):
    """What no two cells have in common."""
    return cell["model"], cell["threads"], cell["work"], cell["rounds"]


def _key_of(model, threads, work, rounds):
    return model.name, threads, json.loads(json.dumps(dataclasses.asdict(work))), rounds


def _is_of(found, engine, work):
    """Whether what a cell has of an engine, or None, was measured with its program."""
    return found is not None and (not isinstance(engine, Peer)
                                  or found.get("program") == engine.digest(work))


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
            found = json.loads(path.read_text(encoding="utf-8"))
            theirs = found["identity"] if found["format"] == _FORMAT else {"format": "another"}
        except (OSError, ValueError, KeyError, TypeError):
            raise Failure(f"{path} is not a report's data; --fresh begins anew")
        for what, text in identity.items():
            if theirs.get(what) != text:
                raise Failure(f"{path} was measured with another {what}; --fresh begins anew, "
                              "--name measures beside it")
        # Earlier versions of this script kept a file's folder, which is nobody's business.
        found["cells"] = [cell for cell in found["cells"] if "/" not in cell["model"]]
        self.data = found

    def find(self, model, threads, work, rounds, engines):
        """The cell in which all these engines did the work or failed to, if there is one.

        It was measured with this file of the model and these programs: where the data of an earlier
        version of this script do not say so, it is none. Inlay's program is the data's identity.
        """
        for cell in self.data["cells"]:
            if (_key(cell) == _key_of(model, threads, work, rounds)
                    and cell.get("file", "") == model.digest
                    and all(_is_of(cell["engines"].get(e.name), e, work)
                            for e in engines if e.takes(work))):
                return cell
        return None

    def is_done(self, model, threads, work, rounds, engines):
        """Whether there is such a cell and none of these engines failed."""
        cell = self.find(model, threads, work, rounds, engines)
        return cell is not None and not any(
            cell["engines"][e.name]["failure"] for e in engines if e.takes(work))

    def add(self, model, threads, work, rounds, engines, measured):
        """Keeps what programs.measure_in_turn() gave, in the place of an earlier cell."""
        key = _key_of(model, threads, work, rounds)
        self.data["cells"] = [c for c in self.data["cells"] if _key(c) != key]
        kept = {}
        for engine in engines:
            m = measured[engine.name]
            kept[engine.name] = {"seconds": m.seconds, "failure": m.failure,
                                 "tests": {test: _summary(r)
                                           for (test, _), r in m.records.items()}}
            if isinstance(engine, Peer):
                kept[engine.name]["program"] = engine.digest(work)
            self.spend(engine.name, m.seconds)
        self.data["cells"].append({"model": model.name, "file": model.digest, "threads": threads,
                                   "work": key[2], "rounds": rounds, "date": _now(),
                                   "engines": kept})
        self.save()

    def spend(self, what, seconds):
        self.data["spent"][what] = self.data["spent"].get(what, 0) + seconds

    def save(self):
        """In one step: a report that is stopped loses no cell but the one it is at."""
        os.replace(self._write(), self.path)

    def check_folder(self):
        """Fails where save() would, before hours of measuring."""
        os.remove(self._write())

    def _write(self):
        """Writes the data beside the file. Returns where."""
        fresh = self.path.with_name(self.path.name + ".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps(self.data, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise Failure(f"{fresh} cannot be written: {error.strerror}")
        return fresh
