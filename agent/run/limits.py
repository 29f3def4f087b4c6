"""Tracks the usage of an episode and compares it with its limits. Reaching a limit is a result, not an error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from agent.config import Limits
from envs.core.trace import Call, EndedBy, Footer, Header, Totals

RAISED_BY: Final[Mapping[EndedBy, tuple[str, str]]] = {
    "max_steps": ("max_steps", "--max-steps"),
    "max_seconds": ("max_seconds", "--max-seconds"),
    "max_tokens": ("max_tokens", "--max-tokens"),
    "max_cost": ("max_cost_usd", "--max-cost"),
}
"""The field of :class:`agent.config.Limits` and the option of `mira run` behind each limit that can end an episode."""


@dataclass(slots=True)
class UsageTracker:
    """Running sums of one episode, over all processes that ran it."""

    seconds_before: float = 0.0
    """Seconds of the processes before this one, without downtime."""
    tokens_in: int = 0
    tokens_out: int = 0
    """Visible and thinking tokens."""
    cost_usd: float = 0.0
    """Sum over calls with a known price."""
    model_calls: int = 0
    """Calls that were sent. The prompts of a demonstration are rendered but not sent, and not counted."""

    def add(self, calls: Iterable[Call]) -> None:
        for call in calls:
            self.tokens_in += call.tokens_in
            self.tokens_out += call.tokens_out + call.tokens_thinking
            self.cost_usd += call.cost_usd or 0.0
            self.model_calls += call.attempts > 0

    def totals(self, steps: int, seconds: float) -> Totals:
        return Totals(
            steps=steps,
            seconds=round(self.seconds_before + seconds, 3),
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            cost_usd=self.cost_usd,
            model_calls=self.model_calls,
        )


def limit_reached(limits: Limits, spent: Totals) -> EndedBy | None:
    """The first limit that *spent* reaches; None if none is reached."""
    if spent.steps >= limits.max_steps:
        return "max_steps"
    if 0 < limits.max_seconds <= spent.seconds:
        return "max_seconds"
    if 0 < limits.max_tokens <= spent.tokens:
        return "max_tokens"
    if 0 < limits.max_cost_usd <= spent.cost_usd:
        return "max_cost"
    return None


def ending_named(ended_by: EndedBy, limits: Limits | None) -> str:
    """Describes how an episode ended. A limit is shown with its value and the option that raises it."""
    if limits is None or ended_by not in RAISED_BY:
        return ended_by
    name, option = RAISED_BY[ended_by]
    return f"{ended_by} ({getattr(limits, name):g}; {option} raises it)"


def ending_of(header: Header, footer: Footer) -> str:
    """Describes how the episode of a trace ended, without the limit's value if the trace has no readable limits."""
    return ending_named(footer.ended_by, _limits_at_end(header.config, footer))


def continues(config: Mapping[str, Any], footer: Footer, limits: Limits) -> bool:
    """Whether an episode that a limit ended without success continues with *limits*: that limit is larger than it was,
    and none is reached. *config*: of the header."""
    before = _limits_at_end(config, footer)
    if before is None or footer.ended_by not in RAISED_BY or footer.outcome == "success":
        return False
    name, _ = RAISED_BY[footer.ended_by]
    now, then = getattr(limits, name), getattr(before, name)
    is_larger = now > then or (now == 0 and then > 0)
    return is_larger and limit_reached(limits, footer.totals) is None


def _limits_at_end(config: Mapping[str, Any], footer: Footer) -> Limits | None:
    """The limits in force when the episode ended; None if they cannot be read."""
    try:
        return Limits.model_validate((footer.config or config)["limits"])
    except (KeyError, ValidationError):
        return None
