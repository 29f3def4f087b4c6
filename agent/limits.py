"""What an episode has spent, and whether that is enough. Reaching a limit is a result, not an error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.config import Limits
from envs.trace import Call, EndedBy, Totals


@dataclass(slots=True)
class Ledger:
    """Running sums of one episode, over all its sittings."""

    seconds_before: float = 0.0
    """Played before this process took over, downtime left out."""
    tokens_in: int = 0
    tokens_out: int = 0
    """Visible and thinking tokens."""
    cost_usd: float = 0.0
    """Over the calls whose price is known."""
    model_calls: int = 0
    """Calls that were sent; a demonstration's prompts are rendered and sent to nobody."""

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
    """The first limit that *spent* has used up, None while all of them hold."""
    if spent.steps >= limits.max_steps:
        return "max_steps"
    if 0 < limits.max_seconds <= spent.seconds:
        return "max_seconds"
    if 0 < limits.max_tokens <= spent.tokens:
        return "max_tokens"
    if 0 < limits.max_cost_usd <= spent.cost_usd:
        return "max_cost"
    return None
