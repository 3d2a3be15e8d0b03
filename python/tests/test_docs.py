"""The code blocks of docs/python.md run in their order, and the recipes do what they say."""
from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inlay
from conftest import BARD, BUILD, ROOT

PAGE = ROOT / "docs/python.md"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the blocks of the page have defined."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "model.gguf").symlink_to(BARD)
    subprocess.run([BUILD / "inlay", "quantize", BARD, folder / "small.gguf", "Q4_0"], check=True)
    names: dict[str, Any] = {}
    text = PAGE.read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            # Errors have the page's lines.
            lines = text.count("\n", 0, block.start(1))
            exec(compile("\n" * lines + block[1], str(PAGE), "exec"), names)
    names["folder"] = folder
    return names


def greedy(model: inlay.Model, prompt: list[int], length: int) -> list[int]:
    sequence = model.sequence(prompt)
    for _ in range(length):
        sequence.append(int(sequence.logits.argmax()))
    return list(map(int, sequence.tokens))


def likelihood(model: inlay.Model, given: list[int], tokens: list[int]) -> float:
    """A token at a time."""
    sequence, total = model.sequence(given), 0.0
    for token in tokens:
        total += float(model.log_probabilities(sequence.logits[None], [token])[0])
        sequence.append(token)
    return total


def test_beam_search(page: dict[str, Any]) -> None:
    model, prompt = page["model"], page["model"].tokenize("ROMEO:\n")
    scores = [score for score, _ in page["beams"]]
    assert scores == sorted(scores, reverse=True) and len(set(scores)) == 4
    for score, sequence in page["beams"]:
        tokens = sequence.tokens.tolist()
        assert len(tokens) == len(prompt) + 12
        assert score == likelihood(model, prompt, tokens[len(prompt):])
    alone = greedy(model, prompt, 12)
    assert page["beam_search"](model, prompt, 1, 12)[0][1].tokens.tolist() == alone
    assert scores[0] >= likelihood(model, prompt, alone[len(prompt):])


def test_tree_shares_memory(page: dict[str, Any]) -> None:
    assert len({leaf.text for leaf in page["leaves"]}) > 4
    assert page["together"] < 0.75 * page["alone"]
    assert all(leaf.tokens[:len(page["trunk"])].tolist() == page["trunk"].tokens.tolist()
               for leaf in page["leaves"])


def test_contrast(page: dict[str, Any]) -> None:
    model = page["model"]
    prompt = model.tokenize("JULIET:\n")
    # With an alpha of 1 only the expert's choice is plausible.
    assert page["contrast"](model, page["amateur"], prompt, 9, alpha=1).tokens.tolist() \
        == greedy(model, prompt, 9)
    assert page["contrast"](model, page["amateur"], prompt, 20).tokens.tolist() \
        != greedy(model, prompt, 20)


@pytest.mark.parametrize("text", ["HAMLET:\n", "To be, or not to be", "a"])
@pytest.mark.parametrize("most", [1, 4, 9])
def test_speculation_is_exact_and_saves_passes(page: dict[str, Any], text: str, most: int) -> None:
    model, prompt = page["model"], page["model"].tokenize(text)
    sequence, passes = page["speculate"](model, page["amateur"], prompt, 40, most)
    assert sequence.tokens.tolist() == greedy(model, prompt, 40)
    assert passes < 40
    source = PAGE.read_text()
    body = source[source.index("def speculate"):source.index("text, passes = speculate")]
    assert len(body.strip().splitlines()) <= 22, "it is short"


def test_evaluation_resumes(page: dict[str, Any]) -> None:
    model, whole = page["model"], page["whole"]
    assert len(whole) == 3 and page["first"].items() < whole.items()
    [log] = (page["folder"] / "results").glob("*.jsonl")
    [other] = (page["folder"] / "another folder").glob("*.jsonl")
    assert log.read_bytes() == other.read_bytes()
    given = model.tokenize("SONNET\n\n")
    for verse, value in zip(page["verses"], whole.values()):
        tokens = model.tokenize(verse, bos=False)
        assert value == pytest.approx(-likelihood(model, given, tokens) / len(tokens), abs=1e-9)
    # Stopped amid a line.
    text = log.read_bytes()
    log.write_bytes(text[:-10])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(page["folder"])
        assert page["evaluate"](model, "SONNET\n\n", page["verses"], "results") == whole
    assert log.read_bytes() == text


def test_basics(page: dict[str, Any]) -> None:
    assert re.fullmatch("(yes|no), because [a-z ]{5,40}[.]",
                        page["model"].generate("Is it?", page["options"]).result())
    assert page["messages"][-1]["role"] == "assistant"
    assert np.isfinite(page["logits"]).all()


def test_readme(page: dict[str, Any]) -> None:
    text = (ROOT / "python/README.md").read_text()
    [block] = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(page["folder"])
        exec(block, {})


def test_folder_is_left_alone(page: dict[str, Any]) -> None:
    found = {path.name for path in Path(page["folder"]).iterdir()}
    assert found == {"model.gguf", "small.gguf", "results", "another folder"}
