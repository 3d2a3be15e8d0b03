"""Sequences: conversations with a model."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from . import errors
from ._arrays import Floats, Ids, LogitRow, Tokens, Turn, change, ids_of, read_only
from ._cdef import ffi
from ._library import check, fill, lib, made, path_of
from .chat import Chat
from .generation import Generation
from .options import COptions, Options

if TYPE_CHECKING:
    from .model import Model


class Sequence:
    """The tokens of one conversation, and what the model keeps of them: Model.sequence makes one.

    An append takes effect as a whole or not at all. The logits after a token depend on the weights
    and the tokens before it alone, bit for bit, however they came to be there.

    One thread at a time can use a sequence: a second one is refused with FailedPreconditionError.
    """

    def __init__(self, model: Model, handle: Any, row: LogitRow) -> None:
        self._model = model
        self._handle = handle
        self._row = row

    @property
    def model(self) -> Model:
        return self._model

    def __len__(self) -> int:
        return int(lib.inlay_cache_length(self._handle))

    @property
    def tokens(self) -> Ids:
        """All tokens, int32 [length]: a copy."""
        found: Ids
        found, count = fill(  # larger than at first where another thread has appended meanwhile
            lambda capacity: np.empty(capacity, np.int32),
            lambda ids, *out: lib.inlay_copy_tokens(
                self._handle, ffi.from_buffer("int32_t[]", ids), *out),
            len(self))
        return found[:count]

    @property
    def text(self) -> str:
        """All tokens as text, control tokens left out."""
        return self._model.detokenize(self.tokens)

    @property
    def max_length(self) -> int:
        """The most tokens that it can have."""
        return int(lib.inlay_cache_max_length(self._handle))

    @property
    def rewind_floor(self) -> int:
        """The least length but 0 to which it can be rewound now."""
        return int(lib.inlay_cache_rewind_floor(self._handle))

    @property
    def rewind_depth(self) -> int:
        """Rewinds to within this many tokens of the greatest length that the sequence has had,
        also before it was saved, are always possible; after a trim, and in a sequence loaded from
        one saved after it, those that drop only tokens appended since."""
        return int(lib.inlay_rewind_depth(self._handle))

    @property
    def nbytes(self) -> int:
        """Bytes of memory, those that forks share included; see inlay.shared_bytes."""
        return shared_bytes([self])

    def append(self, tokens: Tokens, *, logits: bool = True) -> None:
        """Appends a token or any number of tokens, and computes the logits after the last one
        unless `logits` is false.

        Ctrl-C in the main thread ends a long append, which then has changed nothing.
        """
        self._append(*ids_of(tokens), logits)

    def _append(self, ids: Any, count: int, logits: bool) -> None:
        row = self._row
        if logits:
            change((row,), lambda: lib.inlay_append(self._handle, ids, count, row.to_write()),
                   row.written)
        else:
            change((row,), lambda: lib.inlay_append(self._handle, ids, count, ffi.NULL))

    @property
    def logits(self) -> Floats:
        """The logits after the last token, float32 [vocabulary size]: a view without a copy, which
        cannot be written and stays as it is whatever becomes of the sequence.

        FailedPreconditionError where the last token was not appended with logits: after a rewind,
        a load or an answer, or in an empty sequence; also where the handler of a signal (Ctrl-C)
        has raised just as the append began or ended.
        """
        array = self._row.array
        if array is None:
            raise errors.FailedPreconditionError(
                "the sequence has no logits of its last token: append with logits computes them")
        return read_only(array)

    def rewind(self, length: int) -> None:
        """Makes the sequence end before token `length`, which is 0 or at least rewind_floor. What
        follows has the same bits as if the dropped tokens had never been there."""
        if length < 0:
            raise errors.OutOfRangeError(f"a length of {length} is negative")

        def rewind() -> Any:
            if length >= len(self):
                self._row.unhide()  # the last token stays
            return lib.inlay_rewind_cache(self._handle, length)

        change((self._row,), rewind)

    def trim(self, rewind: int = 0) -> None:
        """Gives back the memory that only rewinds by more than `rewind` tokens need: of a hybrid's
        states about half. For sequences that wait; the next append, to it or to a fork, takes the
        memory again and has the same bits."""
        if rewind < 0:
            raise errors.OutOfRangeError(f"a rewind by {rewind} tokens is negative")
        check(lib.inlay_trim_cache(self._handle, rewind))

    def fork(self) -> Sequence:
        """A sequence with the same past and logits, which continues independently. Both share
        their memory until one of them writes."""
        turn = Turn()
        try:
            self._row.begin(turn)  # its tokens and its logits are those of one moment
            handle = made("inlay_cache **",
                          lambda out: check(lib.inlay_fork_cache(self._handle, out)),
                          lib.inlay_free_cache)
            return Sequence(self._model, handle, self._row.copy())
        finally:
            turn.over = True

    def __copy__(self) -> Sequence:
        return self.fork()

    def __deepcopy__(self, _memo: object) -> Sequence:
        return self.fork()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the sequence to a file, which then holds all of it or, on error, what it held
        before. Refused if the file exists and is not a saved sequence."""
        check(lib.inlay_save_cache(self._handle, path_of(path)))

    def load(self, path: str | os.PathLike[str], *, exact: bool = False) -> int:
        """Replaces the sequence by a saved one; the number of tokens that had to be computed again,
        most often 0. If another version of the library, other weights, another instruction set or
        another type of rows has computed it, all are; with `exact` it is refused instead.

        Both sequences are held until it has succeeded: OutOfMemoryError where the `limit_bytes` of
        Model.sequence are too few for that. They are enough for an empty one."""
        recomputed = ffi.new("size_t *")
        name = path_of(path)
        change((self._row,), lambda: lib.inlay_load_cache(self._handle, name, exact, recomputed))
        return int(recomputed[0])

    def sample(self, options: Options | None = None, *, answer: int = 0) -> int:
        """The token that `options` choose by the logits: what `generate` would append next. The
        last `answer` tokens of the sequence are those of the answer, which penalties count."""
        logits = self.logits
        token = ffi.new("int32_t *")
        c = COptions(self._model._handle, options)
        check(lib.inlay_sample(self._handle, ffi.from_buffer("float[]", logits), c.struct, answer,
                               token))
        return int(token[0])

    def generate(self, prompt: str | Tokens | Chat, options: Options | None = None) -> Generation:
        """Appends a prompt, at least one token, and generates an answer to it. A text is appended
        without BOS unless the sequence is empty."""
        handle = None
        if isinstance(prompt, Chat):
            handle = prompt._handle
            prompt = prompt.tokens
        elif isinstance(prompt, str):
            prompt = self._model.tokenize(prompt, bos=None if len(self) == 0 else False)
        ids, count = ids_of(prompt)
        c = COptions(self._model._handle, options, handle)
        return Generation(made(
            "inlay_generation **",
            lambda out: change((self._row,), lambda: lib.inlay_start_generation(
                self._handle, ids, count, c.struct, out)),
            lib.inlay_free_generation))


def shared_bytes(sequences: list[Sequence]) -> int:
    """Bytes of memory that sequences hold in all: what forks share counts once."""
    handles = ffi.new("inlay_cache *[]", [s._handle for s in sequences])
    found = ffi.new("size_t *")
    check(lib.inlay_cache_bytes(handles, len(sequences), found))
    return int(found[0])
