"""Sequences: the same bits however their tokens came to be there."""
from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inlay


def test_logits_are_a_view_that_never_changes(bard: inlay.Model, prompt: list[int]) -> None:
    sequence = bard.sequence(prompt)
    view = sequence.logits
    assert view.shape == (1024,) and view.dtype == np.float32 and not view.flags.owndata
    copy = view.copy()
    fork = sequence.fork()
    for _ in range(3):
        sequence.append(7)
    fork.append(8)
    assert (view == copy).all()
    assert not (sequence.logits == copy).all()
    with pytest.raises(ValueError):
        view[0] = 0
    # The memory is used again while nobody looks at it.
    address = sequence.logits.ctypes.data
    sequence.append(9)
    assert sequence.logits.ctypes.data == address
    held = sequence.logits
    sequence.append(10)
    assert sequence.logits.ctypes.data != held.ctypes.data == address


def test_any_way_to_the_same_tokens(bard: inlay.Model) -> None:
    numbers = random.Random(1)
    tokens = [numbers.randrange(1024) for _ in range(300)]
    whole = bard.sequence(tokens)
    one_by_one = bard.sequence()
    for token in tokens:
        one_by_one.append(token)
    assert (whole.logits == one_by_one.logits).all()
    forked = bard.sequence(tokens[:150]).fork()
    forked.append(np.array(tokens[150:290]), logits=False)
    forked.append([1, 2, 3])
    forked.rewind(290)
    forked.append(tokens[290:])
    assert (whole.logits == forked.logits).all()
    assert forked.tokens.tolist() == tokens and forked.tokens.dtype == np.int32
    sequences = [bard.sequence(tokens[:i + 1]) for i in range(4)]
    rows = bard.forward([(s, tokens[len(s):len(s) + 100]) for s in sequences])
    for s, row in zip(sequences, rows):
        assert (row[0] == s.logits).all()
        s.append(tokens[len(s):])
        assert (s.logits == whole.logits).all()


def test_a_trimmed_sequence_goes_on_with_the_same_bits(bard: inlay.Model) -> None:
    tokens = list(range(300))
    whole, trimmed = bard.sequence(tokens), bard.sequence(tokens[:250])
    before = trimmed.nbytes
    trimmed.trim(rewind=2)
    assert trimmed.nbytes < before
    assert trimmed.rewind_floor <= 248
    trimmed.rewind(248)
    trimmed.append(tokens[248:])
    assert (trimmed.logits == whole.logits).all()
    with pytest.raises(inlay.OutOfRangeError, match="negative"):
        trimmed.trim(-1)


def test_logits_are_those_of_the_last_token_or_none(bard: inlay.Model, prompt: list[int]) -> None:
    sequence = bard.sequence()

    def drop() -> None:
        sequence.append(2)
        assert sequence.logits.shape == (1024,)
        sequence.rewind(len(sequence) - 1)

    changes: list[Callable[[], object]] = [
        lambda: None, lambda: sequence.append(prompt, logits=False), lambda: sequence.rewind(5),
        lambda: sequence.generate([1], inlay.Options(max_tokens=2)).result(), drop]
    for change in changes:
        change()
        with pytest.raises(inlay.FailedPreconditionError, match="no logits"):
            sequence.logits
        assert len(sequence.fork()) == len(sequence)
    sequence.append(1)
    before = sequence.logits
    sequence.rewind(len(sequence))
    assert (sequence.logits == before).all()


def test_forks_share_memory(bard: inlay.Model, prompt: list[int]) -> None:
    root = bard.sequence(prompt * 20)
    forks = [root.fork() for _ in range(10)]
    assert inlay.shared_bytes([root, *forks]) == root.nbytes
    forks[0].append(1)
    assert root.nbytes < inlay.shared_bytes([root, *forks]) < 2 * root.nbytes
    assert inlay.shared_bytes([]) == 0


def test_copies_are_forks(bard: inlay.Model, prompt: list[int]) -> None:
    sequence = bard.sequence(prompt)
    for other in (copy.copy(sequence), copy.deepcopy([sequence])[0]):
        assert (other.logits == sequence.logits).all()
        other.append(1)
        assert len(other) == len(prompt) + 1 and len(sequence) == len(prompt)


def test_rewinds_to_nothing_at_any_time(other: inlay.Model) -> None:
    tokens = [i % other.vocabulary_size for i in range(300)]
    sequence = other.sequence(tokens)
    sequence.rewind(0)
    assert len(sequence) == 0
    sequence.append(tokens)
    assert (sequence.logits == other.sequence(tokens).logits).all()


def test_no_tokens_are_an_empty_sequence(bard: inlay.Model) -> None:
    nothing: list[Any] = [None, [], (), np.array([], np.int32), iter([])]
    for tokens in nothing:
        assert len(bard.sequence(tokens)) == 0
    with pytest.raises(TypeError):
        bard.sequence(np.array([], np.float32))


