"""Tokens and logits between NumPy and C."""
from __future__ import annotations

import sys
from collections.abc import Sequence as SequenceOf
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from ._cdef import ffi

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


class LogitRow:
    """A sequence's latest logits, [vocabulary size], in memory that is used again while nobody else
    looks at it: what a caller holds never changes."""

    def __init__(self, vocabulary_size: int) -> None:
        self._size = vocabulary_size
        self.array: Floats | None = None  # None: the last token has no logits
        self._pointer: Any = None  # to the array, where it may be written again

    def to_write(self) -> tuple[Floats, Any]:
        """An array for the next logits, and its memory as float *. `written` shows it; until then
        the caller holds it, as another thread may do what is refused to it. The latest logits
        cannot be seen meanwhile where it is their array; `keep` shows them again."""
        # Two references: this object's and the argument's. A view, or a fork's row, is a third.
        if self._pointer is not None and sys.getrefcount(self.array) <= 2:
            assert self.array is not None
            array, self.array = self.array, None
            return array, self._pointer
        array = np.empty(self._size, np.float32)
        return array, floats_at(array)

    def written(self, array: Floats, pointer: Any) -> None:
        self.array = array
        self._pointer = pointer

    def keep(self, array: Floats, pointer: Any) -> None:
        """What to_write gave was not written."""
        if pointer == self._pointer:
            self.array = array

    def show(self, array: Floats) -> None:
        """Shows logits in the memory of others."""
        self.array = array
        self._pointer = None

    def clear(self) -> None:
        self.array = None
        self._pointer = None

    def copy(self) -> LogitRow:
        """The same logits, without a copy of them."""
        other = LogitRow(self._size)
        other.array = self.array
        return other
