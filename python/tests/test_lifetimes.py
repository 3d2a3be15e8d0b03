"""Objects outlive each other in any order, and threads and signals end calls."""
from __future__ import annotations

import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import inlay
from conftest import BARD, PROMPT
from inlay._library import lib


def use(name: str, thing: Any) -> None:
    """Does something with it that reaches the library."""
    if name == "model":
        assert thing.tokenize(PROMPT)
    elif name in ("sequence", "fork"):
        thing.append(1)
    elif name == "logits":
        assert thing.shape == (1024,) and (thing == thing).all()
    elif name == "answer":
        assert next(thing)
    else:
        assert thing.tokens


def test_any_order_of_deaths() -> None:
    names = ["model", "sequence", "fork", "logits", "answer", "chat"]
    for order in itertools.islice(itertools.permutations(names), 0, None, 7):  # some of the 720
        model = inlay.Model.load(BARD, threads=1) if "model" == order[0] else _shared()
        sequence = model.sequence([1, 2])
        things = {"model": model, "sequence": sequence, "fork": sequence.fork(),
                  "logits": sequence.logits, "answer": sequence.fork().generate("To be"),
                  "chat": model.chat([{"role": "user", "content": "a"}])}
        ended = sequence.fork().generate("To be", inlay.Options(max_tokens=2))
        ended.result()
        del model, sequence
        for name in order:
            del things[name]
            for left, thing in things.items():
                use(left, thing)


def test_a_forked_process_ends_at_once() -> None:
    """Though a thread of its parent was in a call, of which it has a copy."""
    script = f"""if True:
        import os, sys, threading
        import inlay
        model = inlay.Model.load({str(BARD)!r}, threads=1)
        asked, over = threading.Event(), threading.Event()
        def compute():
            with inlay.cancel_when(lambda: asked.set() or over.is_set()):
                try:
                    model.sequence(max_length=1 << 22).append([1] * 4000000)
                except inlay.CancelledError:
                    pass
        thread = threading.Thread(target=compute)
        thread.start()
        asked.wait()
        child = os.fork()
        if child == 0:
            import inlay._library
            assert inlay._library._inside == 0
            sys.exit(5)
        _, status = os.waitpid(child, 0)
        over.set()
        thread.join()
        print(os.waitstatus_to_exitcode(status))"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (run.stdout, run.returncode) == ("5\n", 0), run.stderr


_models: list[inlay.Model] = []


def _shared() -> inlay.Model:
    if not _models:
        _models.append(inlay.Model.load(BARD, threads=1))
    return _models[0]


def test_circles_of_garbage() -> None:
    for _ in range(3):
        model = inlay.Model.load(BARD, threads=1)
        circle: dict[str, Any] = {"model": model}
        circle["sequence"] = model.sequence([1, 2])
        circle["answer"] = circle["sequence"].generate("a")
        next(circle["answer"])
        circle["self"] = circle
        del model, circle
        gc.collect()


def test_ends_with_objects_alive() -> None:
    """At exit Python drops what is left in an order of its own."""
    script = f"""
import inlay
model = inlay.Model.load({str(BARD)!r}, threads=2)
sequence = model.sequence([1, 2])
answer = sequence.fork().generate("To be")
ended = sequence.fork().generate("To be", inlay.Options(max_tokens=5))
ended.result()
print(next(answer) != "", sequence.logits.shape)
"""
    for _ in range(3):
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert (run.returncode, run.stdout, run.stderr) == (0, "True (1024,)\n", "")


def test_ends_with_a_daemon_thread_in_a_long_call() -> None:
    """The call ends before Python does, and nothing that the thread would have done follows."""
    script = f"""
import atexit, threading, time, inlay
model = inlay.Model.load({str(BARD)!r}, threads=1)
sequence, began = model.sequence(max_length=1 << 20), threading.Event()
def work():
    began.set()
    while True:
        try:
            sequence.append([1, 2, 3] * 100000)
        except BaseException as error:
            print(repr(error))
            raise
