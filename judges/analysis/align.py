"""Aligns a failed episode with a reference success and finds the first *significant* divergence (§4.3 of the paper).

Both are taken as ways (:mod:`judges.analysis.moves`). Dynamic programming pairs as many moves that mean the same as
possible, in order; forms filled in in another order are put into one order first, and moves that stand on both ways but
crossed are paired afterwards. What is left over lies in *gaps* between pairs. A gap is significant

* where a field was given another value than the reference's, or a value that no later look can show, for good;
* else not, where both were on the same page again after it: a detour, another route, something done and undone;
* else not, where it holds nothing but ways of getting to an address, and both got there;
* else, where it holds a move of the failed episode that changed something, or passes over one of the reference's.

The divergence is the first step of such a gap: the failed episode's first move in it, or, where it passed over what the
reference did, the step with which it went past. The end of an episode is a gap too: a Stop too early or with another
answer is its own divergence, and an episode that just ran out diverged where it last left the reference's way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from pydantic import Field

from envs.record import Record
from judges.analysis.likeness import OPEN_FROM, move_likeness
from judges.analysis.loops import Step
from judges.analysis.meaning import Question
from judges.analysis.moves import Kind, Move, Page, Reference, Target, moves_of, straight
from judges.analysis.pages import Pages
from judges.analysis.records import Comparison, Divergence


class AlignRules(Record):
    """Thresholds of the alignment."""

    same_from: float = Field(default=0.85, gt=OPEN_FROM, le=1)
    """Likeness from which undecided moves are the same where no model was asked (0 to 1)."""
    small_cost: float = Field(default=0.2, gt=0, le=1)
    """What leaving out a move that changed nothing costs; any other costs 1."""


class Pair(NamedTuple):
    failed: Move
    reference: Move


class Gap(NamedTuple):
    """What both ways hold between two pairs."""

    failed: tuple[Move, ...]
    reference: tuple[Move, ...]
    following: Pair | None
    """None at the end."""


@dataclass(frozen=True, slots=True)
class Aligned:
    cost: float
    pairs: tuple[Pair, ...]
    gaps: tuple[Gap, ...]
    comparison: Comparison
    undecided: frozenset[Question]
    """Questions whose answers could change the divergence."""


@dataclass(slots=True)
class Alignment:
    """Compares one failed episode with references."""

    steps: Sequence[Step]
    pages: Pages
    rules: AlignRules = field(default_factory=AlignRules)
    answers: Mapping[Question, bool] = field(default_factory=dict[Question, bool])
    """What a model said so far; the rest is decided by `same_from`."""

    def nearest(self, references: Sequence[Reference]) -> Aligned | None:
        """The alignment with the reference that costs least; the first of equals. None without references."""
        every = moves_of(self.steps)
        way = _canonical(straight(every))
        aligned = [_Against(self, one).align(way) for one in references]
        if not aligned:
            return None
        best = min(aligned, key=lambda one: one.cost)
        known = bool(every) and any(_Against(self, one).holds(every[0]) for one in references)
        return Aligned(
            best.cost,
            best.pairs,
            best.gaps,
            best.comparison.model_copy(update={"first_known": known}),
            best.undecided,
        )


def reference_of(episode_id: str, steps: Sequence[Step], pages: Pages) -> Reference:
    """A success made ready, once for all the failures it is compared with."""
    return Reference(episode_id, _canonical(straight(moves_of(steps))), pages)


@dataclass(slots=True)
class _Against:
    """One failed episode against one reference."""

    by: Alignment
    reference: Reference

    def align(self, way: Sequence[Move]) -> Aligned:
        cost, pairs = self._paired(way)
        crossed = self._crossed(way, pairs)
        gaps = tuple(_gaps(way, self.reference.moves, pairs, crossed))
        comparison, at = self._compare(pairs, gaps)
        undecided = frozenset(self._open(at)) if at is not None else frozenset[Question]()
        return Aligned(cost - len(crossed) * 2, tuple(pairs), gaps, comparison, undecided)

    def holds(self, move: Move) -> bool:
        return any(self._same(move, one) for one in self.reference.moves)

    def _same(self, one: Move, other: Move) -> bool:
        alike = move_likeness(one, other, self._same_page)
        if not OPEN_FROM <= alike < 1:
            return alike == 1
        return self.by.answers.get(_question(one, other), alike >= self.by.rules.same_from)

    def _same_page(self, one: Page, other: Page) -> bool:
        if one.place != other.place or one.seen is None or other.seen is None:
            return False
        if one.seen.text_blob == other.seen.text_blob:
            return True
        mine = self.by.pages.fingerprint(one.seen)
        return mine is not None and mine == self.reference.pages.fingerprint(other.seen)

    def _paired(self, way: Sequence[Move]) -> tuple[float, list[Pair]]:
        """The cheapest alignment in order; of equals the one that pairs earliest."""
        its = self.reference.moves
        skip = [self._cost(move) for move in way]
        miss = [self._cost(move) for move in its]
        same = [[self._same(one, other) for other in its] for one in way]
        cost = [[0.0] * (len(its) + 1) for _ in range(len(way) + 1)]
        for i in range(len(way), -1, -1):
            for j in range(len(its), -1, -1):
                options = [cost[i + 1][j] + skip[i]] if i < len(way) else []
                options += [cost[i][j + 1] + miss[j]] if j < len(its) else []
                options += [cost[i + 1][j + 1]] if i < len(way) and j < len(its) and same[i][j] else []
                cost[i][j] = min(options, default=0.0)
        pairs: list[Pair] = []
        i = j = 0
        while i < len(way) and j < len(its):
            if same[i][j] and cost[i][j] == cost[i + 1][j + 1]:
                pairs.append(Pair(way[i], its[j]))
                i, j = i + 1, j + 1
            elif cost[i][j] == cost[i + 1][j] + skip[i]:
                i += 1
            else:
                j += 1
        return cost[0][0], pairs

    def _cost(self, move: Move) -> float:
        return 1.0 if _counts(move) else self.by.rules.small_cost

    def _crossed(self, way: Sequence[Move], pairs: Sequence[Pair]) -> list[Pair]:
        """Moves of both ways that are not in order, and may be: nothing was done between them on the same page."""
        mine = _Places(way, [pair.failed for pair in pairs])
        its = _Places(self.reference.moves, [pair.reference for pair in pairs])
        crossed: list[Pair] = []
        for other in its.left:
            for one in mine.left:
                if any(pair.failed is one for pair in crossed) or one.kind is Kind.STOP or not self._same(one, other):
                    continue
                between = [
                    pair
                    for pair in pairs
                    if (mine.at[id(pair.failed)] < mine.at[id(one)]) != (its.at[id(pair.reference)] < its.at[id(other)])
                ]
                if not any(_depend(one, pair.failed) for pair in between):
                    crossed.append(Pair(one, other))
                    break
        return crossed

    def _compare(self, pairs: Sequence[Pair], gaps: Sequence[Gap]) -> tuple[Comparison, Gap | None]:
        divergences = [
            (found, gap) for i, gap in enumerate(gaps) if (found := self._divergence(gap, gaps[i + 1 :], pairs))
        ]
        first = min(divergences, key=lambda one: one[0].step, default=None)
        followed = sum(1 for pair in pairs if _counts(pair.reference) and pair.reference.kind is not Kind.STOP)
        comparison = Comparison(
            reference=self.reference.episode_id,
            divergence=first[0] if first else None,
            followed=followed,
            done_at=self._done_at(pairs, gaps, first[0].step if first else None),
        )
        return comparison, first[1] if first else None

    def _divergence(self, gap: Gap, later: Sequence[Gap], pairs: Sequence[Pair]) -> Divergence | None:
        mine = [move for move in gap.failed if _counts(move)]
        missed = [move for move in gap.reference if _counts(move)]
        wrong = next((move for move in mine if _wrong_value(move, gap.reference)), None)
        if wrong is not None:
            return self._told(wrong, gap)
        if not mine and not missed:
            return None
        if gap.following is None:
            return self._at_the_end(gap, mine, pairs)
        if self._back_again(gap, mine, missed, later):
            return None
        return self._told(min(mine, key=lambda move: move.step) if mine else gap.following.failed, gap)

    def _back_again(self, gap: Gap, mine: Sequence[Move], missed: Sequence[Move], later: Sequence[Gap]) -> bool:
        """Nothing of the gap is left: both are where they would be without it."""
        assert gap.following is not None
        here, there = gap.following.failed.before, gap.following.reference.before
        if self._same_page(here, there):
            return True
        if here.place == there.place and all(map(_leads, mine)) and all(map(_leads, missed)):
            return True
        after = [one.following for one in later if one.following is not None]
        light = not missed and not any(move.submits or (move.kind is Kind.SET and not move.search) for move in mine)
        return light and any(self._same_page(pair.failed.before, pair.reference.before) for pair in after)

    def _at_the_end(self, gap: Gap, mine: Sequence[Move], pairs: Sequence[Pair]) -> Divergence | None:
        if mine:
            return self._told(min(mine, key=lambda move: move.step), gap)
        last = max((pair.failed.step for pair in pairs), default=0)
        step = next((intent.step for intent, _ in self.by.steps if intent.step > last), None)
        if step is None:
            return None
        awaited = gap.reference[0]
        reason = f"from step {step} on it did nothing more of what {self.reference.episode_id} did ({awaited.said})"
        return self._divergence_at(step, awaited, reason)

    def _told(self, move: Move, gap: Gap) -> Divergence:
        awaited = gap.reference[0] if gap.reference else gap.following.reference if gap.following else None
        name = self.reference.episode_id
        if awaited is None:
            return self._divergence_at(move.step, None, f"{move.said} at step {move.step}, where {name} had ended")
        reason = f"{move.said} at step {move.step}, where {name} did: {awaited.said} (its step {awaited.step})"
        return self._divergence_at(move.step, awaited, reason)

    def _divergence_at(self, step: int, awaited: Move | None, reason: str) -> Divergence:
        return Divergence(
            step=step,
            reference=self.reference.episode_id,
            reference_step=awaited.step if awaited is not None else None,
            reason=reason,
        )

    def _done_at(self, pairs: Sequence[Pair], gaps: Sequence[Gap], left_at: int | None) -> int | None:
        """Where only the reference's Stop was left: the step after the last pair."""
        if not gaps or not pairs or gaps[-1].following is not None:
            return None
        missed = [move for move in gaps[-1].reference if _counts(move)]
        if [move.kind for move in missed] != [Kind.STOP] or any(m.kind is Kind.STOP for m in gaps[-1].failed):
            return None
        last = max(pair.failed.step for pair in pairs)
        if left_at is not None and left_at <= last:
            return None
        steps = self.by.steps
        return next((intent.step for intent, _ in steps if intent.step > last), steps[-1][0].step)

    def _open(self, gap: Gap) -> Iterator[Question]:
        for one in gap.failed:
            for other in gap.reference:
                question = _question(one, other)
                if OPEN_FROM <= move_likeness(one, other, self._same_page) < 1 and question not in self.by.answers:
                    yield question


