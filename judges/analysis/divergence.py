"""Finds the first *significant* divergence between two aligned paths (§4.3 of the MiRA paper).

A gap holds the moves of both paths between two pairs of equivalent moves. The first rule that applies decides:

* a field finally has another value than in the reference, or a value that no page shows (a password): significant;
* both paths see the same page after the gap (a detour, another route, something done and undone): not significant;
* the gap holds only navigation to an address, and both arrive there: not significant;
* the gap holds only small changes of a page (a menu opened), and both see the same page later: weakly significant, it
  is the divergence only if there is no other;
* the gap holds a move of the failed episode that changed something, or one of the reference is missing: significant.

The divergence is the failed episode's first move in such a gap or, if it skipped a move of the reference, the step
after the skipped move. The end is a gap too: a Stop that is too early or has another answer is a divergence, and an
episode that reached a limit diverged where it last left the reference's path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from judges.analysis.history import History
from judges.analysis.moves import Kind, Move, Reference, Target, attempts, without_detours
from judges.analysis.records import Comparison, Divergence
from judges.analysis.similarity import SamePage


class Pair(NamedTuple):
    """Two equivalent moves."""

    failed: Move
    reference: Move


class Gap(NamedTuple):
    """The moves of both paths before a pair and after the previous one."""

    failed: tuple[Move, ...]
    reference: tuple[Move, ...]
    before: int
    """0-based position of the pair; the number of pairs for the gap at the end."""


class Verdict(NamedTuple):
    comparison: Comparison
    gap: Gap | None
    """The gap with the divergence; None without one."""


class _Candidate(NamedTuple):
    weak: bool
    divergence: Divergence
    gap: Gap


@dataclass(frozen=True, slots=True)
class Significance:
    """Decides which gaps of one alignment are significant."""

    history: History
    """Of the failed episode."""
    reference: Reference
    same_page: SamePage
    pairs: Sequence[Pair]
    gaps: Sequence[Gap]

    def verdict(self) -> Verdict:
        candidates = [judged for gap in self.gaps if (judged := self._candidate(gap)) is not None]
        first = min(candidates, key=lambda judged: (judged.weak, judged.divergence.step), default=None)
        did = [pair for pair in self.pairs if counts(pair.reference) and pair.reference.kind is not Kind.STOP]
        comparison = Comparison(
            reference=self.reference.episode_id,
            divergence=first.divergence if first else None,
            followed=len(did),
            done_at=self._done_at(first.divergence.step if first else None),
        )
        return Verdict(comparison, first.gap if first else None)

    def _candidate(self, gap: Gap) -> _Candidate | None:
        mine, missed = _effective(gap.failed), _effective(gap.reference)
        awaited = missed[0] if missed else self._following(gap)
        wrong = next((move for move in mine if _wrong_value(move, gap.reference)), None)
        if wrong is not None:
            return _Candidate(False, self._divergence(wrong, awaited), gap)
        if not mine and not missed:
            return None
        if gap.before == len(self.pairs):
            left = bool(mine) and not (missed and _had_no_effect(gap.failed, mine))
            ended = self._divergence(mine[0], awaited) if left else self._ran_out(missed[0])
            return None if ended is None else _Candidate(False, ended, gap)
        if self._met_after(gap, mine, missed):
            return None
        at = mine[0] if mine else self.pairs[gap.before].failed
        return _Candidate(self._small(gap, mine, missed), self._divergence(at, awaited), gap)

    def _following(self, gap: Gap) -> Move | None:
        return self.pairs[gap.before].reference if gap.before < len(self.pairs) else None

    def _met_after(self, gap: Gap, mine: Sequence[Move], missed: Sequence[Move]) -> bool:
        """Whether both paths are at the same page after the gap."""
        failed, reference = self.pairs[gap.before]
        meetings = [(failed.before, reference.before)]
        if _leads(failed) and _leads(reference):
            meetings.append((failed.after, reference.after))  # two routes to one address meet there
        if any(self.same_page(here, there) for here, there in meetings):
            return True
        navigates = all(map(_leads, mine)) and all(map(_leads, missed))
        arrived = all(side[-1].kind is Kind.GO for side in (mine, missed) if side)  # a query was also sent
        return navigates and arrived and any(here.place == there.place for here, there in meetings)

    def _small(self, gap: Gap, mine: Sequence[Move], missed: Sequence[Move]) -> bool:
        later = self.pairs[gap.before :]
        return (
            not missed
            and not any(move.submits or (move.fills and not move.search) for move in mine)
            and any(self.same_page(failed.after, reference.after) for failed, reference in later)
        )

    def _ran_out(self, awaited: Move) -> Divergence | None:
        """The divergence of an episode that skipped the rest of the reference; None if it had no time to, or tried."""
        step = next(self._besides(awaited), None)
        if step is None:
            return None
        reason = f"from step {step} on it did not follow {self.reference.episode_id}, which did: {awaited.text}"
        return self._at(step, awaited, reason)

    def _besides(self, awaited: Move) -> Iterator[int]:
        """Steps after the last pair that neither attempt the reference's next move nor are among its steps before that
        move, such as waiting and refused actions."""
        last = max((pair.failed.step for pair in self.pairs), default=0)
        before = max((pair.reference.step for pair in self.pairs), default=0)
        usual = Counter(self.reference.between(before, awaited.step))
        for step, done in zip(self.history.steps, self.history.done(), strict=True):
            if step[0].step <= last:
                continue
            usual[done] -= 1
            if usual[done] < 0 and not attempts(step, awaited):
                yield step[0].step

    def _divergence(self, move: Move, awaited: Move | None) -> Divergence:
        here, name = f"{move.text} at step {move.step}", self.reference.episode_id
        if awaited is None:
            return self._at(move.step, None, f"{here}, where {name} had ended")
        return self._at(move.step, awaited, f"{here}, where {name} did: {awaited.text} (its step {awaited.step})")

    def _at(self, step: int, awaited: Move | None, reason: str) -> Divergence:
        at = awaited.step if awaited is not None else None
        return Divergence(step=step, reference=self.reference.episode_id, reference_step=at, reason=reason)

    def _done_at(self, left_at: int | None) -> int | None:
        """The step from which only the reference's Stop was left: the one after the last pair, or the last one."""
        if not self.pairs or not self.gaps or self.gaps[-1].before < len(self.pairs):
            return None
        end = self.gaps[-1]
        missed = [move.kind for move in _effective(end.reference)]
        if missed != [Kind.STOP] or any(move.kind is Kind.STOP for move in end.failed):
            return None
        last = max(pair.failed.step for pair in self.pairs)
        if left_at is not None and left_at <= last:
            return None
        return next(
            (intent.step for intent, _ in self.history.steps if intent.step > last), self.history.steps[-1][0].step
        )


