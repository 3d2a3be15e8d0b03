"""Answers as iterators, and what they leave in their sequences."""
from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

import inlay
from conftest import PROMPT
from inlay._library import lib

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
    assert len({bard.generate(prompt, inlay.Options(temperature=1, seed=seed)).result()
                for seed in (None, 0, None)}) == 1, "no seed is 0"
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


def test_closing_ends_a_prompt(bard: inlay.Model, prompt: list[int]) -> None:
    """Of this thread, as the handler of a signal does it amid the call, and of another one."""
    def by_another_thread(answer: inlay.Generation) -> Callable[[], bool]:
        closer = threading.Thread(target=answer.close)
        closers.append(closer)

        def begin() -> bool:
            if closer.ident is None:
                closer.start()
            return False
        return begin

    def by_this_thread(answer: inlay.Generation) -> Callable[[], bool]:
        def end() -> bool:
            answer.close()
            return False
        return end

    closers: list[threading.Thread] = []
    for closing in (by_this_thread, by_another_thread):
        sequence = bard.sequence(prompt, max_length=1 << 20)
        answer = sequence.generate(prompt * 30000, GREEDY)  # far longer than the test
        with inlay.cancel_when(closing(answer)):
            assert list(answer) == []
        for closer in closers:
            closer.join()
        assert answer.stop_reason is None and answer.tokens == []
        assert sequence.tokens.tolist() == prompt
        sequence.append(1)  # it is free


@pytest.mark.parametrize("amid_step", [False, True])
def test_a_handler_of_a_signal_closes_an_answer(
        bard: inlay.Model, prompt: list[int], monkeypatch: pytest.MonkeyPatch,
        amid_step: bool) -> None:
    class Signalled:
        """The library, from whose third step a signal's handler runs before Python goes on."""
        steps = 0

        def __getattr__(self, name: str) -> Any:
            real = getattr(lib, name)

            def step(*arguments: Any) -> Any:
                status = real(*arguments)
                self.steps += 1
                if self.steps == 3:
                    signal.raise_signal(signal.SIGUSR1)
                return status

            return step if name == "inlay_next_piece" else real

    sequence = bard.sequence()
    answer = sequence.generate(PROMPT, inlay.Options(max_tokens=100, ignore_end=True))
    before = signal.signal(signal.SIGUSR1, lambda *_: answer.close())
    try:
        if amid_step:
            monkeypatch.setattr("inlay.generation.lib", Signalled())
        pieces = []
        for piece in answer:
            pieces.append(piece)
            if len(pieces) == 3 and not amid_step:
                signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert 0 < len(answer.tokens) < 100 and "".join(pieces) == answer.text
    assert sequence.tokens.tolist() == prompt + answer.tokens
    sequence.append(1)  # it is free


@pytest.mark.parametrize("shape, matches", [
    (inlay.Regex("(one|two)-[a-f]{3}"), "(one|two)-[a-f]{3}"),
    (inlay.Gbnf('root ::= "<" [0-9]? ">" | "none"'), "<[0-9]?>|none"),
    (inlay.Regex("end [0-9]", after="\n"), "[^\n]*\nend [0-9]"),
])
def test_answers_have_their_shape(bard: inlay.Model, shape: inlay.Regex, matches: str) -> None:
    answer = bard.generate(PROMPT, inlay.Options(max_tokens=200, shape=shape))
    assert re.fullmatch(matches, answer.result())
    assert answer.stop_reason is inlay.StopReason.END


def test_biases_and_log_probabilities(bard: inlay.Model, prompt: list[int]) -> None:
    answer = bard.generate(prompt, inlay.Options(max_tokens=10, temperature=0,
                                                 log_probabilities=True))
    answer.result()
    assert len(answer.log_probabilities) == len(answer.tokens) == 10
    tokens = prompt + answer.tokens
    [rows] = bard.forward([inlay.Step(bard.sequence(), tokens[:-1], rows=10)])
    assert answer.log_probabilities == pytest.approx(
        bard.log_probabilities(rows, answer.tokens), abs=1e-5)
    first = answer.tokens[0]
    for bias in (-1000.0, 1000.0):
        options = inlay.Options(max_tokens=10, temperature=0, ignore_end=True,
                                logit_bias={first: bias})
        biased = bard.generate(prompt, options)
        biased.result()
        assert biased.tokens.count(first) == (0 if bias < 0 else 10)
        assert biased.log_probabilities == []
    with pytest.raises(inlay.InvalidArgumentError, match="1024, outside 0 to 1023"):
        bard.generate(prompt, inlay.Options(logit_bias={1024: 1.0}))


def test_together(bard: inlay.Model, prompt: list[int]) -> None:
    shape = inlay.Regex("(yes|no), because [a-z ]{5,10}[.]")
    several = [inlay.Options(max_tokens=10 + seed, seed=seed, draft=4 if seed == 1 else 0,
                             shape=shape if seed == 2 else None) for seed in range(6)]
    expected = [bard.generate(prompt * (1 + 9 * i), options).result()
                for i, options in enumerate(several)]
    answers = [bard.generate(prompt * (1 + 9 * i), options) for i, options in enumerate(several)]
    texts = {id(answer): "" for answer in answers}
    for answer, text in inlay.generate_together(answers):
        texts[id(answer)] += text
    assert [answer.text for answer in answers] == expected == list(texts.values())
    assert all(answer.stop_reason is not None for answer in answers)
    assert list(inlay.generate_together(answers)) == list(inlay.generate_together([])) == []


def test_together_may_be_closed_and_cancelled(bard: inlay.Model, prompt: list[int]) -> None:
    def begin() -> tuple[list[inlay.Sequence], list[inlay.Generation]]:
        sequences = [bard.sequence(max_length=1 << 20) for _ in range(3)]
        options = inlay.Options(max_tokens=30, ignore_end=True)
        return sequences, [sequence.generate(prompt, options) for sequence in sequences]

    sequences, answers = begin()
    pieces = 0
    for answer, _ in inlay.generate_together(answers):
        pieces += 1
        if pieces == 10:
            answers[1].close()
    assert [len(answer.tokens) == 30 for answer in answers] == [True, False, True]
    for sequence, answer in zip(sequences, answers):
        assert sequence.tokens.tolist() == prompt + answer.tokens
        sequence.append(1)
    # A long prompt beside others: what is asked in its passes ends all.
    sequences, answers = begin()
    endless = bard.sequence(max_length=1 << 22)
    answers.append(endless.generate(prompt * 300000))
    with pytest.raises(inlay.CancelledError), inlay.cancel_when(lambda: True):
        for _ in inlay.generate_together(answers):
            pass
    for sequence, answer in zip(sequences, answers):
        # Within the prompt they have nothing.
        assert sequence.tokens.tolist() == (prompt + answer.tokens if answer.tokens else [])
        sequence.append(1)
    assert len(endless) == 0
    # What is refused changes nothing.
    sequences, answers = begin()
    with pytest.raises(inlay.FailedPreconditionError, match="given twice"):
        list(inlay.generate_together([answers[0], answers[0]]))
    list(inlay.generate_together(answers))
    assert all(len(answer.tokens) == 30 for answer in answers)


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
