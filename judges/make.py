"""Makes the AutoRater and the outcome judge that a run's configuration names."""

from __future__ import annotations

from judges.base import AutoRater
from judges.state_rater import StateRater
from models.base import ChatModel


def make_rater(spec: str, model: ChatModel | None = None) -> AutoRater:
    """`state`, or any model spec together with the *model* made from it."""
    if spec == "state":
        return StateRater()
    if model is None:
        raise ValueError(f"rater {spec!r} needs a model; use `state` or a model spec")
    raise ValueError(f"rater {spec!r} is not known")
