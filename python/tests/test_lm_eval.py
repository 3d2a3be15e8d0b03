"""The adapter for lm-evaluation-harness, against the interface that it documents."""
from __future__ import annotations

import random
import sys
import tomllib
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import inlay
from conftest import BARD, ROOT
from inlay.lm_eval import InlayLM, register


@dataclass
class Instance:
    """The part of lm_eval.api.instance.Instance that models read."""

    args: tuple[Any, ...]


def by_hand(model: inlay.Model, given: list[int], scored: list[int]) -> tuple[float, bool]:
    """A token at a time."""
    sequence = model.sequence(given)
    total, greedy = 0.0, True
    for token in scored:
        row = sequence.logits
        total += float(model.log_probabilities(row[None], [token])[0])
        greedy = greedy and int(row.argmax()) == token
        sequence.append(token)
    return total, greedy


@pytest.fixture(scope="module")
def requests() -> list[Instance]:
    lines = (ROOT / "tests/golden/demo/heldout.txt").read_text().splitlines()
    numbers = random.Random(7)
    found = []
    for _ in range(20):
        context = "\n".join(numbers.sample(lines, numbers.randrange(6)))
        for _ in range(numbers.randrange(1, 4)):  # several choices for one context
            found.append(Instance((context, " " + (numbers.choice(lines) or "Exit"))))
    return found


def test_loglikelihood_does_not_depend_on_the_batch(bard: inlay.Model,
                                                    requests: list[Instance]) -> None:
    expected = InlayLM(bard, batch_size=1).loglikelihood(requests)
    assert len({value for value, _ in expected}) > 10
    for batch_size in (2, 7, 100):
        assert InlayLM(bard, batch_size=batch_size).loglikelihood(requests) == expected
    shuffled = list(zip(requests, expected))
    random.Random(1).shuffle(shuffled)
    lm = InlayLM(inlay.Model.load(BARD, threads=1), batch_size=5)
    assert lm.loglikelihood([r for r, _ in shuffled]) == [e for _, e in shuffled]


def test_more_texts_than_a_pass_holds_tokens(bard: inlay.Model) -> None:
    requests = [Instance(("", f" {number} or not")) for number in range(bard.max_batch + 88)]
    assert (InlayLM(bard, batch_size=len(requests)).loglikelihood(requests)
            == InlayLM(bard, batch_size=7).loglikelihood(requests))


def test_loglikelihood_is_that_of_steps(bard: inlay.Model, requests: list[Instance]) -> None:
    lm = InlayLM(bard)
    found = lm.loglikelihood(requests)
    for request, answer in list(zip(requests, found))[::5]:
        context, continuation = request.args
        whole = bard.tokenize(context + continuation, special=True)
        given = bard.tokenize(context.rstrip(), special=True)
        if context == "":
            given, whole = [lm.prefix_token_id], [lm.prefix_token_id] + bard.tokenize(
                continuation, bos=False)
        assert answer == by_hand(bard, given, whole[len(given):])
    # What greedy decoding writes is found to be that.
    text = bard.generate("ROMEO:", inlay.Options(temperature=0, max_tokens=8)).result()
    [(_, greedy), (_, other)] = lm.loglikelihood([Instance(("ROMEO:", text)),
                                                  Instance(("ROMEO:", text + "xyz"))])
    assert greedy and not other


def test_long_texts_keep_the_end_of_their_context(bard: inlay.Model) -> None:
    lm = InlayLM(bard, max_length=24)
    context, continuation = "To be, or not to be, that is the question. " * 5, "Whether 'tis nobler"
    [found] = lm.loglikelihood([Instance((context, continuation))])
    given = bard.tokenize(context.rstrip(), special=True)
    scored = bard.tokenize(context + continuation, special=True)[len(given):]
    assert found == by_hand(bard, given[-(25 - len(scored)):], scored)
    with pytest.raises(ValueError, match="longer than max_length, 24"):
        lm.loglikelihood([Instance(("a", "to be or not " * 40))])
    assert lm.loglikelihood([Instance((" ", "a"))]) == lm.loglikelihood([Instance(("", " a"))])
    with pytest.raises(ValueError, match="no tokens"):
        lm.loglikelihood([Instance(("a", ""))])


