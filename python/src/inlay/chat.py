"""Messages as a model reads them."""
from __future__ import annotations

import json
from typing import Any

from ._cdef import ffi
from ._library import lib, text_of

Message = dict[str, Any]


class Chat:
    """Messages in the form that the model's chat template gives them: what Model.chat returns.

    Passed to `generate` as the prompt, the answer's text has the markers by which `read` finds
    thoughts and calls of tools.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    @property
    def text(self) -> str:
        """As one text, control tokens by their names."""
        size = ffi.new("size_t *")
        start = lib.inlay_chat_text(self._handle, size)
        return bytes(ffi.buffer(start, size[0])).decode("utf-8", "replace")

    @property
    def tokens(self) -> list[int]:
        """BOS included where the model expects it."""
        count = ffi.new("size_t *")
        start = lib.inlay_chat_tokens(self._handle, count)
        return list(ffi.unpack(start, count[0])) if count[0] > 0 else []

    def read(self, answer: str) -> Message:
        """The message of the assistant that a generated answer is: "content" and, where there are
        any, "reasoning_content" and "tool_calls", as in OpenAI's chat/completions. With "role", it
        can be put behind the messages that it answers."""
        encoded = answer.encode()
        text = text_of(lambda *out: lib.inlay_read_answer(self._handle, encoded, len(encoded), *out),
                       4 * len(encoded) + 256)
        message: Message = json.loads(text.decode("utf-8", "replace"))
        return message
