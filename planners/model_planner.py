"""Planner with a chat model: K milestones at the start and on the triggers of :mod:`planners.replan_triggers`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from envs.core.record import Record, storable
from envs.core.tasks import Milestone
from models.asking import ask
from models.base import Budget, ChatModel, ChatRequest
from models.thinking import budget_of, has_dynamic_mode, validate_budget
from planners.base import Plan, Situation
from planners.examples import Example, load_examples
from planners.prompts import render, shuffled

MAX_MILESTONE_CHARS: Final = 300

_NUMBER = re.compile(r"^\s*(?:m?\d+[.):]|[-*•])\s+")
_ID = re.compile(r"m(\d+)")


class PlannerSettings(Record):
    """Settings of a model planner."""

    k: int = Field(default=4, ge=1, le=20)
    """Number of milestones of a plan, achieved ones included."""
    budget: Budget = "auto"
    """Thinking tokens. `auto`: the model's default for the first plan, 8192 for a re-plan (the ambiguous case)."""
    seed: int = 0
    """Seed of the order of examples, if they are shuffled."""
    shuffle_examples: bool = False
    """Another order of the examples for each call (MiRA paper, §5.1: the model must not learn an order). False keeps
    the file's order, so that a server's prefix cache includes the examples."""
    deadline_s: float = Field(default=120.0, gt=0)
    """Deadline of one call in seconds, retries and repair included."""

    @field_validator("budget")
    @classmethod
    def _known_budget(cls, budget: Budget) -> Budget:
        return validate_budget(budget)


class _Answer(BaseModel):
    """Base of the answer schemas; a subclass has exactly the fields m1 … mN, so that the schema requires N."""

    model_config = ConfigDict(extra="forbid")

    taken: ClassVar[frozenset[str]] = frozenset()
    """Texts of the anchors, as :func:`comparable` text."""

    @model_validator(mode="after")
    def _each_is_new(self) -> _Answer:
        check_new(self.texts(), self.taken)
        return self

    def texts(self) -> dict[str, str]:
        """Returns field name to cleaned milestone, in order."""
        return {name: cleaned(getattr(self, name)) for name in type(self).model_fields}


@lru_cache(maxsize=32)
def answer_schema(count: int, taken: frozenset[str] = frozenset()) -> type[_Answer]:
    """Returns the schema with exactly the fields `m1` … `mCOUNT`; equal arguments give the same class."""
    fields: dict[str, Any] = {f"m{i}": (str, ...) for i in range(1, count + 1)}
    schema = create_model(f"Milestones{count}", __base__=_Answer, **fields)
    schema.taken = taken
    return schema


def check_new(texts: Mapping[str, str], taken: Collection[str]) -> None:
    """Raises ValueError for a milestone in *texts* (name to cleaned milestone, in order) that is empty, too long, or
    repeats an earlier one or one of *taken* (:func:`comparable` texts)."""
    seen = set(taken)
    for name, text in texts.items():
        if not (key := comparable(text)):
            raise ValueError(f"{name} is empty")
        if len(text) > MAX_MILESTONE_CHARS:
            raise ValueError(f"{name} is longer than {MAX_MILESTONE_CHARS} characters")
        if key in seen:
            raise ValueError(f"{name} repeats an earlier milestone")
        seen.add(key)


def cleaned(text: str) -> str:
    """Returns *text* as one storable line, without a leading number or bullet."""
    return _NUMBER.sub("", " ".join(storable(text).split()))


def comparable(text: str) -> str:
    """Returns the letters and digits of *text*, case folded: equal for milestones with the same words."""
    return " ".join(re.findall(r"\w+", cleaned(text).casefold()))


class ModelPlanner:
    """Plans exactly `k` milestones with *model* (MiRA paper, §5.1, Fig. 19).

    A re-plan keeps the anchors first and unchanged and plans the rest: `k` minus the anchors, at least one. Only for
    the trigger `milestone_lost` may a new milestone repeat an anchor's text. New milestones never reuse an id of the
    plan that they replace. An answer with too few, too many, empty or repeated milestones raises
    :class:`models.base.ModelInvalidAnswer` (after one repair attempt of the model layer).
    """

    def __init__(
        self,
        model: ChatModel,
        settings: PlannerSettings | None = None,
        examples: tuple[Example, ...] | None = None,
    ) -> None:
        """*examples* replace the data files of the site category; `()`: no examples."""
        self.spec = model.spec
        self.settings = settings or PlannerSettings()
        self._model = model
        self._examples = examples

    async def plan(self, situation: Situation) -> Plan:
        count = max(1, self.settings.k - len(situation.anchors))
        examples = load_examples(situation.category) if self._examples is None else self._examples
        if self.settings.shuffle_examples:
            examples = shuffled(examples, seed=self.settings.seed, situation=situation)
        request = ChatRequest(
            messages=render(situation, examples, count),
            thinking_tokens=self._thinking(situation),
            max_tokens=120 * count + 200,
            deadline_s=self.settings.deadline_s,
        )
        redo = situation.cause == "milestone_lost"
        taken = frozenset(() if redo else (comparable(anchor.text) for anchor in situation.anchors))
        answered = await ask(self._model, request, answer_schema(count, taken))
        new = numbered(situation, tuple(answered.answer.texts().values()))
        return Plan(milestones=situation.anchors + new, reply=answered.reply)

    def _thinking(self, situation: Situation) -> Budget | None:
        if self.settings.budget == "auto" and situation.cause == "initial" and not has_dynamic_mode(self._model):
            return None
        return budget_of(self._model, self.settings.budget)


def numbered(situation: Situation, texts: tuple[str, ...]) -> tuple[Milestone, ...]:
    """Returns milestones with ids `mN` above the highest id of the current plan."""
    used = [int(match[1]) for m in situation.anchors + situation.open if (match := _ID.fullmatch(m.id))]
    first = max(used, default=0) + 1
    return tuple(Milestone(id=f"m{number}", text=text) for number, text in enumerate(texts, first))
