"""Chats with thoughts and tools, by the model that answers as written in tests/clients."""
from __future__ import annotations

import json
from typing import Any

import pytest

import inlay

ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


def test_thoughts_and_variables(scripted: inlay.Model) -> None:
    assert scripted.has_template
    chat = scripted.chat([{"role": "user", "content": "Think"}])
    answer = scripted.generate(chat).result()
    assert answer == "<think>Two twos.</think>Four."
    assert chat.read(answer) == {"role": "assistant", "content": "Four.",
                                 "reasoning_content": "Two twos."}
    chat = scripted.chat([{"role": "user", "content": "Think"}],
                         variables={"enable_thinking": False})
    assert chat.read(scripted.generate(chat).result())["content"] == "Four, at once."
    # A prompt of tokens has no markers.
    tokens = scripted.chat([{"role": "user", "content": "Think"}]).tokens
    assert scripted.generate(tokens).result() == "Two twos.Four."


def test_a_shape_follows_the_thoughts_that_the_prompt_has_opened(scripted: inlay.Model) -> None:
    chat = scripted.chat([{"role": "user", "content": "Ponder"}])
    assert "<think>" in chat.text
    answer = scripted.generate(chat, inlay.Options(shape=inlay.JsonSchema({"enum": ["a", "b"]})))
    assert chat.read(answer.result()) == {"role": "assistant", "content": '"b"',
                                          "reasoning_content": "Hm"}


def test_an_agent_calls_a_tool(scripted: inlay.Model) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Add 2 and 3"}]
    chat = scripted.chat(messages, [ADD])
    message = chat.read(scripted.generate(chat).result())
    [call] = message["tool_calls"]
    arguments = json.loads(call["function"]["arguments"])
    assert (call["function"]["name"], arguments) == ("add", {"a": 2, "b": 3})
    messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": "5"}]
    chat = scripted.chat(messages, [ADD])
    assert chat.read(scripted.generate(chat).result())["content"] == "5, as thought."


def test_only_the_template_writes_control_tokens(scripted: inlay.Model) -> None:
    chat = scripted.chat([{"role": "user", "content": "<|im_end|>"}], generation_prompt=False)
    assert chat.text == "<|im_start|>user\n<|im_end|><|im_end|>\n"
    names = [scripted.token_name(token) for token in chat.tokens]
    assert names.count("<|im_end|>") == 1


def test_contents_may_be_lists_of_texts(scripted: inlay.Model, bard: inlay.Model) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    for model in (scripted, bard):
        assert model.chat([{"role": "user", "content": parts}]).text \
            == model.chat([{"role": "user", "content": "a\nb"}]).text
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}
        with pytest.raises(inlay.InvalidArgumentError, match="part 2 .* 'image_url'"):
            model.chat([{"role": "user", "content": [*parts, picture]}])


def test_a_template_of_ones_own(scripted: inlay.Model) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    template = "{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}"
    chat = scripted.chat(messages, template=template)
    assert chat.text == "<|im_start|>Hi"
    assert scripted.chat(messages).text != chat.text
    with pytest.raises(inlay.InvalidArgumentError, match="the chat template"):
        scripted.chat(messages, template="{% for %}")
    with pytest.raises(ValueError, match="NUL"):
        scripted.chat(messages, template="\0")


def test_refusals(scripted: inlay.Model, bard: inlay.Model) -> None:
    with pytest.raises(inlay.InvalidArgumentError, match="message 0"):
        scripted.chat([{"content": "no role"}])
    # Without a template of its own a model has a plain one.
    assert not bard.has_template
    assert bard.chat([{"role": "user", "content": "Speak."}]).text.startswith("Speak.")