def test_rolling_scores_every_token_once(bard: inlay.Model) -> None:
    text = (ROOT / "tests/golden/demo/heldout.txt").read_text()[:1500]
    tokens = bard.tokenize(text, bos=False)
    short = text[:60]
    requests = [Instance((text,)), Instance((short,)), Instance(("",))]
    results = []
    for batch_size in (1, 3):
        lm = InlayLM(bard, batch_size=batch_size, max_length=100)
        results.append(lm.loglikelihood_rolling(requests))
    assert results[0] == results[1]
    total, whole = 0.0, [lm.prefix_token_id] + tokens
    for begin in range(0, len(tokens), 100):
        scored = tokens[begin:begin + 100]
        given = whole[max(0, begin + 1 - (101 - len(scored))):begin + 1]
        total += by_hand(bard, given, scored)[0]
    assert results[0][0] == pytest.approx(total, abs=1e-6)
    assert results[0][1] == by_hand(bard, [lm.prefix_token_id],
                                    bard.tokenize(short, bos=False))[0]
    assert results[0][2] == 0


def test_generates_until(bard: inlay.Model) -> None:
    lm = InlayLM(bard, max_gen_toks=20)
    whole = bard.generate("ROMEO:", inlay.Options(temperature=0, max_tokens=20)).result()
    stop = whole[5:8]
    requests = [Instance(("ROMEO:", {"until": ["@@"]})),
                Instance(("ROMEO:", {"until": [stop], "temperature": 0.0})),
                Instance(("ROMEO:", {"until": stop, "max_gen_toks": 20, "do_sample": False})),
                Instance(("ROMEO:", {"until": [], "max_gen_toks": 3})),
                Instance(("ROMEO:", {"until": None, "temperature": None, "do_sample": None,
                                     "max_gen_toks": None, "top_k": None, "top_p": None}))]
    before = whole[:whole.index(stop)]
    found = lm.generate_until(requests)
    assert found[:3] == [whole, before, before]
    assert whole.startswith(found[3]) and found[3] != whole
    assert found[4] == whole
    sampled = Instance(("ROMEO:", {"do_sample": True, "temperature": 1.5}))
    assert lm.generate_until([sampled]) == lm.generate_until([sampled]) != [whole]
    with pytest.raises(ValueError, match="max_gen_toks is 9999"):
        lm.generate_until([Instance(("a", {"max_gen_toks": 9999}))])


def test_what_the_harness_asks_besides(bard: inlay.Model, scripted: inlay.Model) -> None:
    lm = InlayLM.create_from_arg_string(f"path={BARD},threads=1,max_length=64",
                                        {"batch_size": 3, "device": None})
    assert (lm.batch_size, lm.max_length, lm.rank, lm.world_size) == (3, 64, 0, 1)
    for batch_size in ("auto", "auto:4"):
        other = InlayLM.create_from_arg_string(f"path={BARD},threads=1", {"batch_size": batch_size})
        assert other.batch_size == 8
    assert "/" not in lm.tokenizer_name
    assert lm.chat_template(True) == InlayLM(bard).chat_template(True)
    template = InlayLM(scripted).apply_chat_template([{"role": "user", "content": "Hello"}])
    assert template.startswith("<|im_start|>user\nHello<|im_end|>")

    class Hook:
        told: list[tuple[str, Any, Any]] = []

        def add_partial(self, name: str, args: Any, answer: Any) -> None:
            self.told.append((name, args, answer))

    hook = Hook()
    lm.set_cache_hook(hook)
    [answer] = lm.loglikelihood([Instance(("To be", " or"))])
    assert hook.told == [("loglikelihood", ("To be", " or"), answer)]
    assert np.isfinite(answer[0])
    with pytest.raises(ValueError, match="batch_size is 0"):
        InlayLM(bard, batch_size=0)


def test_the_harness_finds_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the entry point, or by register() in its own process: the same class, which is one of its models."""
    class LM:
        pass

    registered: dict[str, Any] = {}
    modules = {name: ModuleType(name) for name in ("lm_eval", "lm_eval.api", "lm_eval.api.model",
                                                   "lm_eval.api.registry")}
    setattr(modules["lm_eval.api.model"], "LM", LM)
    setattr(modules["lm_eval.api.registry"], "register_model",
            lambda name: lambda made: registered.setdefault(name, made))
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    project = tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]
    value = project["entry-points"]["lm_eval.models"]["inlay"]
    made = EntryPoint("inlay", value, "lm_eval.models").load()
    assert issubclass(made, LM) and issubclass(made, InlayLM)
    lm = made.create_from_arg_string(f"path={BARD},threads=1", {})
    assert len(lm.loglikelihood([Instance(("To be", " or"))])) == 1
    register()
    assert registered == {"inlay": made}
