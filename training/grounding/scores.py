"""Scores predictions of places: accuracy with two intervals, by group, and offsets from the centre."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

from envs.core.record import Record
from judges.statistics import RESAMPLES, Estimate, clustered_mean, proportion
from models.vision.answers import read_completion
from training.grpo.examples import Example, Facts
from training.grpo.predictions import Prediction, mean_thought_tokens
from training.grpo.rewards import ChoiceTarget, PointTarget
from training.grpo.rewards.geometry import Box, Point, distance, gaussian_proximity
from training.grpo.rewards.ssl import zone_value
from training.grpo.rewards.targets import parse_choice

_GROUPS: Final[Mapping[str, Callable[[Facts], str]]] = {
    "element": lambda facts: facts.element,
    "asks": lambda facts: facts.asks,
    "platform": lambda facts: facts.platform,
    "group": lambda facts: facts.group,
    "source": lambda facts: facts.source,
    "split": lambda facts: facts.split or "",
}
_CROSSED: Final = (("platform", "element"), ("group", "element"))
"""Pairs of facts whose combinations are groups, too: the columns of ScreenSpot's and ScreenSpot-Pro's tables."""
_UNKNOWN: Final = "not known"


@dataclass(frozen=True, slots=True)
class Scored:
    """One prediction beside its example."""

    example: Example
    prediction: Prediction
    box: Box

    @property
    def point(self) -> Point | None:
        """The answered point; the centre of the mark whose letter was answered."""
        if isinstance(target := self.example.target, ChoiceTarget):
            choice = self._choice(target)
            return None if choice is None else Box(*target.boxes[choice]).centre
        return None if self.prediction.point is None else Point(*self.prediction.point)

    @property
    def correct(self) -> bool:
        if isinstance(target := self.example.target, ChoiceTarget):
            return self._choice(target) == target.right
        return self.point is not None and self.box.holds(self.point)

    def _choice(self, target: ChoiceTarget) -> int | None:
        return parse_choice(read_completion(self.prediction.answer), len(target.boxes))

    @property
    def tier(self) -> float:
        """The value of SSL's zone (App. B.1) that the point is in: 0, 0.25, 0.5, 0.75 or 1."""
        return 0.0 if self.point is None else zone_value(self.point, self.box)

    @property
    def offset(self) -> tuple[float, float] | None:
        """From the centre of the box, in its half sizes, to the right and down."""
        if self.point is None:
            return None
        centre = self.box.centre
        return (self.point.x - centre.x) / (self.box.width / 2), (self.point.y - centre.y) / (self.box.height / 2)


class GroupScore(Record):
    """Accuracy of a group of examples."""

    by: str
    name: str
    examples: int
    accuracy: Estimate
    """With Wilson's interval, which takes examples as independent."""
    clustered: Estimate
    """With the interval of a bootstrap over page templates, or over images where no template is known."""


class GroundingScore(Record):
    """All numbers of `mira eval grounding`."""

    policy: str
    examples: int
    clusters: int
    """Page templates, or images where no template is known."""
    accuracy: Estimate
    clustered: Estimate
    proximity: float
    """Mean S of the SSL paper, 0 to 1."""
    tier: float
    """Mean value of SSL's zones, 0 to 1."""
    median_offset: float | None
    """Of points from the centre of their box, in pixels of the image; None without any point."""
    without_point: int
    tokens: float
    """Mean tokens of an answer with its hidden thoughts."""
    thought_tokens: Estimate
    """Mean tokens of thoughts over the answers of which they are known; the interval is over page templates."""
    groups: tuple[GroupScore, ...]


def score_all(examples: Sequence[Example], predictions: Mapping[str, Prediction]) -> list[Scored]:
    """Pairs each example, whose target is a point or a choice, with its prediction."""
    paired: list[Scored] = []
    for example in examples:
        assert isinstance(example.target, PointTarget | ChoiceTarget)
        paired.append(Scored(example, predictions[example.name], example.target.region))
    return paired


def summarise(policy: str, scored: Sequence[Scored]) -> GroundingScore:
    """The numbers of *scored*, which is not empty."""
    offsets = [distance(each.point, each.box.centre) for each in scored if each.point is not None]
    near = [0.0 if each.point is None else gaussian_proximity(each.point, each.box) for each in scored]
    return GroundingScore(
        policy=policy,
        examples=len(scored),
        clusters=len(set(map(_cluster, scored))),
        accuracy=_accuracy(scored),
        clustered=_clustered(scored),
        proximity=fmean(near),
        tier=fmean(each.tier for each in scored),
        median_offset=median(offsets) if offsets else None,
        without_point=len(scored) - len(offsets),
        tokens=fmean(each.prediction.tokens for each in scored),
        thought_tokens=mean_thought_tokens(
            [(each.prediction.thought_tokens, _cluster(each)) for each in scored], seed=0
        ),
        groups=tuple(_groups(scored)),
    )


def _groups(scored: Sequence[Scored]) -> list[GroupScore]:
    """Groups of examples by each fact that distinguishes some, then by each pair of facts that both do."""
    names = {by: [_name(by, each) for each in scored] for by in _GROUPS}
    names = {by: held for by, held in names.items() if len(set(held)) > 1}
    for one, other in _CROSSED:
        if one in names and other in names:
            pairs = zip(names[one], names[other], strict=True)
            names[f"{one} × {other}"] = [f"{first}, {second}" for first, second in pairs]
    return [group for by, held in names.items() for group in _groups_by(by, held, scored)]


def _groups_by(by: str, names: Sequence[str], scored: Sequence[Scored]) -> Iterator[GroupScore]:
    members: dict[str, list[Scored]] = {}
    for name, each in zip(names, scored, strict=True):
        members.setdefault(name, []).append(each)
    for name, held in sorted(members.items()):
        yield GroupScore(by=by, name=name, examples=len(held), accuracy=_accuracy(held), clustered=_clustered(held))


def _name(by: str, scored: Scored) -> str:
    facts = scored.example.facts
    return (facts is not None and _GROUPS[by](facts)) or _UNKNOWN


def _accuracy(scored: Sequence[Scored]) -> Estimate:
    return proportion(sum(each.correct for each in scored), len(scored))


def _clustered(scored: Sequence[Scored]) -> Estimate:
    right = [float(each.correct) for each in scored]
    return clustered_mean(right, list(map(_cluster, scored)), resamples=RESAMPLES, seed=0)


def _cluster(scored: Scored) -> str:
    facts = scored.example.facts
    return facts.template if facts is not None and facts.template else str(scored.example.image)
