"""Models."""
from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence as SequenceOf
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import errors
from ._arrays import Floats, LogitRow, Tokens, change, floats_at, ids_of
from ._cdef import ffi
from ._library import (check, error_type, fill, last_sentence, lib, made, path_of, ready,
                       text_of)
from .chat import Chat
from .generation import Generation
from .options import Options
from .sequence import Sequence

# How the keys and values of a sequence are stored.
Rows = Literal["f32", "f16", "bf16", "q8"]
_ROWS: dict[str, int] = {"f32": lib.INLAY_ROWS_F32, "f16": lib.INLAY_ROWS_F16,
                         "bf16": lib.INLAY_ROWS_BF16, "q8": lib.INLAY_ROWS_Q8}


def _row_type(rows: str) -> int:
    if rows not in _ROWS:
        raise errors.InvalidArgumentError(f"rows is {rows!r}, not one of {', '.join(_ROWS)}")
    return _ROWS[rows]


class Step(NamedTuple):
    """The next tokens of one sequence in a batch, and after how many of the last ones logits are
    computed."""

    sequence: Sequence
    tokens: Tokens
    rows: int = 1


@dataclass(frozen=True)
class Perplexity:
    """How well a model predicts tokens, by the protocol of llama-perplexity."""

    scored: int  # tokens
    mean_nll: float  # negative log likelihood in nats,
    mean_nll_error: float  # and the standard error of the mean
    perplexity: float  # exp(mean_nll)
    perplexity_error: float  # to first order


