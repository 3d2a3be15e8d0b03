"""Models for EleutherAI's lm-evaluation-harness, with results that do not depend on the batch.

`InlayLM` has the interface of its models (lm_eval.api.model.LM) and needs nothing of it: requests
are objects whose `args` are those that the harness documents. An installed harness that looks for
plugins (since August 2026) finds it:

    lm_eval run --model inlay --model_args path=model.gguf --tasks ...

An older one must be told of it in its own process:

    python -c 'import inlay.lm_eval, lm_eval.__main__ as harness; inlay.lm_eval.register(); harness.cli_evaluate()' \\
        --model inlay --model_args path=model.gguf --tasks ...
"""
from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence as SequenceOf
from functools import cache
from itertools import groupby
from typing import Any, Protocol

import numpy as np

from .errors import InvalidArgumentError
from .model import Model, Step
from .options import Options
from .sequence import Sequence


class Request(Protocol):
    """What the harness calls an instance."""

    @property
    def args(self) -> tuple[Any, ...]: ...


class _Scoring:
    """One text to be scored: its tokens after those that are given."""

    def __init__(self, given: list[int], scored: list[int]) -> None:
        self.given = given
        self.scored = scored
        self.log_probability = 0.0
        self.greedy = True


class InlayLM:
    """A model for the harness.

    `batch_size`: texts that are scored in one pass; results have the same bits with any.
    `max_length`: of a sequence, in tokens; 0: the model's trained length. `max_gen_toks`: of an
    answer, where a request does not say.
    """

    rank = 0
    world_size = 1

    def __init__(self, model: Model, *, batch_size: int = 8, max_length: int = 0,
                 max_gen_toks: int = 256) -> None:
        if batch_size < 1:
            raise InvalidArgumentError(f"batch_size is {batch_size}, not at least 1")
        self.model = model
        self.batch_size = batch_size
        self.max_length = max_length or model.context_length
        self.max_gen_toks = max_gen_toks
        prefix = model.bos if model.bos is not None else model.eos
        if prefix is None:
            raise InvalidArgumentError("the model has neither BOS nor EOS to begin a text with")
        self.prefix_token_id = prefix
        self.cache_hook: Any = None

    @classmethod
    def create_from_arg_string(cls, arg_string: str,
                               additional_config: Mapping[str, Any] | None = None) -> InlayLM:
        """From "path=model.gguf,threads=4,max_length=2048", as the harness's command line has it."""
        pairs = dict(part.split("=", 1) for part in arg_string.split(",") if part)
        return cls.create_from_arg_obj(pairs, additional_config)

    @classmethod
    def create_from_arg_obj(cls, arg_dict: Mapping[str, Any],
                            additional_config: Mapping[str, Any] | None = None) -> InlayLM:
        values = {**(additional_config or {}), **arg_dict}
        model = Model.load(str(values["path"]), threads=int(values.get("threads", 0)))
        batch = str(values.get("batch_size") or "auto")  # "auto:4": how often to try sizes anew
        return cls(model, batch_size=8 if batch.startswith("auto") else int(batch),
                   max_length=int(values.get("max_length", 0)),
                   max_gen_toks=int(values.get("max_gen_toks", 256)))

    def set_cache_hook(self, cache_hook: Any) -> None:
        """Told of each result, as the harness stores them."""
        self.cache_hook = cache_hook

    @property
    def tokenizer_name(self) -> str:
        """What the harness's own caches name the model by: all that determines its results."""
        return self.model.fingerprint().replace("/", "_")

    def chat_template(self, chat_template: bool | str = False) -> str:
        """The harness only compares it between runs."""
        return hashlib.sha256(self.tokenizer_name.encode()).hexdigest()

    def apply_chat_template(self, chat_history: list[dict[str, str]],
                            add_generation_prompt: bool = True) -> str:
        return self.model.chat(chat_history, generation_prompt=add_generation_prompt).text

    def loglikelihood(self, requests: SequenceOf[Request],
                      disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """For each (context, continuation): the logarithm of the continuation's probability, and
        whether greedy decoding would write it."""
        work = [self._scoring(*request.args) for request in requests]
        self._score(work)
        found = [(one.log_probability, one.greedy) for one in work]
        self._tell("loglikelihood", requests, found)
        return found

    def loglikelihood_rolling(self, requests: SequenceOf[Request],
                              disable_tqdm: bool = False) -> list[float]:
        """For each (text,): the logarithm of its probability, every token scored once, in windows
        of max_length tokens where it is longer."""
        windows = [list(self._windows(self.model.tokenize(request.args[0], bos=False)))
                   for request in requests]
        self._score([one for text in windows for one in text])
        found = [float(sum(one.log_probability for one in text)) for text in windows]
        self._tell("loglikelihood_rolling", requests, found)
        return found

    def generate_until(self, requests: SequenceOf[Request],
                       disable_tqdm: bool = False) -> list[str]:
        """For each (context, {"until": [...], "max_gen_toks", "do_sample", "temperature", "top_p",
        "top_k"}): the answer before the first text of "until"."""
        found = [self._answer(*request.args) for request in requests]
        self._tell("generate_until", requests, found)
        return found

    def _tell(self, name: str, requests: SequenceOf[Request], found: Iterable[Any]) -> None:
        if self.cache_hook is not None:
            for request, answer in zip(requests, found):
                self.cache_hook.add_partial(name, request.args, answer)

    def _encode(self, text: str) -> list[int]:
        # The text may be that of a chat template, which the harness trusts.
        return self.model.tokenize(text, special=True)

    def _scoring(self, context: str, continuation: str) -> _Scoring:
        # White space between the two belongs to the continuation's first token.
        stripped = context.rstrip()
        continuation = context[len(stripped):] + continuation
        if stripped == "":
            given, scored = [self.prefix_token_id], self.model.tokenize(continuation, bos=False)
        else:
            given = self._encode(stripped)
            scored = self._encode(stripped + continuation)[len(given):]
        if not scored:
            raise InvalidArgumentError(f"the continuation {continuation!r} has no tokens")
        if len(scored) > self.max_length:
            raise InvalidArgumentError(f"a continuation of {len(scored)} tokens is longer than "
                                       f"max_length, {self.max_length}")
        # The sequence needs all tokens but the last.
        return _Scoring(given[-(self.max_length - len(scored) + 1):], scored)

    def _windows(self, tokens: list[int]) -> Iterator[_Scoring]:
        """Disjoint windows that score every token; the first one follows the prefix token, the
        others as many tokens as there is room for."""
        before = [self.prefix_token_id]
        for begin in range(0, len(tokens), self.max_length):
            scored = tokens[begin:begin + self.max_length]
            room = self.max_length - len(scored) + 1
            yield _Scoring((before + tokens[:begin])[-room:], scored)

    def _score(self, work: list[_Scoring]) -> None:
        """Scores texts. Those that follow the same tokens are forks of one sequence."""
        ordered = sorted(work, key=lambda one: one.given)
        pending: list[tuple[_Scoring, Sequence]] = []
        for given, group in groupby(ordered, key=lambda one: one.given):
            root = self.model.sequence(max_length=self.max_length)
            if len(given) > 1:
                root.append(given[:-1], logits=False)
            for one in group:
                pending.append((one, root.fork()))
                if len(pending) == self.batch_size:
                    self._run(pending)
                    pending = []
        self._run(pending)

    def _run(self, batch: list[tuple[_Scoring, Sequence]]) -> None:
        """In as few passes as hold the tokens; a long text takes several, and so do more texts than
        a pass holds tokens."""
        queues = [(one, sequence, [one.given[-1], *one.scored[:-1]], list(one.scored))
                  for one, sequence in batch]
        while queues:
            together = queues[:self.model.max_batch]
            share = self.model.max_batch // len(together)
            steps = [Step(sequence, tokens[:share], min(share, len(tokens)))
                     for _, sequence, tokens, _ in together]
            for (one, _, tokens, scored), rows in zip(together, self.model.forward(steps)):
                expected = np.array(scored[:len(rows)])
                for chance in self.model.log_probabilities(rows, expected):
                    one.log_probability += float(chance)  # one order of additions for any batch
                one.greedy = one.greedy and bool((rows.argmax(axis=1) == expected).all())
                del tokens[:len(rows)], scored[:len(rows)]
            queues = [queue for queue in queues if queue[2]]

    def _answer(self, context: str, settings: Mapping[str, Any]) -> str:
        settings = {name: value for name, value in settings.items() if value is not None}
        until = settings.get("until", [])
        until = [until] if isinstance(until, str) else list(until)
        sampled = bool(settings.get("do_sample", settings.get("temperature", 0) > 0))
        most = int(settings.get("max_gen_toks", self.max_gen_toks))
        options = Options(max_tokens=most, stop=[text for text in until if text],
                          temperature=float(settings.get("temperature", 1)) if sampled else 0,
                          top_k=int(settings.get("top_k", 0)),
                          top_p=float(settings.get("top_p", 1)), min_p=0, repeat_penalty=1,
                          seed=int(settings.get("seed", 0)))
        tokens = self._encode(context) or [self.prefix_token_id]
        room = self.max_length - most
        if room < 1:
            raise InvalidArgumentError(f"max_gen_toks is {most}, not less than max_length, "
                                       f"{self.max_length}")
        sequence = self.model.sequence(max_length=self.max_length)
        return sequence.generate(tokens[-room:], options).result()


@cache
def _harness_lm() -> Any:
    from lm_eval.api.model import LM  # type: ignore[import]

    return type("HarnessLM", (InlayLM, LM), {"__module__": __name__})


def __getattr__(name: str) -> Any:
    """HarnessLM, which is an InlayLM and a model of the harness: made when the harness asks for it."""
    if name == "HarnessLM":
        return _harness_lm()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def register(name: str = "inlay") -> None:
    """Makes the installed harness know the model by this name, in this process."""
    from lm_eval.api.registry import register_model  # type: ignore[import]

    register_model(name)(_harness_lm())
