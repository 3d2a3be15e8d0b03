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


def ids_of(tokens: Tokens) -> tuple[Any, int]:
    """Tokens as int32_t[count], and the count."""
    if isinstance(tokens, (int, np.integer)):
        return ffi.new("int32_t[1]", (int(tokens),)), 1
    if isinstance(tokens, np.ndarray):
        if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
            raise TypeError(f"tokens are {tokens.dtype}{list(tokens.shape)}, not integers in one "
                            "dimension")
        ids = np.ascontiguousarray(tokens, np.int32)
        if not np.array_equal(ids, tokens):
            raise OverflowError("a token does not fit in 32 bits")
        return ffi.from_buffer("int32_t[]", ids), len(ids)
    ids = ffi.new("int32_t[]", tokens if isinstance(tokens, (list, tuple)) else list(tokens))
    return ids, len(ids)


def floats_at(array: Floats) -> Any:
    """The array's memory as float *. The array must stay as long as that is used."""
    return ffi.cast("float *", array.ctypes.data)


def read_only(array: Floats) -> Floats:
    view = array.view()
    view.flags.writeable = False
    return view


class LogitRow:
    """Memory for one row of logits, [vocabulary size], that is used again while nobody else looks
    at it: what a caller holds never changes."""

    def __init__(self, vocabulary_size: int) -> None:
        self._size = vocabulary_size
        self._array: Floats | None = None
        self._pointer: Any = None
        self._reusable = False

    def to_write(self) -> Any:
        """Where the next logits go, as float *."""
        # Two references: this object's and the argument's. A view, or a fork's row, is a third.
        if not self._reusable or sys.getrefcount(self._array) > 2:
            self._array = np.empty(self._size, np.float32)
            self._pointer = floats_at(self._array)
            self._reusable = True
        return self._pointer

    def set(self, array: Floats) -> None:
        """Shows a row of another array, [vocabulary size]."""
        self._array = array
        self._reusable = False

    def clear(self) -> None:
        self._array = None
        self._reusable = False

    def copy(self) -> LogitRow:
        """The same logits, without a copy of them."""
        other = LogitRow(self._size)
        other._array = self._array
        return other

    @property
    def array(self) -> Floats | None:
        return self._array