def test_saves_and_loads(bard: inlay.Model, prompt: list[int], tmp_path: Path) -> None:
    sequence = bard.sequence(prompt)
    path = tmp_path / "sequence.kv"
    sequence.save(path)
    loaded = bard.sequence()
    assert loaded.load(path, exact=True) == 0
    assert loaded.tokens.tolist() == prompt
    for s in (sequence, loaded):
        s.append(3)
    assert (loaded.logits == sequence.logits).all()
    q8 = bard.sequence(rows="q8")
    with pytest.raises(inlay.FailedPreconditionError):
        q8.load(path, exact=True)
    assert q8.load(path) == len(prompt)
    with pytest.raises(inlay.NotFoundError, match="nowhere"):
        loaded.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        loaded.load(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="null byte"):
        loaded.load(f"{path}\0more")
    assert len(loaded) == len(prompt) + 1


def test_limits(bard: inlay.Model, prompt: list[int]) -> None:
    small = bard.sequence(max_length=4)
    assert small.max_length == 4
    with pytest.raises(inlay.OutOfRangeError):
        small.append(prompt)
    assert len(small) == 0
    with pytest.raises(inlay.OutOfMemoryError, match="limit of 1000"):
        bard.sequence(limit_bytes=1000)
    with pytest.raises(MemoryError):
        bard.sequence(limit_bytes=1000)
    with pytest.raises(inlay.InvalidArgumentError, match="'f64', not one of f32, f16"):
        bard.sequence(rows="f64")  # type: ignore[arg-type]
    sequence = bard.sequence(prompt)
    assert sequence.rewind_floor <= max(0, len(sequence) - sequence.rewind_depth)
    for length in (-1, len(prompt) + 1):
        with pytest.raises(inlay.OutOfRangeError):
            sequence.rewind(length)


def test_tokens_of_any_kind(bard: inlay.Model) -> None:
    expected = bard.sequence([7, 8]).logits
    kinds: list[Any] = [(7, 8), np.array([7, 8]), np.array([7, 8], np.uint8),
                        np.array([7, 0, 8])[::2], [np.int64(7), np.int32(8)], range(7, 9)]
    for tokens in kinds:
        assert (bard.sequence(tokens).logits == expected).all()
    one_by_one = bard.sequence(np.int64(7))  # type: ignore[arg-type]
    one_by_one.append(np.array([8], np.int32))
    assert (one_by_one.logits == expected).all()


def test_bad_tokens_are_refused(bard: inlay.Model) -> None:
    sequence = bard.sequence([1])
    for tokens, error in (([], ValueError), (np.array([], np.int32), ValueError), (5000, ValueError), ([1, -1], ValueError),
                          ([2**40], OverflowError), (np.array([2**40]), OverflowError),
                          (np.ones(3), TypeError), (np.ones((2, 2), int), TypeError),
                          ("abc", TypeError), ([np.float32(1.5)], TypeError)):
        with pytest.raises(error):
            sequence.append(tokens)  # type: ignore[arg-type]
        assert len(sequence) == 1
    assert sequence.logits is not None


def test_batches(bard: inlay.Model, other: inlay.Model, prompt: list[int]) -> None:
    a, b = bard.sequence([1]), bard.sequence([2])
    first, second = bard.forward([inlay.Step(a, prompt, rows=3), inlay.Step(b, 5, rows=0)])
    assert first.shape == (3, 1024) and second.shape == (0, 1024)
    assert (a.logits == first[-1]).all()
    with pytest.raises(inlay.FailedPreconditionError):
        b.logits
    held = a.logits.copy()
    a.append(1)
    assert (first[-1] == held).all(), "the batch's array is the caller's"
    [rows] = bard.forward([inlay.Step(a, prompt, rows=3)])
    held = a.logits.copy()
    rows /= 0.7
    assert (a.logits == held).all() and (a.fork().logits == held).all()
    assert not np.shares_memory(rows, a.logits), "it would keep all rows"

    with pytest.raises(inlay.InvalidArgumentError, match="same conversation"):
        bard.forward([(a, 1), (a, 2)])
    with pytest.raises(inlay.InvalidArgumentError, match="another model"):
        bard.forward([(a, 1), (other.sequence(), 1)])
    with pytest.raises(inlay.InvalidArgumentError, match="no steps"):
        bard.forward([])
    with pytest.raises(inlay.InvalidArgumentError):
        bard.forward([(a, [1] * (bard.max_batch + 1))])
    assert (a.logits == held).all(), "what is refused has changed nothing"
    lengths = len(a), len(b)
    full = bard.sequence([1, 2], max_length=2)
    held = full.logits.copy()
    with pytest.raises(inlay.BatchError, match="step 1: ") as caught:
        bard.forward([(a, 1), (full, 1), (b, 2)])
    assert caught.value.failed == {1: inlay.OutOfRangeError}
    assert (len(a), len(b), len(full)) == (lengths[0] + 1, lengths[1] + 1, 2)
    assert (full.logits == held).all()
    for s in (a, b):
        assert (s.logits == bard.sequence(s.tokens).logits).all()


def test_samples_as_answers_do(bard: inlay.Model, prompt: list[int]) -> None:
    options = inlay.Options(temperature=1.1, top_k=30, presence_penalty=0.5, frequency_penalty=0.2,
                            seed=3, max_tokens=15, ignore_end=True)
    expected = bard.generate(prompt, options)
    expected.result()
    sequence = bard.sequence(prompt)
    tokens: list[int] = []
    while len(tokens) < 15:
        tokens.append(sequence.sample(options, answer=len(tokens)))
        sequence.append(tokens[-1])
    assert tokens == expected.tokens
