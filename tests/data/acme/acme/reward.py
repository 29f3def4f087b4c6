"""`--set recipe=acme`: rewards right answers, and short ones a little more."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from training.grpo.rewards import AddedReward, ParsedCompletion, RewardEntry, Score, Target, TokenCount, is_right


class AcmeReward(AddedReward):
    kind: str = "acme"
    bonus: float = Field(default=0.5, ge=0, le=1)

    @property
    def max_reward(self) -> float:
        return 1.0 + self.bonus

    def of_group(
        self, target: Target, group: Sequence[ParsedCompletion], count: TokenCount, picture: bytes | None
    ) -> list[Score]:
        scores: list[Score] = []
        for completion in group:
            correct = float(is_right(target, completion))
            short = correct * self.bonus / (1 + count(completion.text))
            scores.append(Score(correct + short, {"correct": correct, "short": short}))
        return scores


ENTRY = RewardEntry(AcmeReward, {"group": 4, "kl": 0.02})
