"""Finds loops: repeated stretches of an episode (MiRA paper: rule B of §4.2, state hashes of §4.3).

Pages and actions are compared as in :mod:`judges.analysis.history`. These are loops, in order of precedence:

* a cycle of up to `max_period` (action, page) pairs, `cycle_repeats` times in a row; one action, `identical_actions`;
* at least `identical_actions` identical last actions, if the last of them led to no new page or none was carried out.
  Observing (scroll, find, expand, hover, wait) does not count here;
* a cycle of pages, `blind_repeats` times, with any actions: A-B-A-B-A-B;
* one action on one page `frequent_actions` times, in at least half of the steps of a stretch without a new page.

These are not loops:

* equal actions that each lead to a new page: a date picker that is turned, a pager, a counter;
* a stretch that gains a milestone, or is followed by one;
* a repetition that a success of the same task has as often, on pages at the same addresses;
* a stretch that was left and followed by progress, see :func:`find_loop`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Final, NamedTuple

from pydantic import Field

from envs.core.actions import Drag
from envs.core.record import Record
from envs.core.trace import Intent, Loop
from judges.analysis.history import OBSERVING, History, PlacedAction, Step, carried_out


class LoopRules(Record):
    """Thresholds of rule B, in steps or rounds."""

    identical_actions: int = Field(default=3, ge=2)
    """N: identical last actions, or one action on one page in a row."""
    max_period: int = Field(default=4, ge=1)
    """Longest cycle, in steps."""
    cycle_repeats: int = Field(default=2, ge=2)
    """M: rounds of a cycle of two or more steps with equal actions on equal pages."""
    blind_repeats: int = Field(default=3, ge=2)
    """Rounds of a cycle in which only the pages are equal."""
    frequent_actions: int = Field(default=5, ge=2)
    """Number of times for one action on one page with other steps in between."""
    progress_states: int = Field(default=2, ge=1)
    """Number of new pages after a stretch that count as progress; the stretch is no loop then."""


class Cycle(NamedTuple):
    """A stretch of steps that repeats with `period`. `start` is the 0-based index of its first step."""

    start: int
    period: int
    length: int

    @property
    def end(self) -> int:
        return self.start + self.length


class Stretch(NamedTuple):
    """A repetition: a cycle, or one action that was taken `rounds` times between others."""

    start: int
    end: int
    """0-based index of the step after its last one."""
    period: int
    rounds: int
    scattered: bool = False
    """Other steps lie between the rounds."""


_LEAST_SHARE: Final = 0.5


def find_loop(
    history: History,
    rules: LoopRules,
    final: Sequence[bool] = (),
    usual: Sequence[Sequence[PlacedAction]] = (),
) -> Loop | None:
    """The loop that the episode did not leave, or None.

    It is the earliest stretch without a new page or milestone after it; else the earliest with fewer than
    `progress_states` new pages and no milestone after it. Of two with one entry, the shorter period. *final*: the
    milestones at the end. *usual*: the steps of successes of the task.
    """
    states, steps = history.states, history.steps
    gains = gains_of(steps, final)
    held = [one for one in _stretches(history, rules, gains) if not any(gain >= one.end for gain in gains)]
    news = [(len(set(states[one.end :]) - set(states[: one.end])), one) for one in held]
    done = history.done()
    for most in (1, rules.progress_states):
        stuck = [one for new, one in news if new < most and not any(_repeats_too(path, done, one) for path in usual)]
        if stuck:
            return _loop(_first(stuck), steps)
    return None


def _first(stretches: Sequence[Stretch]) -> Stretch:
    """The earliest, then the one with the shorter period; for one action between others, the one with most rounds."""
    first = min(stretches, key=lambda one: (one.start, one.scattered, one.period))
    longer = [one for one in stretches if one.scattered and (one.start, one.period) == (first.start, first.period)]
    return max([first, *longer], key=lambda one: one.rounds)


def _loop(one: Stretch, steps: Sequence[Step]) -> Loop:
    last = steps[one.end - 1][0].step if one.scattered else None
    return Loop(entry=steps[one.start][0].step, period=one.period, repetitions=one.rounds, last=last)


def find_cycles(keys: Sequence[object], *, period: int, repeats: int) -> Iterator[Cycle]:
    """Every maximal stretch of *keys* that repeats with *period* at least *repeats* times in a row, in order."""
    start = 0
    while start + period * repeats <= len(keys):
        end = start + period
        while end < len(keys) and keys[end] == keys[end - period]:
            end += 1
        if end - start >= period * repeats:
            yield Cycle(start, period, end - start)
        start = max(start + 1, end - period + 1)


def advance(history: History, rules: LoopRules) -> Sequence[int]:
    """0-based positions of the equal last actions, without observing ones, if each of the latest was carried out on a
    new page; else empty."""
    doing = [i for i, (intent, _) in enumerate(history.steps) if not _only_observes(intent)]
    same = list(takewhile(lambda i: history.acts[i] == history.acts[doing[-1]], reversed(doing)))[::-1]
    if len(same) < rules.identical_actions:
        return ()
    late = pairwise([-1, *same][-rules.identical_actions - 1 :])
    new = all(history.states[i] not in history.states[: before + 1] for before, i in late)
    carried = all(carried_out(history.steps[i]) for i in same[-rules.identical_actions :])
    return same if new and carried else ()


def gains_of(steps: Sequence[Step], final: Sequence[bool] = ()) -> list[int]:
    """0-based positions at which more milestones were achieved than before; never the first step.

    The position after the last step is the end, with the milestones *final*. They are not compared with ratings of a
    model, which may have missed some.
    """
    counts = [sum(intent.rating.z) for intent, _ in steps]
    last = steps[-1][0].rating if steps else None
    if last is not None and last.source in ("state", "none") and len(final) == len(last.z):
        counts.append(sum(final))
    return [i for i in range(1, len(counts)) if counts[i] > max(counts[:i])]


def _stretches(history: History, rules: LoopRules, gains: Sequence[int]) -> Iterator[Stretch]:
    acts, states = history.acts, history.states
    pairs = list(zip(acts, states, strict=True))
    for period in range(1, rules.max_period + 1):
        repeats = rules.identical_actions if period == 1 else rules.cycle_repeats
        for cycle in _joined(_after_gains(pairs, period, repeats, gains), acts):
            yield _stretch(_entered(cycle, history, rules))
    yield from map(_stretch, _identical_tail(history, rules))
    for period in range(2, rules.max_period + 1):
        yield from map(_stretch, _after_gains(states, period, rules.blind_repeats, gains))
    yield from _frequent(history, rules, gains)


def _only_observes(intent: Intent) -> bool:
    return isinstance(intent.action, OBSERVING)


def _stretch(cycle: Cycle) -> Stretch:
    return Stretch(cycle.start, cycle.end, cycle.period, cycle.length // cycle.period)


def _after_gains(keys: Sequence[object], period: int, repeats: int, gains: Sequence[int]) -> Iterator[Cycle]:
    """Stretches of *keys* with a primitive round; of each, the part after the last gained milestone."""
    for cycle in find_cycles(keys, period=period, repeats=repeats):
        if _primitive(keys[cycle.start : cycle.start + period]):
            start = max((gain for gain in gains if cycle.start < gain < cycle.end), default=cycle.start)
            if cycle.end - start >= period * repeats:
                yield Cycle(start, period, cycle.end - start)


def _joined(stretches: Iterable[Cycle], acts: Sequence[object]) -> Iterator[Cycle]:
    """Joins a stretch to the one directly before it with the same actions (the page changed by itself)."""
    before: Cycle | None = None
    for cycle in stretches:
        continues = before is not None and before.end == cycle.start and acts[before.start] == acts[cycle.start]
        before = Cycle(before.start, cycle.period, before.length + cycle.length) if before and continues else cycle
        yield before


def _primitive(block: Sequence[object]) -> bool:
    sizes = (size for size in range(1, len(block)) if len(block) % size == 0)
    return not any(all(block[i] == block[i % size] for i in range(len(block))) for size in sizes)


def _entered(cycle: Cycle, history: History, rules: LoopRules) -> Cycle:
    """Extends *cycle* to its entry: the partial round before it with the same actions on other pages, or with the same
    pages by other actions."""
    acts, states = history.acts, history.states
    start, period = cycle.start, cycle.period
    if period == 1:
        return _led_into(cycle, history)
    if len(set(acts[start : start + period])) == 1:
        return _switched(cycle, history, rules)
    while start > 0 and cycle.start - start < period - 1:
        alike = acts[start - 1] == acts[start - 1 + period] or states[start - 1] == states[start - 1 + period]
        if not alike:
            break
        start -= 1
    return Cycle(start, period, cycle.end - start)


def _switched(cycle: Cycle, history: History, rules: LoopRules) -> Cycle:
    """Extends a cycle of one action by the same action before it, unless that was repeated and may be progress."""
    act = history.acts[cycle.start]
    before = sum(1 for _ in takewhile(lambda one: one == act, reversed(history.acts[: cycle.start])))
    start = cycle.start - before if before < rules.identical_actions else cycle.start
    return Cycle(start, cycle.period, cycle.end - start)


def _led_into(cycle: Cycle, history: History) -> Cycle:
    """Extends one action by the same action before it, if that hardly changed the page or was taken once. If it was
    repeated, it may be progress."""

    def same(i: int) -> bool:
        return i >= 0 and history.same_as(i, cycle.start) and carried_out(history.steps[i])

    start = cycle.start
    while same(start - 1) and history.similar(start - 1, start):
        start -= 1
    if same(start - 1) and not same(start - 2):
        start -= 1
    return Cycle(start, 1, cycle.end - start)


def _identical_tail(history: History, rules: LoopRules) -> Iterator[Cycle]:
    """The identical last actions, if they return to known pages or were refused. Drags are excluded, because their
    destination has no key."""
    acts, states = history.acts, history.states
    start = len(acts) - sum(1 for _ in takewhile(lambda act: act == acts[-1], reversed(acts)))
    unknown = bool(acts) and isinstance(history.steps[-1][0].action, (*OBSERVING, Drag))
    if unknown or len(acts) - start < rules.identical_actions:
        return
    run, late = range(start, len(acts)), range(len(acts) - rules.identical_actions, len(acts))
    if not any(carried_out(history.steps[i]) for i in run):
        yield Cycle(start, 1, len(run))
    elif all(states[i] in states[:i] for i in late):
        again = next(i for i in run if states[i] in states[i + 1 :] or i in late)
        yield Cycle(again, 1, len(acts) - again)


def _frequent(history: History, rules: LoopRules, gains: Sequence[int]) -> Iterator[Stretch]:
    """One action on one page in at least half of the steps, without a new page or milestone."""
    pairs = list(zip(history.acts, history.states, strict=True))
    doing = (pair for (intent, _), pair in zip(history.steps, pairs, strict=True) if not _only_observes(intent))
    for pair, count in Counter(doing).items():
        if count < rules.frequent_actions:
            continue
        at = [i for i, one in enumerate(pairs) if one == pair]
        for first, start in enumerate(at[: len(at) - rules.frequent_actions + 1]):
            rounds, end = len(at) - first, at[-1] + 1
            new = set(history.states[start + 1 : end]) - set(history.states[: start + 1])
            gained = any(start < gain < end for gain in gains)
            if rounds >= _LEAST_SHARE * (end - start) and not gained and len(new) < rules.progress_states:
                entry = _led_into(Cycle(start, 1, 1), history).start
                yield Stretch(entry, end, 1, rounds + start - entry, scattered=rounds < end - start)
                break


def _repeats_too(path: Sequence[PlacedAction], done: Sequence[PlacedAction], one: Stretch) -> bool:
    """Whether a success repeats the same as often: in a row, or in total if it is scattered."""
    block = list(done[one.end - one.period : one.end])
    if one.scattered:
        return path.count(block[0]) >= one.rounds
    turns = [block[i:] + block[:i] for i in range(one.period)]
    cycles = find_cycles(path, period=one.period, repeats=one.rounds)
    return any(list(path[cycle.start : cycle.start + one.period]) in turns for cycle in cycles)
