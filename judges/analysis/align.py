"""Aligns the moves of a failed episode with those of reference successes, and selects the nearest reference.

Dynamic programming pairs as many equivalent moves as possible, in order. Form inputs are sorted into one order first.
Moves that both paths have in another order are paired afterwards, if their order cannot matter. The remaining moves
are in *gaps* between pairs; :mod:`judges.analysis.divergence` decides which gaps are significant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from pydantic import Field

from envs.core.record import Record
from judges.analysis.divergence import Gap, Pair, Significance, Verdict, counts, depend
from judges.analysis.history import History, Slots, Step, history_of
from judges.analysis.meaning import Question
from judges.analysis.moves import Kind, Move, Page, Reference, last_values, moves_of
from judges.analysis.numbers import Split, passed
from judges.analysis.pages import Pages
from judges.analysis.records import Comparison, SameSteps
from judges.analysis.similarity import OPEN_FROM, move_similarity


class AlignRules(Record):
    """Thresholds of the alignment."""

    same_from: float = Field(default=0.85, gt=OPEN_FROM, le=1)
    """Similarity (0 to 1) from which undecided moves are equivalent if no model is used."""
    small_cost: float = Field(default=0.2, gt=0, le=1)
    """Cost of skipping a move that changed nothing; skipping any other costs 1."""


@dataclass(frozen=True, slots=True)
class Aligned:
    cost: float
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
    """Verdicts of a model so far; `same_from` decides the rest."""
    history: History | None = None
    """The history of the steps; None builds it."""

    def nearest(self, references: Sequence[Reference]) -> Aligned | None:
        """The alignment with the least cost over all references; the first of equals. None without references."""
        history = self.history or history_of(self.steps, self.pages)
        every = moves_of(history)
        path = in_form_order(last_values(every))
        against = [_ReferenceComparison(self, history, one) for one in references]
        best = min((one.align(path) for one in against), key=lambda one: one.cost, default=None)
        if best is None:
            return None
        known = bool(every) and any(one.holds(every[0]) for one in against)
        return Aligned(best.cost, best.comparison.model_copy(update={"first_known": known}), best.undecided)


def reference_of(episode_id: str, steps: Sequence[Step], pages: Pages) -> Reference:
    """Prepares a success for comparison with any number of failures."""
    history = history_of(steps, pages)
    return Reference(
        episode_id,
        in_form_order(last_values(moves_of(history))),
        pages,
        history.slots,
        history.done(),
        tuple(intent.step for intent, _ in steps),
    )


def in_form_order(moves: Sequence[Move]) -> tuple[Move, ...]:
    """Sorts each run of moves that fill in one form by element, because a form may be filled in in any order."""
    ordered: list[Move] = []
    for (fills, _), run in groupby(moves, key=lambda move: (move.fills, move.before.place)):
        together = list(run)
        ordered += sorted(together, key=_form_order) if fills else together
    return tuple(ordered)


@dataclass(slots=True)
class _ReferenceComparison:
    """The comparison of one failed episode with one reference."""

    by: Alignment
    history: History
    reference: Reference

    def align(self, path: Sequence[Move]) -> Aligned:
        cost, pairs = self._paired(path)
        crossed = self._crossed(path, pairs)
        gaps = tuple(_gaps(path, self.reference.moves, pairs, crossed))
        significance = Significance(self.history, self.reference, self.same_page, pairs, gaps)
        verdict = significance.verdict()
        same = sorted({SameSteps(pair.failed.step, pair.reference.step) for pair in (*pairs, *crossed)})
        comparison = verdict.comparison.model_copy(update={"pairs": tuple(same)})
        return Aligned(cost - 2 * len(crossed), comparison, frozenset(self._undecided(verdict)))

    def holds(self, move: Move) -> bool:
        return any(self._same(move, one) for one in self.reference.moves)

    def same_page(self, one: Page, other: Page) -> bool:
        """Whether both pages are equal; False if that is unknown."""
        if one.place != other.place or one.seen is None or other.seen is None:
            return False
        if one.seen.text_blob == other.seen.text_blob:
            return True
        mine, theirs = self.by.pages.fingerprint(one.seen), self.reference.pages.fingerprint(other.seen)
        return mine is not None and theirs is not None and (mine == theirs or self._same_but_for_numbers(one, other))

    def _same_but_for_numbers(self, one: Page, other: Page) -> bool:
        """Whether the pages differ only in volatile numbers of either episode, or in elapsed times."""
        assert one.seen is not None and other.seen is not None
        mine, theirs = self.by.pages.split(one.seen), self.reference.pages.split(other.seen)
        if mine is None or theirs is None or mine.letters != theirs.letters:
            return False
        ignored = _slots(one, mine, self.history.slots) | _slots(other, theirs, self.reference.slots)
        return all(
            slot in ignored or a.text == b.text or passed(a, b, other.at - one.at)
            for slot, (a, b) in enumerate(zip(mine.numbers, theirs.numbers, strict=True))
        )

    def _same(self, one: Move, other: Move) -> bool:
        similarity = move_similarity(one, other, self.same_page)
        if not OPEN_FROM <= similarity < 1:
            return similarity == 1
        return self.by.answers.get(_question(one, other), similarity >= self.by.rules.same_from)

    def _paired(self, path: Sequence[Move]) -> tuple[float, list[Pair]]:
        """The cheapest alignment in order; of equals, the one with the earliest pairs."""
        its = self.reference.moves
        skip = [self._cost(move) for move in path]
        miss = [self._cost(move) for move in its]
        same = [[self._same(one, other) for other in its] for one in path]
        cost = _rest_costs(skip, miss, same)
        pairs: list[Pair] = []
        i = j = 0
        while i < len(path) and j < len(its):
            if same[i][j] and cost[i][j] == cost[i + 1][j + 1]:
                pairs.append(Pair(path[i], its[j]))
                i, j = i + 1, j + 1
            elif cost[i][j] == cost[i + 1][j] + skip[i]:
                i += 1
            else:
                j += 1
        return cost[0][0], pairs

    def _cost(self, move: Move) -> float:
        return 1.0 if counts(move) else self.by.rules.small_cost

    def _crossed(self, path: Sequence[Move], pairs: Sequence[Pair]) -> list[Pair]:
        """Pairs of equivalent moves in another order, if their order relative to the moves they cross cannot matter."""
        mine = _Places(path, [pair.failed for pair in pairs])
        its = _Places(self.reference.moves, [pair.reference for pair in pairs])
        crossed: list[Pair] = []
        for other in its.left:
            taken = {id(pair.failed) for pair in crossed}
            for one in mine.left:
                if id(one) in taken or one.kind is Kind.STOP or not self._same(one, other):
                    continue
                over = [pair for pair in pairs if mine.before(pair.failed, one) != its.before(pair.reference, other)]
                if not any(depend(one, pair.failed) for pair in over):
                    crossed.append(Pair(one, other))
                    break
        return crossed

    def _undecided(self, verdict: Verdict) -> Iterator[Question]:
        if verdict.gap is None:
            return
        for one in verdict.gap.failed:
            for other in verdict.gap.reference:
                question = _question(one, other)
                similarity = move_similarity(one, other, self.same_page)
                if OPEN_FROM <= similarity < 1 and question not in self.by.answers:
                    yield question


def _rest_costs(skip: Sequence[float], miss: Sequence[float], same: Sequence[Sequence[bool]]) -> list[list[float]]:
    """`[i][j]`: the least cost of aligning the moves from *i* on with those of the reference from *j* on; equal moves
    cost nothing, a move left out what *skip* or *miss* says."""
    cost = [[0.0] * (len(miss) + 1) for _ in range(len(skip) + 1)]
    for i in range(len(skip), -1, -1):
        for j in range(len(miss), -1, -1):
            options: list[float] = []
            if i < len(skip):
                options.append(cost[i + 1][j] + skip[i])
            if j < len(miss):
                options.append(cost[i][j + 1] + miss[j])
            if i < len(skip) and j < len(miss) and same[i][j]:
                options.append(cost[i + 1][j + 1])
            cost[i][j] = min(options, default=0.0)
    return cost


class _Places:
    """Positions of moves on a path, and the moves without a pair."""

    def __init__(self, path: Sequence[Move], paired: Sequence[Move]) -> None:
        taken = {id(move) for move in paired}
        self._at = {id(move): i for i, move in enumerate(path)}
        self.left = [move for move in path if id(move) not in taken]

    def before(self, one: Move, other: Move) -> bool:
        return self._at[id(one)] < self._at[id(other)]


def _gaps(path: Sequence[Move], its: Sequence[Move], pairs: Sequence[Pair], crossed: Sequence[Pair]) -> Iterator[Gap]:
    apart = {id(move) for pair in crossed for move in pair}
    mine, missed = iter(path), iter(its)
    for i in range(len(pairs) + 1):
        failed = _until(mine, pairs[i].failed if i < len(pairs) else None, apart)
        reference = _until(missed, pairs[i].reference if i < len(pairs) else None, apart)
        if failed or reference:
            yield Gap(failed, reference, i)


def _until(moves: Iterator[Move], end: Move | None, apart: set[int]) -> tuple[Move, ...]:
    """Consumes *moves* up to and including *end*; returns those before it."""
    taken: list[Move] = []
    for move in moves:
        if move is end:
            break
        if id(move) not in apart:
            taken.append(move)
    return tuple(taken)


def _slots(page: Page, split: Split, slots: Slots) -> frozenset[int]:
    return slots.get((page.place, split.letters), frozenset())


def _question(one: Move, other: Move) -> Question:
    return Question(one.text, other.text)


def _form_order(move: Move) -> tuple[str, str, str, int, str]:
    target = move.target
    return (target.frame, target.role, target.name, target.ordinal, move.value) if target else ("", "", "", -1, "")