threading.Thread(target=work, daemon=True).start()
began.wait()
time.sleep(0.1)
"""
    for _ in range(3):
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_tokens_while_another_thread_changes_them(bard: inlay.Model, prompt: list[int]) -> None:
    sequence = bard.sequence(max_length=5000)
    end = threading.Event()
    read = 0

    def work() -> None:
        while not end.is_set():
            try:
                sequence.append(prompt, logits=False)
                sequence.rewind(0)
            except inlay.FailedPreconditionError:
                pass

    worker = threading.Thread(target=work)
    worker.start()
    try:
        while read < 20:
            try:
                assert sequence.tokens.tolist() in ([], prompt)
                read += 1
            except inlay.FailedPreconditionError:
                time.sleep(0)
    finally:
        end.set()
        worker.join()


def test_another_thread_runs_meanwhile_and_can_end_a_call(bard: inlay.Model,
                                                          prompt: list[int]) -> None:
    sequence = bard.sequence(prompt, max_length=1 << 20)
    began, end = threading.Event(), threading.Event()
    caught: list[BaseException] = []

    def append() -> None:
        began.set()
        while not caught:
            try:
                with inlay.cancel_when(end.is_set):
                    sequence.append(prompt * 30000)  # minutes
                return
            except inlay.FailedPreconditionError:
                pass  # refused() was using it at that moment
            except inlay.InlayError as error:
                caught.append(error)

    worker = threading.Thread(target=append)
    worker.start()
    began.wait()
    # The pass has released Python's lock, or this would come after its end.
    while not refused(sequence) and worker.is_alive():
        time.sleep(0.001)
    end.set()
    worker.join()
    assert [type(error) for error in caught] == [inlay.CancelledError]
    assert sequence.tokens.tolist() == prompt


def refused(sequence: inlay.Sequence) -> bool:
    """Whether another thread is using it."""
    try:
        sequence.fork()
    except inlay.FailedPreconditionError:
        return True
    return False


def test_threads_that_share_a_sequence(bard: inlay.Model, prompt: list[int]) -> None:
    """What one does is refused while another does something, and nothing is torn."""
    sequence = bard.sequence(prompt, max_length=5000)
    appended: list[int] = []

    def work(token: int) -> None:
        done = 0
        while done < 30:
            try:
                sequence.append(token)
            except inlay.FailedPreconditionError:
                time.sleep(0)  # others may go on
                continue
            done += 1
            appended.append(token)

    threads = [threading.Thread(target=work, args=(token,)) for token in (3, 4, 5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(sequence) == len(prompt) + 90
    assert sorted(sequence.tokens[len(prompt):].tolist()) == sorted(appended)
    again = bard.sequence(sequence.tokens)
    for s in (sequence, again):
        s.append(1)
    assert (sequence.logits == again.logits).all()


@pytest.mark.parametrize("call", ["append", "generate", "perplexity"])
def test_ctrl_c_ends_a_long_call(bard: inlay.Model, prompt: list[int], call: str) -> None:
    sequence = bard.sequence(prompt, max_length=1 << 20)
    long = prompt * 30000
    calls: dict[str, Callable[[], object]] = {
        "append": lambda: sequence.append(long),
        "generate": lambda: next(sequence.generate(long)),
        "perplexity": lambda: bard.perplexity(long, chunk=len(long))}
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        calls[call]()
    timer.join()
    assert sequence.tokens.tolist() == prompt
    again = bard.sequence(prompt)
    for s in (sequence, again):
        s.append(3)
    assert (again.logits == sequence.logits).all()


class Interrupted:
    """The library, with a call that Ctrl-C interrupts just after it has succeeded."""

    def __init__(self, interrupted: str) -> None:
        self._interrupted = interrupted
        self.freed: list[str] = []

    def __getattr__(self, name: str) -> Any:
        real = getattr(lib, name)

        def call(*arguments: Any) -> None:
            assert real(*arguments) == 0
            raise KeyboardInterrupt

        def free(handle: Any) -> None:
            self.freed.append(name)
            real(handle)

        if name == self._interrupted:
            return call
        return free if name.startswith("inlay_free_") else real


@pytest.mark.parametrize("name, kind", [("load_model", "model"), ("create_cache", "cache"),
                                        ("fork_cache", "cache"), ("render_chat", "chat"),
                                        ("start_generation", "generation")])
def test_no_handle_is_lost(bard: inlay.Model, prompt: list[int], monkeypatch: pytest.MonkeyPatch,
                           name: str, kind: str) -> None:
    sequence = bard.sequence(prompt)
    calls: dict[str, Callable[[], object]] = {
        "load_model": lambda: inlay.Model.load(BARD, threads=1), "create_cache": bard.sequence,
        "fork_cache": sequence.fork, "render_chat": lambda: bard.chat([{"role": "user",
                                                                        "content": "a"}]),
        "start_generation": lambda: sequence.generate([3])}
    interrupted = Interrupted(f"inlay_{name}")
    with monkeypatch.context() as patch:
        for module in ("model", "sequence"):
            patch.setattr(f"inlay.{module}.lib", interrupted)
        with pytest.raises(KeyboardInterrupt):
            calls[name]()
    assert interrupted.freed == [f"inlay_free_{kind}"]
    sequence.append(3)  # no lost answer keeps it


@pytest.mark.parametrize("call", ["append", "append without logits", "forward", "rewind", "load",
                                  "generate"])
def test_no_logits_outlive_their_token(bard: inlay.Model, prompt: list[int], tmp_path: Path,
                                       monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    sequence = bard.sequence(prompt)
    file = tmp_path / "sequence.kv"
    bard.sequence(prompt[:2]).save(file)
    calls: dict[str, tuple[str, Callable[[], object]]] = {
        "append": ("append", lambda: sequence.append(3)),
        "append without logits": ("append", lambda: sequence.append(3, logits=False)),
        "forward": ("forward", lambda: bard.forward([(sequence, 3)])),
        "rewind": ("rewind_cache", lambda: sequence.rewind(2)),
        "load": ("load_cache", lambda: sequence.load(file)),
        "generate": ("start_generation", lambda: sequence.generate([3]))}
    name, interrupt = calls[call]
    with monkeypatch.context() as patch:
        for module in ("model", "sequence"):
            patch.setattr(f"inlay.{module}.lib", Interrupted(f"inlay_{name}"))
        with pytest.raises(KeyboardInterrupt):
            interrupt()
    with pytest.raises(inlay.FailedPreconditionError, match="no logits"):
        sequence.logits
    again = bard.sequence(sequence.tokens)
    for s in (sequence, again):
        s.append(5)
    assert (sequence.logits == again.logits).all()


def test_a_thread_is_refused_until_the_logits_of_another_are_there(
        bard: inlay.Model, prompt: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    sequence = bard.sequence(prompt)
    uses: list[Callable[[], object]] = [
        lambda: sequence.append(5), lambda: sequence.append(5, logits=False), sequence.fork,
        lambda: sequence.rewind(1), lambda: bard.forward([(sequence, 5)])]
    refusals = 0

    def use() -> None:
        nonlocal refusals
        for one in uses:
            with pytest.raises(inlay.FailedPreconditionError, match="in use"):
                one()
            refusals += 1

    class Slow:
        """The library, which another thread can use before an append has come back to Python."""

        def __getattr__(self, name: str) -> Any:
            real = getattr(lib, name)

            def append(*arguments: Any) -> Any:
                status = real(*arguments)
                monkeypatch.undo()
                other = threading.Thread(target=use)
                other.start()
                other.join()
                return status

            return append if name == "inlay_append" else real

    monkeypatch.setattr("inlay.sequence.lib", Slow())
    sequence.append(3)
    assert refusals == len(uses)
    assert sequence.tokens.tolist() == [*prompt, 3]
    assert (sequence.logits == bard.sequence([*prompt, 3]).logits).all()


def test_what_a_check_raises_comes_out(bard: inlay.Model, prompt: list[int]) -> None:
    def stop() -> bool:
        raise LookupError("from the check")

    sequence = bard.sequence(prompt, max_length=1 << 20)
    before = sequence.logits.copy()
    for logits in (True, False):
        with inlay.cancel_when(stop), pytest.raises(LookupError, match="from the check"):
            sequence.append(prompt * 30000, logits=logits)
        assert len(sequence) == len(prompt)
        assert (sequence.logits == before).all()
    sequence.append(prompt)
