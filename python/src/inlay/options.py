"""How answers are chosen: sampling, limits, shapes."""
from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence as SequenceOf
from dataclasses import dataclass
from typing import Any

from ._cdef import ffi
from ._library import check, lib


class StopReason(enum.Enum):
    """Why an answer ended."""

    LENGTH = lib.INLAY_STOP_LENGTH  # Options.max_tokens
    END = lib.INLAY_STOP_END  # an end-of-generation token
    CONTEXT = lib.INLAY_STOP_CONTEXT  # the sequence has max_length tokens
    CANCELLED = lib.INLAY_STOP_CANCELLED  # it was closed
    TEXT = lib.INLAY_STOP_TEXT  # one of Options.stop


@dataclass(frozen=True)
class JsonSchema:
    """JSON that is valid by a schema (a dict, or its text); by {} any JSON.

    `after`: the shape begins after this text, which ends the model's thoughts; "": at once, or
    after the thoughts that the prompt, a Chat, has opened. `in_order`: members of objects come in
    the order of the schema.
    """

    schema: Mapping[str, Any] | str
    after: str = ""
    in_order: bool = False


@dataclass(frozen=True)
class Regex:
    """A text that a regular expression matches as a whole."""

    pattern: str
    after: str = ""


@dataclass(frozen=True)
class Gbnf:
    """A text of a grammar in GBNF, as llama.cpp has them."""

    grammar: str
    after: str = ""


Shape = JsonSchema | Regex | Gbnf


@dataclass(frozen=True, kw_only=True)
class Options:
    """How an answer is generated. None: the model's default."""

    max_tokens: int | None = None  # 256 by default
    temperature: float | None = None  # 0: always the most likely token
    top_k: int | None = None  # only the top_k most likely tokens; 0: all
    top_p: float | None = None  # of these, the fewest whose probabilities add up to it; 1: all
    min_p: float | None = None  # only those with this share of the largest probability; 0: all
    repeat_penalty: float | None = None  # for tokens among the last repeat_last_n; 1: none
    repeat_last_n: int | None = None
    presence_penalty: float | None = None  # subtracted from logits of tokens of the answer,
    frequency_penalty: float | None = None  # and for each time that they are in it
    # The same seed gives the same answer. None is 0: without one each answer to a prompt is the
    # same (the command `inlay generate` draws one).
    seed: int | None = None
    stop: str | SequenceOf[str] = ()  # the answer ends before the first of these texts
    ignore_end: bool = False  # continue after an end-of-generation token
    draft: int = 0  # tokens to draft at once by prompt lookup; the answer is the same
    shape: Shape | None = None  # what the answer has to look like
    # Added to the logits of these tokens, -1000 to 1000.
    logit_bias: Mapping[int, float] | None = None
    log_probabilities: bool = False  # Generation.log_probabilities has those of the tokens


_NUMBERS = ("max_tokens", "temperature", "top_k", "top_p", "min_p", "repeat_penalty",
            "repeat_last_n", "presence_penalty", "frequency_penalty", "seed")


class COptions:
    """Options as a struct of the C API, with the memory that it points to."""

    def __init__(self, model: Any, options: Options | None, chat: Any = None) -> None:
        self.struct = ffi.new("inlay_options *", {"size": ffi.sizeof("inlay_options")})
        self._memory: list[Any] = []
        check(lib.inlay_default_options(model, self.struct))
        if chat is not None:
            self.struct.chat = chat
        if options is not None:
            self._set(options)

    def _text(self, text: str) -> Any:
        encoded = text.encode()
        if b"\0" in encoded:
            raise ValueError("a text of the options has a NUL")
        self._memory.append(ffi.new("char[]", encoded))
        return self._memory[-1]

    def _set(self, options: Options) -> None:
        for name in _NUMBERS:
            if (value := getattr(options, name)) is not None:
                setattr(self.struct, name, value)
        stops = [options.stop] if isinstance(options.stop, str) else options.stop
        self._memory.append(ffi.new("char *[]", [self._text(stop) for stop in stops]))
        self.struct.stop_texts = self._memory[-1]
        self.struct.stop_text_count = len(stops)
        self.struct.ignore_end = options.ignore_end
        self.struct.draft = options.draft
        if options.logit_bias:
            self._memory.append(ffi.new("inlay_bias[]", list(options.logit_bias.items())))
            self.struct.logit_bias = self._memory[-1]
            self.struct.logit_bias_count = len(options.logit_bias)
        self.struct.log_probabilities = options.log_probabilities
        if options.shape is not None:
            self._set_shape(options.shape)

    def _set_shape(self, shape: Shape) -> None:
        if isinstance(shape, JsonSchema):
            kind, text = lib.INLAY_SHAPE_JSON_SCHEMA, shape.schema
            if not isinstance(text, str):
                text = json.dumps(text)
            self.struct.shape_in_order = shape.in_order
        elif isinstance(shape, Regex):
            kind, text = lib.INLAY_SHAPE_REGEX, shape.pattern
        else:
            kind, text = lib.INLAY_SHAPE_GBNF, shape.grammar
        self.struct.shape_kind = kind
        self.struct.shape = self._text(text)
        self.struct.shape_after = self._text(shape.after)
