"""Models: what they are, their tokens, likelihoods and embeddings."""
from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inlay
from conftest import BARD, BUILD, PROMPT, ROOT
from inlay import Tokens


def test_tells_what_it_is(bard: inlay.Model) -> None:
    assert (bard.config, bard.vocabulary_size, bard.layers) == ("bard", 1024, 8)
    assert bard.context_length == 2048
    assert bard.embedding_dim == 0 and not bard.has_template
    assert bard.max_batch >= 32
    assert repr(bard) == "<inlay.Model bard>"
    assert {"bard", "gemma-3-1b", "qwen3.5-4b"} <= set(inlay.configs())
    fingerprint = bard.fingerprint("q8")
    assert fingerprint.startswith(f"inlay-{inlay.__version__}/") and fingerprint.endswith("/q8")
    assert bard.fingerprint() != fingerprint


def test_notices_are_in_the_wheel() -> None:
    notices = Path(inlay.__file__).parent / "notices"
    assert "Apache License" in (notices / "LICENSE").read_text()
    for name in ("Abseil", "Highway", "hiredis"):
        assert f"\n{name}" in (notices / "NOTICE").read_text()


def test_tokens_and_back(bard: inlay.Model) -> None:
    tokens = bard.tokenize(PROMPT)
    assert bard.detokenize(tokens) == PROMPT
    assert bard.detokenize(np.array(tokens, np.int64)) == PROMPT
    assert b"".join(map(bard.token_bytes, tokens)) == PROMPT.encode()
    assert bard.tokenize(PROMPT.encode()) == tokens
    assert bard.tokenize("") == bard.tokenize("", bos=False) or bard.adds_bos
    assert bard.eos is not None
    name = bard.token_name(bard.eos)
    assert bard.tokenize(name, special=True)[-1] == bard.eos
    assert bard.tokenize(name)[-1] != bard.eos
    assert bard.is_end(bard.eos) and bard.is_control(bard.eos)
    assert not bard.is_end(tokens[-1]) and not bard.is_control(tokens[-1])
    long = PROMPT * 1000
    assert bard.detokenize(bard.tokenize(long)) == long
    # With BOS on and off.
    if bard.bos is not None:
        assert bard.tokenize("a", bos=True)[0] == bard.bos
        assert bard.tokenize("a", bos=False) == bard.tokenize("a", bos=True)[1:]


def test_perplexity_is_that_of_the_command(bard: inlay.Model, tmp_path: Path) -> None:
    text = (ROOT / "tests/golden/demo/heldout.txt").read_text()[:6000]
    file = tmp_path / "text.txt"
    file.write_text(text)
    run = subprocess.run([BUILD / "inlay", "perplexity", "-m", BARD, "-f", file, "-c", "64", "-o",
                          "json"], check=True, capture_output=True, text=True)
    expected = json.loads(run.stdout)
    found = bard.perplexity(text, chunk=64)
    assert bard.perplexity(bard.tokenize(text), chunk=64) == found
    assert found.scored == expected["scored"]
    assert found.mean_nll == expected["mean_nll"]
    assert found.perplexity == expected["perplexity"]
    assert found.perplexity_error == expected["perplexity_error"]
    with pytest.raises(inlay.InvalidArgumentError, match="chunk is 3"):
        bard.perplexity(text, chunk=3)


def test_notes_and_batches(bard: inlay.Model) -> None:
    assert bard.notes == []
    small = inlay.Model.load(BARD, threads=1, max_batch=4)
    assert small.max_batch == 4
    with pytest.raises(inlay.InvalidArgumentError, match="5 tokens is not between 1 and 4"):
        small.forward([(small.sequence(), [1, 2, 3, 4, 5])])


def test_instruction_sets() -> None:
    script = f"""if True:
        import inlay
        try:
            inlay.set_target("PDP11")
        except inlay.InvalidArgumentError as error:
            names = str(error).split("(")[1].split(")")[0].split(", ")
        inlay.set_target(names[-1])
        model = inlay.Model.load({str(BARD)!r}, threads=1)
        print(model.fingerprint())
        try:
            inlay.set_target()
        except inlay.FailedPreconditionError:
            del model
        inlay.set_target()
        print(inlay.Model.load({str(BARD)!r}, threads=1).fingerprint())"""
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    plain, best = run.stdout.split()
    assert best == inlay.Model.load(BARD, threads=1).fingerprint()
    assert plain.startswith(f"inlay-{inlay.__version__}/")


def test_a_file_that_shrinks(tmp_path: Path) -> None:
    file = tmp_path / "shrinks.gguf"
    shutil.copyfile(BARD, file)
    script = f"""if True:
        import os
        import inlay
        inlay.guard_mapped_files()
        model = inlay.Model.load({str(file)!r}, threads=1)
        os.truncate({str(file)!r}, 8192)
        try:
            model.sequence([1, 2, 3])
        except inlay.DataLossError as error:
            print(error)"""
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert "shorter" in run.stdout


def test_log_probabilities(bard: inlay.Model, prompt: list[int]) -> None:
    [rows] = bard.forward([inlay.Step(bard.sequence(), prompt, rows=len(prompt))])
    found = bard.log_probabilities(rows[:-1], prompt[1:])
    for i, token in enumerate(prompt[1:]):
        row = rows[i].astype(np.float64)
        assert found[i] == pytest.approx(row[token] - np.logaddexp.reduce(row), abs=1e-9)
        # One row at a time: the same bits.
        assert bard.log_probabilities(rows[i:i + 1], [token])[0] == found[i]
    with pytest.raises(ValueError, match="shape"):
        bard.log_probabilities(rows, prompt[1:])


def test_embeds(embeds: inlay.Model, bard: inlay.Model) -> None:
    texts: list[Tokens] = [[5, 6, 7], np.arange(3, 20), [9]]
    vectors = embeds.embed(texts)
    assert vectors.shape == (3, embeds.embedding_dim) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    for text, vector in zip(texts, vectors):
        assert (embeds.embed([text])[0] == vector).all(), "no other text of the batch counts"
    one: Any
    for one in ("text", b"text"):  # not the texts of its letters
        with pytest.raises(TypeError, match="not several texts"):
            embeds.embed(one)
    with pytest.raises(inlay.FailedPreconditionError):
        bard.embed(["text"])
    with pytest.raises(inlay.FailedPreconditionError):
        embeds.sequence().append([1])


def test_models_of_several_families(other: inlay.Model) -> None:
    assert other.config == "test-granite"
    sequence = other.sequence([3, 1, 2], max_length=50)
    assert sequence.logits.shape == (other.vocabulary_size,)
    assert math.isfinite(float(sequence.logits.sum()))


def test_pull_refuses_what_is_no_name() -> None:
    with pytest.raises(inlay.InvalidArgumentError):
        inlay.pull("no name")


def test_pull_finds_what_is_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The layout of the cache that tools share.
    repo = tmp_path / "models--someone--bard-GGUF"
    commit = "0" * 40
    folder = repo / "snapshots" / commit
    folder.mkdir(parents=True)
    (repo / "refs").mkdir()
    (repo / "refs/main").write_text(commit)
    (folder / "bard-F16.gguf").symlink_to(BARD)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert Path(inlay.pull("someone/bard-GGUF")).samefile(BARD)
    assert inlay.Model.pull("someone/bard-GGUF:F16").config == "bard"