class _Places:
    """Where moves stand on a way, and which of them are in no pair."""

    def __init__(self, way: Sequence[Move], paired: Sequence[Move]) -> None:
        taken = {id(move) for move in paired}
        self.at = {id(move): i for i, move in enumerate(way)}
        self.left = [move for move in way if id(move) not in taken]


def _gaps(way: Sequence[Move], its: Sequence[Move], pairs: Sequence[Pair], crossed: Sequence[Pair]) -> Iterator[Gap]:
    apart = {id(move) for pair in crossed for move in pair}
    mine, missed = list(way), list(its)
    for pair in (*pairs, None):
        failed = _until(mine, pair.failed if pair else None, apart)
        reference = _until(missed, pair.reference if pair else None, apart)
        if failed or reference:
            yield Gap(failed, reference, pair)


def _until(moves: list[Move], end: Move | None, apart: set[int]) -> tuple[Move, ...]:
    """Takes the moves before *end*, and *end* itself, off the front of *moves*."""
    taken: list[Move] = []
    while moves:
        move = moves.pop(0)
        if move is end:
            break
        if id(move) not in apart:
            taken.append(move)
    return tuple(taken)


def _counts(move: Move) -> bool:
    """It changed something, or may have changed what no look shows (a password, a drawing)."""
    return move.changed or move.kind is not Kind.DO or move.target is None


