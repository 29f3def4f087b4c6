"""Which gap between two aligned ways is the first *significant* divergence (§4.3 of the MiRA paper).

A gap is what both ways hold between two pairs of moves that mean the same. It is significant

* where a field got another value than the reference's for good, or one that no look can show to be right (a password);
* else not, where both saw the same page after it: a detour, another route, something done and undone;
* else not, where it holds nothing but ways of getting to an address, and both got there;
* else weakly, where it holds only small things done to a page (a menu opened) and both saw the same page later: it is
  the divergence only if there is no other;
* else, where it holds a move of the failed episode that changed something, or passes over one of the reference's.

The divergence is the failed episode's first move in such a gap or, where it passed over what the reference did, the
step with which it went past. The end is a gap too: a Stop that came too early or answered otherwise is its own
divergence, and an episode that just ran out diverged where it last left the reference's way.
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
    """Two moves that mean the same."""

    failed: Move
    reference: Move


class Gap(NamedTuple):
    """What both ways hold before a pair, after the one before it."""

    failed: tuple[Move, ...]
    reference: tuple[Move, ...]
    before: int
    """0-based position of the pair; the number of pairs for the gap at the end."""


class Verdict(NamedTuple):
    comparison: Comparison
    gap: Gap | None
    """Where the divergence lies; None where there is none."""


class _Found(NamedTuple):
    weak: bool
    divergence: Divergence
    gap: Gap


@dataclass(frozen=True, slots=True)
class Significance:
    """Judges the gaps of one alignment."""

    history: History
    """Of the failed episode."""
    reference: Reference
    same_page: SamePage
    pairs: Sequence[Pair]
    gaps: Sequence[Gap]

    def verdict(self) -> Verdict:
        found = [one for gap in self.gaps if (one := self._judged(gap)) is not None]
        first = min(found, key=lambda one: (one.weak, one.divergence.step), default=None)
        did = [pair for pair in self.pairs if counts(pair.reference) and pair.reference.kind is not Kind.STOP]
        comparison = Comparison(
            reference=self.reference.episode_id,
            divergence=first.divergence if first else None,
            followed=len(did),
            done_at=self._done_at(first.divergence.step if first else None),
        )
        return Verdict(comparison, first.gap if first else None)

    def _judged(self, gap: Gap) -> _Found | None:
        mine, missed = _mattered(gap.failed), _mattered(gap.reference)
        awaited = missed[0] if missed else self._following(gap)
        wrong = next((move for move in mine if _wrong_value(move, gap.reference)), None)
        if wrong is not None:
            return _Found(False, self._told(wrong, awaited), gap)
        if not mine and not missed:
            return None
        if gap.before == len(self.pairs):
            left = bool(mine) and not (missed and _came_to_nothing(gap.failed, mine))
            ended = self._told(mine[0], awaited) if left else self._ran_out(missed[0])
            return None if ended is None else _Found(False, ended, gap)
        if self._met_after(gap, mine, missed):
            return None
        at = mine[0] if mine else self.pairs[gap.before].failed
        return _Found(self._small(gap, mine, missed), self._told(at, awaited), gap)

    def _following(self, gap: Gap) -> Move | None:
        return self.pairs[gap.before].reference if gap.before < len(self.pairs) else None

    def _met_after(self, gap: Gap, mine: Sequence[Move], missed: Sequence[Move]) -> bool:
        """Both are where they would be without the gap."""
        failed, reference = self.pairs[gap.before]
        meetings = [(failed.before, reference.before)]
        if _leads(failed) and _leads(reference):
            meetings.append((failed.after, reference.after))  # two ways to one address meet there
        if any(self.same_page(here, there) for here, there in meetings):
            return True
        ways = all(map(_leads, mine)) and all(map(_leads, missed))
        arrived = all(side[-1].kind is Kind.GO for side in (mine, missed) if side)  # what was asked was also sent
        return ways and arrived and any(here.place == there.place for here, there in meetings)

    def _small(self, gap: Gap, mine: Sequence[Move], missed: Sequence[Move]) -> bool:
        later = self.pairs[gap.before :]
        return (
            not missed
            and not any(move.submits or (move.fills and not move.search) for move in mine)
            and any(self.same_page(failed.after, reference.after) for failed, reference in later)
        )

    def _ran_out(self, awaited: Move) -> Divergence | None:
        """The end of an episode that did nothing more of the reference; None where it had no time to, or was trying."""
        step = next(self._besides(awaited), None)
        if step is None:
            return None
        reason = f"from step {step} on nothing was done of what {self.reference.episode_id} did: {awaited.said}"
        return self._at(step, awaited, reason)

    def _besides(self, awaited: Move) -> Iterator[int]:
        """Steps after the last pair that neither try what the reference did next, nor are taken by it before that, such
        as waiting and what was refused."""
        last = max((pair.failed.step for pair in self.pairs), default=0)
        before = max((pair.reference.step for pair in self.pairs), default=0)
        usual = Counter(self.reference.between(before, awaited.step))
        for step, done in zip(self.history.steps, self.history.done(), strict=True):
            if step[0].step <= last:
                continue
            usual[done] -= 1
            if usual[done] < 0 and not attempts(step, awaited):
                yield step[0].step

    def _told(self, move: Move, awaited: Move | None) -> Divergence:
        here, name = f"{move.said} at step {move.step}", self.reference.episode_id
        if awaited is None:
            return self._at(move.step, None, f"{here}, where {name} had ended")
        return self._at(move.step, awaited, f"{here}, where {name} did: {awaited.said} (its step {awaited.step})")

    def _at(self, step: int, awaited: Move | None, reason: str) -> Divergence:
        at = awaited.step if awaited is not None else None
        return Divergence(step=step, reference=self.reference.episode_id, reference_step=at, reason=reason)

    def _done_at(self, left_at: int | None) -> int | None:
        """Where only the reference's Stop was left: the step after the last pair, or the last one."""
        if not self.pairs or not self.gaps or self.gaps[-1].before < len(self.pairs):
            return None
        end = self.gaps[-1]
        missed = [move.kind for move in _mattered(end.reference)]
        if missed != [Kind.STOP] or any(move.kind is Kind.STOP for move in end.failed):
            return None
        last = max(pair.failed.step for pair in self.pairs)
        if left_at is not None and left_at <= last:
            return None
        return next(
            (intent.step for intent, _ in self.history.steps if intent.step > last), self.history.steps[-1][0].step
        )


def _mattered(moves: Sequence[Move]) -> list[Move]:
    """In order of time, without detours and without what changed nothing."""
    in_time = sorted(moves, key=lambda move: move.step)
    return [move for move in without_detours(in_time) if counts(move)]


def _came_to_nothing(moves: Sequence[Move], mattered: Sequence[Move]) -> bool:
    """All that may have mattered is the very last step, whose page nobody saw, after others that changed nothing."""
    last = mattered[-1]
    unseen = last.kind is Kind.DO and not last.after.state and last.after.place == last.before.place
    before = [move for move in moves if move.step < last.step]
    return len(mattered) == 1 and unseen and bool(before) and not any(move.changed for move in before)


def counts(move: Move) -> bool:
    """It changed something, or may have changed what no look shows: a password, a drawing."""
    return move.changed or move.kind is not Kind.DO or move.target is None


def depend(one: Move, other: Move) -> bool:
    """Their order may matter: both do something on one page, and not both fill in its form."""
    ways = _leads(one) or _leads(other)
    return one.before.place == other.before.place and not ways and not (one.fills and other.fills)


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
