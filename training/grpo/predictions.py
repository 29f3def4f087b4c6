"""Answers of a model to examples: read from a file, or kept in a folder so that an interrupted evaluation continues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Generic, Self, TypeVar

from pydantic import Field, ValidationError

from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput
from envs.core.plain_values import first_problem
from envs.core.record import Record, storable
from judges.statistics import RESAMPLES, Estimate, clustered_mean
from models.base import ModelError, Usage
from training.grpo.examples import Example
from training.grpo.rewards import Target, extract_thought, read_completion
from training.loop.parts import begin_or_continue, check_folder


class Answer(Record):
    """An answer to one example."""

    name: str
    """Of the example."""


A = TypeVar("A", bound=Answer)


class Prediction(Answer):
    """A model's answer to one example, or a point from elsewhere."""

    point: tuple[float, float] | None = None
    """In pixels of the image file; None if the answer names no usable point, or is asked for none."""
    answer: str = ""
    problem: str = ""
    """Why there is no point."""
    tokens: int = 0
    """Of the answer and of hidden thoughts, as far as the model counts them."""
    thought_tokens: int | None = Field(default=None, ge=0)
    """Of hidden thoughts and of the thought in the answer; None: not known."""


def count_thought_tokens(target: Target, answer: str, usage: Usage) -> int:
    """Tokens of hidden thoughts, and of the thought in *answer* by its share of the characters: a served model does not
    say where they end."""
    thought = extract_thought(target, read_completion(answer))
    return usage.tokens_thinking + (round(usage.tokens_out * len(thought) / len(answer)) if answer else 0)


def mean_thought_tokens(answers: Sequence[tuple[int | None, str]], *, seed: int = 0) -> Estimate:
    """Mean tokens of thoughts over *answers*, pairs of tokens (None: not known, does not count) and the cluster; the
    interval is of a bootstrap over whole clusters (RESAMPLES draws)."""
    known = [(float(tokens), cluster) for tokens, cluster in answers if tokens is not None]
    values, names = [tokens for tokens, _ in known], [cluster for _, cluster in known]
    return clustered_mean(values, names, resamples=RESAMPLES, seed=seed)


def unusable(example: Example, error: ModelError) -> Prediction:
    """The prediction of an answer that cannot be used, such as one that was cut off: all of it is thought."""
    spent = None if error.usage is None else error.usage.tokens_out + error.usage.tokens_thinking
    problem = storable(str(error).splitlines()[0])
    return Prediction(name=example.name, problem=problem, tokens=spent or 0, thought_tokens=spent)


def read_predictions(path: Path, kind: type[A]) -> dict[str, A]:
    """Reads a JSON Lines file of predictions of *kind*, by name of the example. Raises BadInput."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"predictions {str(path)!r} cannot be read: {reason}") from None
    by_name: dict[str, A] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            prediction = kind.model_validate_json(line)
        except ValidationError as error:
            raise BadInput(f"{path}:{number}: not a prediction: {first_problem(error)}") from None
        by_name[prediction.name] = prediction
    return by_name


def check_predictions(predictions: Mapping[str, Answer], examples: Iterable[Example]) -> None:
    """Raises BadInput if *predictions* name an example that is not there, or lack one."""
    names = [example.name for example in examples]
    if unknown := next(iter(predictions.keys() - set(names)), None):
        raise BadInput(f"the predictions name {unknown!r}, which is not an example")
    if missing := next((name for name in names if name not in predictions), None):
        raise BadInput(f"the predictions lack the example {missing!r}")


class Asked(Record):
    """What the answers of a folder depend on."""

    policy: str
    profile: str = ""
    """Of a model that sees."""
    think: bool = False
    resolution: bool = False
    max_tokens: int | None = None
    """Longest visible answer, where that can be set."""
    examples: str
    """:func:`training.grpo.examples.examples_digest`."""


ASKED: Final = "asked.json"


class StoredAnswers(Generic[A]):
    """Answers by name of the example; in memory only where no folder is named."""

    def __init__(self, answers: dict[str, A], file: Path | None) -> None:
        self.answers = answers
        self._file = file
        self._out: IO[str] | None = None

    @classmethod
    def open(cls, out: Path | None, asked: Asked, kind: type[A]) -> Self:
        """The answers of *kind* that *out* holds. A last line that was cut when its writer was killed is dropped.
        Raises BadInput if *out* holds other files, or answers to other questions."""
        if out is None:
            return cls({}, None)
        check_folder(out, ASKED, "evaluation")
        begin_or_continue(out / ASKED, asked, "an evaluation")
        file = out / "predictions.jsonl"
        if not file.is_file():
            return cls({}, file)
        _drop_cut_line(file)
        return cls(read_predictions(file, kind), file)

    def __enter__(self) -> Self:
        self._out = None if self._file is None else self._file.open("a", encoding="utf-8")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._out is not None:
            self._out.close()

    def add(self, prediction: A) -> None:
        self.answers[prediction.name] = prediction
        if self._out is not None:
            self._out.write(prediction.model_dump_json() + "\n")
            self._out.flush()


def _drop_cut_line(file: Path) -> None:
    text = file.read_text(encoding="utf-8", errors="replace")
    if not text.endswith("\n"):
        write_atomically(file, text[: text.rfind("\n") + 1])