def _wrong_value(move: Move, missed: Sequence[Move]) -> bool:
    """A value that the reference gave otherwise in the same place, or that no look can show to be right."""
    if move.kind is not Kind.SET or move.search:
        return False
    hidden = bool(move.after.state) and not move.changed
    return hidden or any(one.kind is Kind.SET and _element(one) == _element(move) for one in missed)


def _element(move: Move) -> tuple[str, Target | None]:
    return move.before.place, move.target


def _leads(move: Move) -> bool:
    """A way of getting somewhere, of which nothing remains but where one is."""
    return (move.kind is Kind.GO and not move.submits) or move.search


def _depend(one: Move, other: Move) -> bool:
    """Their order may matter: both on one page, and not both filling in its form."""
    return one.before.place == other.before.place and not (one.fills and other.fills)


def _question(one: Move, other: Move) -> Question:
    return Question(one.said, other.said)


def _canonical(moves: Sequence[Move]) -> tuple[Move, ...]:
    """Runs of moves that fill in one form, each in the order of its elements: people fill in forms in any order."""
    ordered: list[Move] = []
    for (fills, _), run in groupby(moves, key=lambda move: (move.fills, move.before.place)):
        together = list(run)
        ordered += sorted(together, key=_form_order) if fills else together
    return tuple(ordered)


def _form_order(move: Move) -> tuple[str, str, str, int, str]:
    target = move.target
    return (
        (target.frame, target.role, target.name, target.ordinal, move.value) if target else ("", "", "", -1, move.value)
    )
