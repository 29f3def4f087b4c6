"""Records of all local runtimes: a prompt to continue, and its completion with the reason why it ended.

:mod:`models.local.batch_generation` runs transformers checkpoints with torch, :mod:`models.local.embedded_onnx` the
embedded model with ONNX Runtime. Nothing here imports either.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Finish = Literal["end", "stop", "length", "deadline", "refused"]
"""`deadline`: see `Job.over`. `refused`: the grammar of the job is invalid or too complex; `Row.text` is the reason."""


@dataclass(frozen=True, slots=True)
class Job:
    """One prompt to continue."""

    prompt: tuple[int, ...]
    max_tokens: int
    temperature: float
    """0 = greedy."""
    seed: int | None
    stop: tuple[str, ...]
    ends_at: float
    """The deadline, by `time.monotonic()`."""
    grammar: str | None = None
    """GBNF that limits the tokens; a runtime without grammars ignores it."""
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Inputs of a vision-language model besides the tokens, see :mod:`models.local.vision_prompts`."""
    json_schema: str | None = None
    """JSON Schema that limits the tokens where there is no grammar, as far as the runtime can."""
    unwanted: threading.Event = field(default_factory=threading.Event)
    """Set once nobody waits for the answer any more."""

    @property
    def over(self) -> bool:
        """Whether no more tokens are wanted: the deadline has passed, or nobody waits."""
        return self.unwanted.is_set() or time.monotonic() > self.ends_at


@dataclass(slots=True)
class Row:
    """A job in progress and, when `finish` is set, its result."""

    job: Job
    tokens: list[int] = field(default_factory=list[int])
    logprobs: list[float] = field(default_factory=list[float])
    """Natural logarithms at temperature 1, of the distribution without a grammar."""
    cached: int = 0
    """Tokens of the prompt that were not computed again."""
    text: str = ""
    finish: Finish | None = None

    def add(self, token: int, logprob: float, ends: frozenset[int], tokenizer: Any) -> None:
        """Appends *token*; sets `finish` and `text` if it ends the answer."""
        self.tokens.append(token)
        self.logprobs.append(logprob)
        if token in ends:
            self.text = decoded(tokenizer, self.tokens[:-1])
            self.finish = "end"
        elif (text := self._before_stop(tokenizer)) is not None:
            self.text = text
            self.finish = "stop"
        elif len(self.tokens) >= self.job.max_tokens:
            self.finish = "length"

    def _before_stop(self, tokenizer: Any) -> str | None:
        """The text before the first stop string; None without one."""
        if not self.job.stop:
            return None
        text = decoded(tokenizer, self.tokens)
        places = [text.find(stop) for stop in self.job.stop if stop in text]
        return text[: min(places)] if places else None


Arrivals = Callable[[int], Sequence[Job]]
"""The jobs that join a batch, given the number of rows in progress. It is called before each token."""


class TextGenerator(ABC):
    """A causal model and its tokenizer, used from one thread at a time."""

    tokenizer: Any
    """A transformers tokenizer, or an object with the methods that :mod:`models.prompting.prompt_tokens` and `decoded`
    call."""

    @abstractmethod
    def serve(self, arrivals: Arrivals) -> Iterator[Row]:
        """Generates until no row is in progress and no job arrives; yields each row when it has ended. Rows are
        independent."""

    def run(self, jobs: Sequence[Job]) -> list[Row]:
        """Generates until every job has ended; returns rows in the order of *jobs*."""
        waiting = [jobs]
        ended: dict[int, list[Row]] = defaultdict(list)
        for row in self.serve(lambda _: waiting.pop() if waiting else ()):
            ended[id(row.job)].append(row)
        return [ended[id(job)].pop() for job in jobs]


def decoded(tokenizer: Any, tokens: Sequence[int]) -> str:
    return tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
