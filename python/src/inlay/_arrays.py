"""Tokens and logits between NumPy and C."""
from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence as SequenceOf
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from . import errors
from ._cdef import ffi
from ._library import check, ready

Floats = NDArray[np.float32]
Ids = NDArray[np.int32]
# A token, or tokens as a list or an array.
Tokens = Union[int, SequenceOf[int], NDArray[np.integer[Any]]]

_ONE = ffi.typeof("int32_t[1]")


def ids_of(tokens: Tokens) -> tuple[Any, int]:
    """Tokens as int32_t[count], and the count."""
    if type(tokens) is int:  # most often, and what follows takes longer
        return ffi.new(_ONE, (tokens,)), 1
    if isinstance(tokens, (int, np.integer)):
        return ffi.new(_ONE, (int(tokens),)), 1
    if isinstance(tokens, np.ndarray):
        if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
            raise TypeError(f"tokens are {tokens.dtype}{list(tokens.shape)}, not integers in one "
                            "dimension")
        ids = np.ascontiguousarray(tokens, np.int32)
        if not np.array_equal(ids, tokens):
            raise OverflowError("a token does not fit in 32 bits")
        return ffi.from_buffer("int32_t[]", ids), len(ids)
    given = tokens if isinstance(tokens, (list, tuple)) else list(tokens)
    for token in given:
        if type(token) is not int and not isinstance(token, (int, np.integer)):
            # C would cut a NumPy float off without a word.
            raise TypeError(f"the token {token!r} is no integer")
    return ffi.new("int32_t[]", given), len(given)


def floats_at(array: Floats) -> Any:
    """The array's memory as float *. The array must stay as long as that is used."""
    return ffi.cast("float *", array.ctypes.data)


def read_only(array: Floats) -> Floats:
    view = array.view()
    view.flags.writeable = False
    return view


class Turn:
    """That of one call with its sequences, until `over` is set: in a `finally`, by an assignment,
    before which no handler of a signal can come."""

    over = False


class LogitRow:
    """A sequence's latest logits, [vocabulary size], in memory that is used again while nobody else
    looks at it: what a caller holds never changes."""

    def __init__(self, vocabulary_size: int) -> None:
        self._size = vocabulary_size
        self.array: Floats | None = None  # None: the last token has no logits
        self._pointer: Any = None  # to the array, where it may be written again
        self._turn: Turn | None = None  # the latest
        self.hidden: Floats | None = None  # what `hide` has hidden
        self._next: tuple[Floats, Any] | None = None  # an array and the pointer to it

    def begin(self, turn: Turn) -> None:
        """FailedPreconditionError where another turn is not over."""
        if self._turn is not None and not self._turn.over:
            raise errors.FailedPreconditionError("the sequence is in use by another call")
        self._turn = turn

    # The following are for the turn that has begun.

    def hide(self) -> None:
        """The logits are not seen from here on, unless `unhide` follows."""
        self._next = None
        self.hidden, self.array = self.array, None

    def unhide(self) -> None:
        if self.hidden is not None:
            self.hidden, self.array = None, self.hidden

    def to_write(self) -> Any:
        """Memory for the next logits, as float *, of logits that are hidden. `written` shows it."""
        # Two references: this object's and the argument's. A view, or a fork's row, is a third.
        if self._pointer is not None and sys.getrefcount(self.hidden) <= 2:
            assert self.hidden is not None
            self._next = self.hidden, self._pointer
        else:
            array = np.empty(self._size, np.float32)
            self._next = array, floats_at(array)
        return self._next[1]

    def written(self) -> None:
        assert self._next is not None
        self.array, self._pointer = self._next
        self._next = self.hidden = None

    def show(self, logits: Floats) -> None:
        """Shows a copy of them."""
        self.to_write()
        assert self._next is not None
        self._next[0][:] = logits
        self.written()

    def copy(self) -> LogitRow:
        """The same logits, without a copy of them."""
        other = LogitRow(self._size)
        other.array = self.array
        return other


def change(rows: Collection[LogitRow], call: Callable[[], Any],
           then: Callable[[], None] = lambda: None) -> None:
    """Runs a call that may change the last tokens of the sequences of `rows`, and `then` once it
    has succeeded. Their logits are hidden from its beginning, so that none outlives its token where
    the handler of a signal raises just after it, and seen again where it is refused.
    FailedPreconditionError while another such call is under way."""
    turn = Turn()
    try:
        for row in rows:
            row.begin(turn)
        for row in rows:
            row.hide()
        ready()
        status = call()
        if status != 0:
            for row in rows:
                row.unhide()
        check(status)
        then()
        for row in rows:
            row.hidden = None
    finally:
        turn.over = True
