"""Writes the page of a report and its charts from what was measured."""

import re
import statistics

from benchmarks import bar_chart


def number(x):
    return f"{x:,.0f}" if x >= 100 else f"{x:.1f}"


def duration(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def threads_words(threads):
    return f"{threads} thread{'s' if threads != 1 else ''}"


def table(head, rows):
    """Markdown; the first column is text."""
    return "\n".join(["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
                     + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


class Column:
    """One of the things that models do."""

    def __init__(self, name, title, test, work):
        self.name = name    # of its chart's file
        self.title = title
        self.test = test    # "pp" or "tg"
        self.work = work


def columns(works):
    """The columns of these kinds of work, each with one depth."""
    found = []
    for work in works:
        depth = f" after {work.depths[0]:,}" if work.depths != (0,) else ""
        if work.prompt:
            found.append(Column("prefill", f"prefill {work.prompt}{depth}", "pp", work))
        if work.generate and work.batch == 1:
            name = "decode-long" if depth else "decode"
            found.append(Column(name, f"decode {work.generate}{depth}", "tg", work))
        elif work.generate:
            found.append(Column("decode-together", f"decode {work.generate} of {work.batch} "
                                f"conversations{depth}", "tg", work))
    return found


class Report:
    """What the page shows: of the results, these models, numbers of threads, columns and engines."""

    def __init__(self, results, models, threads, columns, engines, rounds):
        self.results = results
        self.models = models
        self.threads = threads
        self.columns = columns
        self.engines = engines
        self.rounds = rounds

    def cell(self, model, threads, column):
        return self.results.find(model, threads, column.work, self.rounds, self.engines)

    def test(self, model, threads, column, engine):
        """What an engine did, or None."""
        cell = self.cell(model, threads, column)
        found = cell["engines"].get(engine.name) if cell else None
        return found["tests"].get(column.test) if found else None

    def peers(self, column):
        """Those that did what the column is about, with one model at least."""
        return [peer for peer in self.engines[1:] if peer.takes(column.work) and
                any(self.test(model, threads, column, peer)
                    for model in self.models for threads in self.threads)]

    def rates(self, threads):
        """The table of one number of threads."""
        head = ["model"]
        for column in self.columns:
            head += [column.title] + [f"× {peer.name}" for peer in self.peers(column)]
        head.append("memory / file, prefill and decode")
        rows = []
        for model in self.models:
            row = [label(model)]
            for column in self.columns:
                own = self.test(model, threads, column, self.engines[0])
                rate = statistics.median(own["rates"]) if own else None
                row.append(f"{number(rate)} ({own['percent']:.0f} %)" if own else "failed")
                for peer in self.peers(column):
                    theirs = self.test(model, threads, column, peer)
                    row.append(f"{rate / statistics.median(theirs['rates']):.2f}"
                               if own and theirs else "failed")
            # Long and many conversations have caches of their own size.
            own = self.test(model, threads, self.columns[0], self.engines[0])
            row.append(f"{own['memory']:.2f}" if own and own["memory"] else "unknown")
            rows.append(row)
        return table(head, rows)

    def chart(self, column):
        """The bars of a column, with the largest number of threads."""
        threads = max(self.threads)
        groups = []
        for model in self.models:
            own = self.test(model, threads, column, self.engines[0])
            bars = {}
            for engine in self.engines:
                theirs = self.test(model, threads, column, engine)
                if own is None or theirs is None:
                    continue
                rate = statistics.median(theirs["rates"])
                # The limit is the machine's, so that a peer's share follows from the rates.
                percent = own["percent"] * rate / statistics.median(own["rates"])
                bars[engine.name] = (percent, f"{number(rate)} tokens/s")
            groups.append((label(model), bars))
        return bar_chart.draw(f"{column.title}, {threads_words(threads)}: percent of the machine's "
                              "limit", [engine.name for engine in self.engines], groups)

    def failures(self):
        """A sentence for each thing that a peer could not do, with the models that it is about."""
        found = {}
        for model in self.models:
            for threads in self.threads:
                for work in dict.fromkeys(column.work for column in self.columns):
                    cell = self.results.find(model, threads, work, self.rounds, self.engines)
                    for name, engine in (cell or {"engines": {}})["engines"].items():
                        if engine["failure"]:
                            # Logs begin with the time, and name the model's file.
                            what = re.sub(r"(?<=: )\d+\.\d\d\.\d{3}\.\d{3} ", "", engine["failure"])
                            what = what.replace(file_name(model), "MODEL")
                            found.setdefault((threads, name, what), []).append(label(model))
        return [f"{threads_words(threads)}, {', '.join(models)}: {name}: {what}"
                for (threads, name, what), models in found.items()]

    def sources(self):
        """{engine: what it says of its build}."""
        found = {}
        for engine in self.engines:
            for model in self.models:
                for threads in self.threads:
                    for column in self.columns:
                        test = self.test(model, threads, column, engine)
                        if test and test["source"]:
                            found.setdefault(engine.name, test["source"])
        return found

    def page(self, name, command, roofline, failures):
        """The page in Markdown. `failures` are sentences about what Inlay could not do."""
        data = self.results.data
        machine = data["machine"]
        dates = sorted(cell["date"] for cell in data["cells"])
        engines = ", ".join(f"{engine} ({source})" for engine, source in self.sources().items())
        together = next((c for c in self.columns if c.work.batch > 1), None)
        parts = [f"# {machine['CPU']}\n",
                 f"Written by `scripts/report`{f' on {dates[-1]}' if dates else ''}:\n",
                 f"    {command}\n",
                 "## The machine\n",
                 "".join(f"- {what}: {text}\n" for what, text in machine.items()),
                 "`inlay limits` measured:\n",
                 "".join(f"    {line}\n" for line in data["limits"].strip().splitlines()),
                 "## Tokens per second\n",
                 f"Medians of {self.rounds} round{'s' if self.rounds != 1 else ''} of "
                 f"{self.columns[0].work.repetitions} repetitions, in parentheses the percentage of "
                 "the machine's limit, measured in the same run: the least time that the operations "
                 "take at the peak of the dot products or the bytes at the read bandwidth, whichever "
                 "is longer, over the time that it took. “×” is Inlay's rate over the peer's, in turn "
                 f"on the same files{'; compared were ' + engines if engines else ''}. Keys and "
                 "values in f16. CONFIG TYPE is a file with random weights in a config's real "
                 f"shape.{' Rates of conversations decoded together are of all of them.' if together else ''}\n"]
        for threads in self.threads:
            parts += [f"### {threads_words(threads).capitalize()}\n", self.rates(threads)]
        parts.append("## Shares of the limit\n")
        parts += [f"![{column.title}]({name}-{column.name}.svg)\n" for column in self.columns]
        if roofline:
            parts += ["## Roofline\n", f"![roofline]({name}-roofline.svg)\n",
                      "One thread; the fastest of three runs of `ops_bench`.\n"]
        failed = failures + self.failures()
        if failed:
            parts += ["## What failed\n", "".join(f"- {sentence}\n" for sentence in failed)]
        spent = ", ".join(f"{what} {duration(seconds)}" for what, seconds in data["spent"].items())
        parts += ["## How long it took\n",
                  f"{duration(sum(data['spent'].values()))}: {spent}. Begun on {data['begun']}; all "
                  f"samples are in [{name}.json]({name}.json).\n"]
        return "\n".join(parts)


def file_name(model):
    """Of the file that the programs are given."""
    return model.name if model.digest else model.name.replace(":", "-") + ".gguf"


def label(model):
    """A model's name in tables: CONFIG TYPE, or a file's without suffix."""
    if model.digest:
        return model.name.removesuffix(".gguf")
    return model.name.replace(":", " ")