class Model:
    """One set of weights and its vocabulary. Threads may share it."""

    def __init__(self, handle: Any) -> None:
        """See `load`."""
        self._handle = handle
        info = ffi.new("inlay_model_info *", {"size": ffi.sizeof("inlay_model_info")})
        check(lib.inlay_get_model_info(handle, info))
        self.config: str = ffi.string(info.config).decode()  # the name of the config that it fits
        # The number of columns of logits. Some models have a few more than their vocabulary has
        # tokens.
        self.vocabulary_size: int = info.vocabulary_size
        self.token_count: int = info.token_count  # of the vocabulary; 0: the file holds none
        self.context_length: int = info.context_length  # the trained length, in tokens
        self.embedding_dim: int = info.embedding_dim  # of a model that embeds texts; 0: of others
        self.max_batch: int = info.max_batch  # the most tokens of one `forward`
        self.layers: int = info.layers
        self.bos: int | None = info.bos if info.bos >= 0 else None
        self.eos: int | None = info.eos if info.eos >= 0 else None
        self.unknown: int | None = info.unknown if info.unknown >= 0 else None
        self.adds_bos: bool = bool(info.adds_bos)  # whether a text starts with BOS
        self.has_template: bool = bool(info.has_template)  # whether the file has a chat template

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, threads: int = 0,
             check_tensors: bool = False, max_batch: int = 0) -> Model:
        """Loads a GGUF file, a packed file or a program with a model inside.

        `threads`: 0 for one per usable core. `check_tensors`: refuse weights that are NaN or
        infinite. `max_batch`: the most tokens of one pass, which the memory for computing is
        proportional to; 0: 512.
        """
        options = ffi.new("inlay_model_options *", (ffi.sizeof("inlay_model_options"), threads,
                                                    check_tensors, max_batch))
        name = path_of(path)
        return cls(made("inlay_model **",
                        lambda out: check(lib.inlay_load_model(name, options, out)),
                        lib.inlay_free_model))

    @classmethod
    def pull(cls, name: str, *, threads: int = 0) -> Model:
        """Gets a model of Hugging Face by its name, USER/REPO or USER/REPO:TYPE, into the cache
        that other tools share, unless it is there, and loads it."""
        return cls.load(pull(name), threads=threads)

    def __repr__(self) -> str:
        return f"<inlay.Model {self.config}>"

    @property
    def notes(self) -> list[str]:
        """What the file holds that the model is run without, and tensors that have others in their
        place: sentences, most often none."""
        text = text_of(lambda *out: lib.inlay_model_notes(self._handle, *out))
        return text.decode("utf-8", "replace").splitlines()

    def fingerprint(self, rows: Rows = "f16") -> str:
        """What determines the bits of logits besides the tokens: version, instruction set, weights,
        type of rows. The first call reads all weights."""
        kind = _row_type(rows)
        return text_of(lambda *out: lib.inlay_fingerprint(self._handle, kind, *out)).decode()

    # Tokens.

    def tokenize(self, text: str | bytes, *, bos: bool | None = None,
                 special: bool = False) -> list[int]:
        """The tokens of a text. `bos`: whether they start with BOS; None: if the model expects it.
        `special`: the text of a control token becomes that token; only for texts that are
        trusted."""
        return self._tokenize(text, -1 if bos is None else int(bos), special, to_embed=False)

    def _tokenize(self, text: str | bytes, bos: int, special: bool, to_embed: bool) -> list[int]:
        encoded = text.encode() if isinstance(text, str) else text
        options = ffi.new("inlay_tokenize_options *", (ffi.sizeof("inlay_tokenize_options"), bos,
                                                       special, to_embed))
        ids, count = fill(
            lambda capacity: ffi.new("int32_t[]", capacity),
            lambda *out: lib.inlay_tokenize_with(self._handle, encoded, len(encoded), options,
                                                 *out),
            len(encoded) + 8)
        return list(ffi.unpack(ids, count))

    def detokenize(self, tokens: Tokens) -> str:
        """The text of tokens, control tokens left out. Bytes that are not UTF-8 become U+FFFD."""
        return self.detokenize_bytes(tokens).decode("utf-8", "replace")

    def detokenize_bytes(self, tokens: Tokens) -> bytes:
        ids, count = ids_of(tokens)
        return text_of(lambda *out: lib.inlay_detokenize(self._handle, ids, count, *out),
                       16 * count + 16)

    def token_bytes(self, token: int) -> bytes:
        """What a token adds to a text, perhaps part of a character; b"" for control tokens."""
        form = lib.INLAY_TOKEN_BYTES
        return text_of(lambda *out: lib.inlay_token_text(self._handle, token, form, *out))

    def token_name(self, token: int) -> str:
        """A token as the vocabulary writes it, "<eos>"."""
        form = lib.INLAY_TOKEN_NAME
        name = text_of(lambda *out: lib.inlay_token_text(self._handle, token, form, *out))
        return name.decode("utf-8", "replace")

    def is_control(self, token: int) -> bool:
        """Whether a token has no text."""
        return bool(lib.inlay_kind_of_token(self._handle, token) & lib.INLAY_TOKEN_CONTROL)

    def is_end(self, token: int) -> bool:
        """Whether a model that generates the token has finished."""
        return bool(lib.inlay_kind_of_token(self._handle, token) & lib.INLAY_TOKEN_END)

    def chat(self, messages: SequenceOf[Mapping[str, Any]],
             tools: SequenceOf[Mapping[str, Any]] | None = None, *,
             generation_prompt: bool = True, now: int = 0,
             variables: Mapping[str, Any] | None = None, template: str = "") -> Chat:
        """Messages, as those of OpenAI's chat/completions, in the form that the model's chat
        template gives them, up to where the model answers unless `generation_prompt` is false.
        Only the template writes control tokens. A content that is a list is one text, each part on
        a line of its own; what is no text, as a picture, is refused.

        `tools`: definitions of tools. `now`: the time that the template is told, in seconds since
        1970; 0: the present one. `variables`: further ones, {"enable_thinking": False}. `template`:
        Jinja, instead of the model's own template.
        FailedPreconditionError, with the template's words, when it refuses the chat.
        """
        def text(part: object) -> Any:
            return ffi.new("char[]", json.dumps(part).encode())

        texts = (text(list(messages)), text(list(tools)) if tools else ffi.NULL,
                 text(dict(variables)) if variables else ffi.NULL)
        source = template.encode()
        if b"\0" in source:
            raise ValueError("the template has a NUL")
        given_template = ffi.new("char[]", source)
        given = ffi.new("inlay_chat_input *", (ffi.sizeof("inlay_chat_input"), *texts,
                                               not generation_prompt, now, given_template))
        return Chat(made("inlay_chat **",
                         lambda out: check(lib.inlay_render_chat(self._handle, given, out)),
                         lib.inlay_free_chat))

    # Passes.

    def sequence(self, tokens: Tokens | None = None, *, max_length: int = 0, rows: Rows = "f16",
                 limit_bytes: int = 0) -> Sequence:
        """A sequence, empty or with these tokens.

        `max_length`: in tokens; 0: 4096, or the trained length if that is less. `rows`: how keys
        and values are stored. `limit_bytes`: one that may need more memory is refused; 0: none.
        Only `load` may need more than that in a sequence that is not empty, see there.
        """
        options = ffi.new("inlay_cache_options *", (ffi.sizeof("inlay_cache_options"), max_length,
                                                    _row_type(rows), limit_bytes))
        handle = made("inlay_cache **",
                      lambda out: check(lib.inlay_create_cache(self._handle, options, out)),
                      lib.inlay_free_cache)
        sequence = Sequence(self, handle, LogitRow(self.vocabulary_size))
        ids, count = ids_of(tokens if tokens is not None else ())
        if count > 0:
            sequence._append(ids, count, logits=True)
        return sequence

    def forward(self, steps: Iterable[Step | tuple[Sequence, Tokens]]) -> list[Floats]:
        """Appends tokens to several sequences of this model in one pass, at most max_batch tokens
        in all: for each step its logits, float32 [rows, vocabulary size]. They are views of one
        array, the caller's. A sequence's `logits` are a copy of the last row of its step.

        BatchError when steps failed alone, as their sequences are too long or lack memory; their
        sequences have not advanced, while the others have, whose `logits` are theirs. On any other
        error no sequence has advanced.
        """
        batch = [Step(*step) for step in steps]
        memory = [ids_of(step.tokens) for step in batch]
        size = ffi.sizeof("inlay_step")
        c_steps = ffi.new("inlay_step[]", [
            (size, step.sequence._handle, ids, count, step.rows, lib.INLAY_OK)
            for step, (ids, count) in zip(batch, memory)])
        for step in batch:
            if step.sequence.model is not self:
                raise errors.InvalidArgumentError("a sequence is of another model")
        logits = np.empty((sum(step.rows for step in batch), self.vocabulary_size), np.float32)
        found: list[Floats] = []
        failed: dict[int, type[errors.InlayError]] = {}

        def show() -> None:
            row = 0
            for i, step in enumerate(batch):
                found.append(logits[row:row + step.rows])
                row += step.rows
                if c_steps[i].status != lib.INLAY_OK:
                    failed[i] = error_type(c_steps[i].status)
                    step.sequence._row.unhide()
                elif step.rows > 0:
                    step.sequence._row.show(found[-1][-1])

        change({step.sequence._row for step in batch},
               lambda: lib.inlay_forward(c_steps, len(batch), floats_at(logits), logits.size), show)
        if failed:
            raise errors.BatchError(last_sentence(), failed)
        return found

    def generate(self, prompt: str | Tokens | Chat, options: Options | None = None, *,
                 sequence: Sequence | None = None) -> Generation:
        """An answer to a prompt, as an iterator and async iterator over its text, in `sequence` or
        one of its own."""
        return (sequence if sequence is not None else self.sequence()).generate(prompt, options)

    def log_probabilities(self, logits: Floats, tokens: Tokens) -> NDArray[np.float64]:
        """The natural logarithm of the probability of each token [count] according to its row of
        `logits` [count, vocabulary size]: float64 [count], whose bits depend on its own row
        alone."""
        ids, count = ids_of(tokens)
        rows = np.ascontiguousarray(logits, np.float32)
        if rows.shape != (count, self.vocabulary_size):
            raise errors.InvalidArgumentError(
                f"logits of the shape {list(rows.shape)} are not those of {count} tokens, "
                f"{[count, self.vocabulary_size]}")
        found = np.empty(count, np.float64)
        check(lib.inlay_log_probabilities(self._handle, floats_at(rows), ids, count,
                                          ffi.from_buffer("double[]", found)))
        return found

    def perplexity(self, text: str | Tokens, *, chunk: int = 256, rows: Rows = "f16") -> Perplexity:
        """How well the model predicts a text or tokens, cut into chunks, each a conversation of its
        own of which the second half is scored."""
        ids, count = ids_of(self.tokenize(text) if isinstance(text, str) else text)
        found = ffi.new("inlay_likelihood *", {"size": ffi.sizeof("inlay_likelihood")})
        ready()
        check(lib.inlay_perplexity(self._handle, ids, count, chunk, _row_type(rows), found))
        return Perplexity(found.scored, found.mean_nll, found.mean_nll_error, found.perplexity,
                          found.perplexity_error)

    def embed(self, texts: Iterable[str | Tokens]) -> Floats:
        """Vectors of length 1 (of zeros if that is what the weights give) of texts, or of their
        tokens: float32 [texts, embedding_dim]. For
        models that embed texts: FailedPreconditionError for others."""
        if isinstance(texts, (str, bytes)):
            raise TypeError(f"texts is one {type(texts).__name__}, not several texts: put it in a "
                            "list")
        memory = [ids_of(self._tokenize(text, -1, False, to_embed=True)
                         if isinstance(text, str) else text) for text in texts]
        found = np.empty((len(memory), self.embedding_dim), np.float32)
        ready()
        check(lib.inlay_embed(self._handle, ffi.new("inlay_tokens[]", memory), len(memory),
                              floats_at(found), found.size))
        return found


def pull(name: str) -> str:
    """Gets a model of Hugging Face by its name, USER/REPO or USER/REPO:TYPE, into the cache that
    other tools share, unless it is there: the path of its first file. Environment variables as for
    `inlay pull`. After Ctrl-C the next call goes on with what has arrived."""
    encoded = name.encode()
    ready()
    return os.fsdecode(text_of(lambda *out: lib.inlay_pull(encoded, *out), 4096))


def guard_mapped_files() -> None:
    """Installs a handler of SIGBUS for the whole process: a call that reads a model file which has
    become shorter raises DataLossError. Without it such a read ends the process. To be called
    before models are loaded."""
    lib.inlay_guard_mapped_files()


def set_target(name: str = "") -> None:
    """Makes all models of the process compute with this instruction set, "AVX2" or "NEON", for the
    same bits on machines that differ; "": the best that the CPU has. InvalidArgumentError, with the
    names of those that run on this CPU, for others; FailedPreconditionError while there is a
    model."""
    check(lib.inlay_set_target(name.encode()))


def configs() -> list[str]:
    """The names of the configs that the library was built with."""
    names: list[str] = []
    while (name := lib.inlay_config_name(len(names))) != ffi.NULL:
        names.append(ffi.string(name).decode())
    return names
