"""Answers, as they come."""
from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from . import errors
from ._cdef import ffi
from ._library import cancel_when, check, error_type, last_sentence, lib, ready
from .options import StopReason


class Generation(Iterator[str], AsyncIterator[str]):
    """An answer as an iterator, and an async iterator, over its pieces of text: complete
    characters that cannot belong to a stop text.

    Until it has ended, nothing else can be done with its sequence. `close()`, or leaving a `with`,
    ends it early: the sequence then has the tokens of all pieces. In a chat that ends within the
    prompt the sequence is as it was. An answer that is only dropped may leave its sequence without
    the tokens of the latest piece.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._piece = ffi.new("inlay_piece *", {"size": ffi.sizeof("inlay_piece")})
        self._lock = threading.RLock()  # of the library's calls
        self._stepping = False  # the thread that has the lock is in a step
        self._abandoned = False
        self._closed = False  # no further step begins
        self._text: list[str] = []
        self.tokens: list[int] = []  # generated so far, without an end-of-generation token
        # With Options.log_probabilities: the natural logarithm of the probability that the model
        # gives each of the tokens before any option.
        self.log_probabilities: list[float] = []
        self.stop_reason: StopReason | None = None  # once it has ended by itself

    @property
    def text(self) -> str:
        """All pieces so far."""
        return "".join(self._text)

    def result(self) -> str:
        """Runs to the end. The whole text."""
        for _ in self:
            pass
        return self.text

    def close(self) -> None:
        """Ends the answer after its latest piece. Fine when it has ended, in any thread, and in
        handlers of signals: the iteration that one of them interrupts ends after its step."""
        self._closed = True  # ends a prompt that another thread is computing
        with self._lock:
            # Not from within a step of this thread, which does it at its end.
            if not self._stepping:
                self._stop()

    def _stop(self) -> None:
        ready()
        check(lib.inlay_stop_generation(self._handle))

    def __enter__(self) -> Generation:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Generation:
        return self

    def __next__(self) -> str:
        piece = self._next()
        if piece is None:
            raise StopIteration
        return piece

    def __aiter__(self) -> Generation:
        return self

    async def __anext__(self) -> str:
        try:
            piece = await asyncio.to_thread(self._next)
        except asyncio.CancelledError:
            self._abandoned = True  # a prompt that is being computed ends soon
            raise
        if piece is None:
            raise StopAsyncIteration
        return piece

    def _next(self) -> str | None:
        """The next piece that is not empty; None at the end."""
        with self._lock:
            while True:
                self._stepping = True
                try:
                    piece = "" if self._closed else self._step()
                finally:
                    self._stepping = False
                    if self._closed:
                        self._stop()
                if piece or self._closed:
                    return piece or None

    def _step(self) -> str:
        ready()
        self._piece.text_size = self._piece.token_count = self._piece.done = 0
        try:
            with cancel_when(lambda: self._abandoned or self._closed):
                check(lib.inlay_next_piece(self._handle, self._piece))
        except BaseException as error:
            # Handlers of signals may also raise just after a step that has succeeded: its piece
            # counts, and the answer must give its sequence back.
            closing, self._closed = self._closed, True
            self._take(self._piece)
            if closing and isinstance(error, errors.CancelledError):
                return ""  # by close()
            raise
        return self._take(self._piece)

    def _take(self, piece: Any) -> str:
        """Adds the piece to what there is; its text."""
        text = ""
        if piece.text_size > 0:
            text = bytes(ffi.buffer(piece.text, piece.text_size)).decode("utf-8", "replace")
        if piece.token_count > 0:
            self.tokens.extend(ffi.unpack(piece.tokens, piece.token_count))
            if piece.log_probabilities != ffi.NULL:
                self.log_probabilities.extend(
                    ffi.unpack(piece.log_probabilities, piece.token_count))
        if piece.done:
            self._closed = True
            if piece.status == lib.INLAY_OK:
                self.stop_reason = StopReason(piece.reason)
        if text:
            self._text.append(text)
        return text


def generate_together(answers: Iterable[Generation]) -> Iterator[tuple[Generation, str]]:
    """Runs answers of one model to their ends, a pass for the next steps of all: each answer with
    its next text, as they come. The texts are the same as of each alone, in less time than in
    threads.

    An answer that fails alone, for lack of memory, ends while the others go on, and BatchError
    follows once they have ended. An error of the whole pass, and Ctrl-C, end all of them.
    """
    given = list(answers)
    failed: dict[int, type[errors.InlayError]] = {}
    sentences: list[str] = []
    while not all(answer._closed for answer in given):
        texts, statuses = _step_together(given)
        failed.update({i: error_type(status) for i, status in statuses.items()
                       if status != lib.INLAY_OK})
        if any(statuses.values()):
            sentences.append(last_sentence())
        yield from ((given[i], text) for i, text in texts.items() if text)
    if failed:
        raise errors.BatchError("; ".join(sentences), failed)


def _step_together(given: list[Generation]) -> tuple[dict[int, str], dict[int, int]]:
    """The texts of the next pieces of those that have not ended, and the statuses."""
    with ExitStack() as locks:
        # In one order, so that no two calls wait for each other.
        for answer in sorted(given, key=id):
            locks.enter_context(answer._lock)
        running = {i: answer for i, answer in enumerate(given) if not answer._closed}
        handles = ffi.new("inlay_generation *[]", [a._handle for a in running.values()])
        pieces = ffi.new("inlay_piece[]", [{"size": ffi.sizeof("inlay_piece")} for _ in running])
        try:
            for answer in running.values():
                answer._stepping = True
            try:
                ready()
                check(lib.inlay_next_pieces(handles, len(running), pieces))
                if any(piece.status == lib.INLAY_CANCELLED for piece in pieces):
                    check(lib.INLAY_CANCELLED)
            except (errors.InvalidArgumentError, errors.FailedPreconditionError):
                raise  # before anything was computed
            except BaseException:
                # Handlers of signals may also raise just after a pass that has succeeded.
                for answer, piece in zip(running.values(), pieces):
                    answer._closed = True
                    answer._take(piece)
                raise
            texts = {i: answer._take(piece)
                     for (i, answer), piece in zip(running.items(), pieces)}
            statuses = {i: int(piece.status) for i, piece in zip(running, pieces)}
        finally:
            for answer in running.values():
                answer._stepping = False
            for answer in running.values():
                if answer._closed:
                    answer._stop()
    return texts, statuses
