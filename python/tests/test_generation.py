"""Answers as iterators, and what they leave in their sequences."""
from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import signal
import threading
from typing import Any

import pytest

import inlay
from conftest import PROMPT

GREEDY = inlay.Options(max_tokens=20, temperature=0)


def test_iterates_over_text(bard: inlay.Model, prompt: list[int]) -> None:
    sequence = bard.sequence()
    answer = sequence.generate(PROMPT, GREEDY)
    pieces = list(answer)
    assert len(pieces) > 5 and "".join(pieces) == answer.text
    assert answer.stop_reason is inlay.StopReason.LENGTH and len(answer.tokens) == 20
    assert sequence.tokens.tolist() == prompt + answer.tokens
    assert list(answer) == []
    # By hand.
    by_hand = bard.sequence(prompt)
    for token in answer.tokens:
        assert by_hand.logits.argmax() == token
        by_hand.append(token)
    assert bard.generate(prompt, GREEDY).result() == answer.text
    assert bard.generate(PROMPT, inlay.Options(max_tokens=20, temperature=0, draft=4)
                         ).result() == answer.text


def test_an_answer_may_have_no_tokens(bard: inlay.Model) -> None:
    answer = bard.generate(PROMPT, inlay.Options(max_tokens=0))
    assert answer.result() == "" and answer.tokens == []
    assert answer.stop_reason is inlay.StopReason.LENGTH
    assert bard.generate(PROMPT, inlay.Options(shape=inlay.Regex(""))).result() == ""


def test_a_signal_ends_an_answer(bard: inlay.Model, prompt: list[int]) -> None:
    sequence = bard.sequence(max_length=4000)
    interrupt = threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        with sequence.generate(PROMPT, inlay.Options(max_tokens=3000, ignore_end=True)) as answer:
            for _ in answer:
                if interrupt.ident is None:
                    interrupt.start()
    assert 0 < len(answer.tokens) < 3000
    assert sequence.tokens.tolist() == prompt + answer.tokens
    assert len(answer.text) > 0
    sequence.append(1)  # it is free


def test_goes_on_with_a_sequence(bard: inlay.Model) -> None:
    sequence = bard.sequence()
    bard.generate(PROMPT, GREEDY, sequence=sequence).result()
    length = len(sequence)
    answer = sequence.generate("\nKING", GREEDY)
    answer.result()
    assert len(sequence) == length + len(bard.tokenize("\nKING", bos=False)) + 20


def test_ends_by_stop_text_and_context(bard: inlay.Model) -> None:
    whole = bard.generate(PROMPT, GREEDY).result()
    stop = whole[10:14]
    answer = bard.generate(PROMPT, inlay.Options(max_tokens=20, temperature=0, stop=stop))
    assert answer.result() == whole[:whole.index(stop)]
    assert answer.stop_reason is inlay.StopReason.TEXT
    short = bard.sequence(max_length=15)
    answer = short.generate(PROMPT, inlay.Options(ignore_end=True, stop=["@@", "##"]))
    answer.result()
    assert answer.stop_reason is inlay.StopReason.CONTEXT and len(short) == 15


def test_closing_leaves_what_was_told(bard: inlay.Model, prompt: list[int]) -> None:
    sequence = bard.sequence()
    with sequence.generate(prompt, GREEDY) as answer:
        next(answer)
        next(answer)
        with pytest.raises(inlay.FailedPreconditionError, match="in use"):
            sequence.append(1)
        with pytest.raises(inlay.FailedPreconditionError, match="in use"):
            sequence.fork()
    assert sequence.tokens.tolist() == prompt + answer.tokens
    assert list(answer) == [] and answer.stop_reason is None
    answer.close()
    sequence.append(1)
    # Before the prompt.
    length = len(sequence)
    sequence.generate(prompt, GREEDY).close()
    assert len(sequence) == length
    # Dropped.
    next(sequence.generate(prompt, GREEDY))
    sequence.append(1)


@pytest.mark.parametrize("shape, matches", [
    (inlay.Regex("(one|two)-[a-f]{3}"), "(one|two)-[a-f]{3}"),
    (inlay.Gbnf('root ::= "<" [0-9]? ">" | "none"'), "<[0-9]?>|none"),
    (inlay.Regex("end [0-9]", after="\n"), "[^\n]*\nend [0-9]"),
])
def test_answers_have_their_shape(bard: inlay.Model, shape: inlay.Regex, matches: str) -> None:
    answer = bard.generate(PROMPT, inlay.Options(max_tokens=200, shape=shape))
    assert re.fullmatch(matches, answer.result())
    assert answer.stop_reason is inlay.StopReason.END


def test_json_schemas(bard: inlay.Model) -> None:
    schema: dict[str, list[Any]] = {"enum": ["red", True, None]}
    ended = []
    for given, seed in itertools.product((schema, json.dumps(schema)), range(10)):
        options = inlay.Options(shape=inlay.JsonSchema(given), seed=seed, max_tokens=60)
        answer = bard.generate(PROMPT, options)
        answer.result()
        if answer.stop_reason is inlay.StopReason.END:  # and not amid white space without end
            ended.append(json.loads(answer.text))
    assert ended and all(value in schema["enum"] for value in ended)
    with pytest.raises(inlay.InvalidArgumentError, match="'not'"):
        bard.generate(PROMPT, inlay.Options(shape=inlay.JsonSchema({"not": {}})))
    with pytest.raises(ValueError, match="NUL"):
        bard.generate(PROMPT, inlay.Options(stop="\0"))
    with pytest.raises(inlay.InvalidArgumentError, match="7"):
        bard.generate(PROMPT, inlay.Options(top_p=7))


def test_async_answers_beside_each_other(bard: inlay.Model) -> None:
    prompts = [PROMPT, "KING HENRY:", "O Romeo"]

    async def collect(prompt: str) -> str:
        return "".join([piece async for piece in bard.generate(prompt, GREEDY)])

    async def both() -> list[str]:
        return list(await asyncio.gather(*map(collect, prompts)))

    assert asyncio.run(both()) == [bard.generate(p, GREEDY).result() for p in prompts]


def test_cancelling_a_task_ends_its_prompt(bard: inlay.Model, prompt: list[int]) -> None:
    sequence = bard.sequence(prompt, max_length=1 << 20)
    before = sequence.logits.copy()

    async def run() -> None:
        answer = sequence.generate(prompt * 30000, GREEDY)  # far longer than the test
        task = asyncio.ensure_future(answer.__anext__())
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        answer.close()  # waits for the pass to end

    asyncio.run(run())
    assert sequence.tokens.tolist() == prompt
    again = bard.sequence(prompt)
    assert (again.logits == before).all()
    for s in (sequence, again):
        s.append(1)
    assert (again.logits == sequence.logits).all()