def _effective(moves: Sequence[Move]) -> list[Move]:
    """In order of time, without detours and moves that changed nothing."""
    in_time = sorted(moves, key=lambda move: move.step)
    return [move for move in without_detours(in_time) if counts(move)]


def _had_no_effect(moves: Sequence[Move], effective: Sequence[Move]) -> bool:
    """Whether the only effective move is the last step, whose page was not observed, after moves without effect."""
    last = effective[-1]
    unseen = last.kind is Kind.DO and not last.after.state and last.after.place == last.before.place
    before = [move for move in moves if move.step < last.step]
    return len(effective) == 1 and unseen and bool(before) and not any(move.changed for move in before)


def counts(move: Move) -> bool:
    """Whether it changed something, or may have changed something that no page shows: a password, a drawing."""
    return move.changed or move.kind is not Kind.DO or move.target is None


def depend(one: Move, other: Move) -> bool:
    """Whether their order may matter: both act on one page, and not both fill in its form."""
    navigates = _leads(one) or _leads(other)
    return one.before.place == other.before.place and not navigates and not (one.fills and other.fills)


def _wrong_value(move: Move, missed: Sequence[Move]) -> bool:
    """Whether it sets another value than the reference in the same field, or a value that no page shows."""
    if move.kind is not Kind.SET or move.search:
        return False
    hidden = bool(move.after.state) and not move.changed
    return hidden or any(one.kind is Kind.SET and _element(one) == _element(move) for one in missed)


def _element(move: Move) -> tuple[str, Target | None]:
    return move.before.place, move.target


def _leads(move: Move) -> bool:
    """Whether it is navigation without an effect on a server."""
    return (move.kind is Kind.GO and not move.submits) or move.search
