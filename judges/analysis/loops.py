"""Finds stretches of an episode that repeat themselves (MiRA paper: rule B of §4.2, state hashes of §4.3).

Pages and actions are compared as :mod:`judges.analysis.history` says. What counts, first to last:

* a cycle of up to `max_period` (action, page) pairs, `cycle_repeats` times in a row; one action, `identical_actions`;
* the last `identical_actions` actions, or more, are identical, and the last of them saw no new page, or none was
  carried out. Looking (scroll, find, expand, hover, wait) is left out here;
* pages that come back in turn, `blind_repeats` times, whatever was done on them: A-B-A-B-A-B;
* one action on one page `frequent_actions` times, in at least half of the steps of a stretch with no new page.

No loop are

* equal actions that each lead to a page never seen before: a date picker that is turned, a pager, a counter;
* a stretch with a milestone gained by it, in it (what came after may be one) or later;
* what a success of the same task repeats as often, on pages at the same addresses;
* a stretch that was left again and followed by progress, see :func:`find_loop`.
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
from judges.analysis.history import LOOKING, Done, History, Step, carried_out


class LoopRules(Record):
    """Thresholds of rule B, in steps or rounds."""

    identical_actions: int = Field(default=3, ge=2)
    """N: identical last actions, or one action on one page in a row."""
    max_period: int = Field(default=4, ge=1)
    """Longest cycle, in steps."""
    cycle_repeats: int = Field(default=2, ge=2)
    """M: rounds of a cycle of two or more steps with equal actions on equal pages."""
    blind_repeats: int = Field(default=3, ge=2)
    """Rounds where only the pages are known to be equal."""
    frequent_actions: int = Field(default=5, ge=2)
    """One action on one page, other steps in between."""
    progress_states: int = Field(default=2, ge=1)
    """Pages never seen before, after a stretch was left, that make it progress: the stretch explains nothing then."""


class Cycle(NamedTuple):
    """A stretch of steps that repeats with `period`. `start` is the 0-based index of its first step."""

    start: int
    period: int
    length: int

    @property
    def end(self) -> int:
        return self.start + self.length


class Stretch(NamedTuple):
    """A repetition: a cycle, or one action that was taken `rounds` times among others."""

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
    usual: Sequence[Sequence[Done]] = (),
) -> Loop | None:
    """The repetition that the episode did not get out of, or None.

    The earliest stretch after which nothing new came, neither a page nor a milestone. Where there is none, the earliest
    that was followed by fewer than `progress_states` new pages and no milestone. Of two with one entry, the shorter
    period. *final* holds the milestones at the end; *usual* what successes of the task did, step by step.
    """
    states, steps = history.states, history.steps
    gains = gains_of(steps, final)
    held = [one for one in _stretches(history, rules, gains) if not any(gain >= one.end for gain in gains)]
    news = [(len(set(states[one.end :]) - set(states[: one.end])), one) for one in held]
    done = history.done()
    for most in (1, rules.progress_states):
        stuck = [one for new, one in news if new < most and not any(_repeats_too(way, done, one) for way in usual)]
        if stuck:
            return _loop(_first(stuck), steps)
    return None


def _first(stretches: Sequence[Stretch]) -> Stretch:
    """The earliest, then the one with the shorter period; one action that goes on among others, with all its rounds."""
    first = min(stretches, key=lambda one: (one.start, one.scattered, one.period))
    longer = [one for one in stretches if one.scattered and (one.start, one.period) == (first.start, first.period)]
    return max([first, *longer], key=lambda one: one.rounds)


def _loop(one: Stretch, steps: Sequence[Step]) -> Loop:
    last = steps[one.end - 1][0].step if one.scattered else None
    return Loop(entry=steps[one.start][0].step, period=one.period, repetitions=one.rounds, last=last)


def find_cycles(keys: Sequence[object], *, period: int, repeats: int) -> Iterator[Cycle]:
    """Every stretch of *keys* that repeats with *period* at least *repeats* times in a row, whole, in order."""
    start = 0
    while start + period * repeats <= len(keys):
        end = start + period
        while end < len(keys) and keys[end] == keys[end - period]:
            end += 1
        if end - start >= period * repeats:
            yield Cycle(start, period, end - start)
        start = max(start + 1, end - period + 1)


def advance(history: History, rules: LoopRules) -> Sequence[int]:
    """0-based positions of the last actions where they are equal, looking left out, and each of the latest was carried
    out on a page never seen before; empty where they are not."""
    doing = [i for i, (intent, _) in enumerate(history.steps) if not _looks(intent)]
    same = list(takewhile(lambda i: history.acts[i] == history.acts[doing[-1]], reversed(doing)))[::-1]
    if len(same) < rules.identical_actions:
        return ()
    late = pairwise([-1, *same][-rules.identical_actions - 1 :])
    new = all(history.states[i] not in history.states[: before + 1] for before, i in late)
    carried = all(carried_out(history.steps[i]) for i in same[-rules.identical_actions :])
    return same if new and carried else ()


def gains_of(steps: Sequence[Step], final: Sequence[bool] = ()) -> list[int]:
    """0-based positions at which more milestones were achieved than ever before; the first step is none. The position
    after the last step stands for the end, where *final* are the milestones that count: they are not compared with what
    a model rated on the way, which may have missed some."""
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


def _looks(intent: Intent) -> bool:
    return isinstance(intent.action, LOOKING)


def _stretch(cycle: Cycle) -> Stretch:
    return Stretch(cycle.start, cycle.end, cycle.period, cycle.length // cycle.period)


def _after_gains(keys: Sequence[object], period: int, repeats: int, gains: Sequence[int]) -> Iterator[Cycle]:
    """Stretches of *keys* whose round does not itself repeat; of each, what came after the last milestone gained."""
    for cycle in find_cycles(keys, period=period, repeats=repeats):
        if _primitive(keys[cycle.start : cycle.start + period]):
            start = max((gain for gain in gains if cycle.start < gain < cycle.end), default=cycle.start)
            if cycle.end - start >= period * repeats:
                yield Cycle(start, period, cycle.end - start)


def _joined(stretches: Iterable[Cycle], acts: Sequence[object]) -> Iterator[Cycle]:
    """Of a stretch that follows at once on another of the same actions (the page changed by itself), both as one."""
    before: Cycle | None = None
    for cycle in stretches:
        goes_on = before is not None and before.end == cycle.start and acts[before.start] == acts[cycle.start]
        before = Cycle(before.start, cycle.period, before.length + cycle.length) if before and goes_on else cycle
        yield before


def _primitive(block: Sequence[object]) -> bool:
    sizes = (size for size in range(1, len(block)) if len(block) % size == 0)
    return not any(all(block[i] == block[i % size] for i in range(len(block))) for size in sizes)


def _entered(cycle: Cycle, history: History, rules: LoopRules) -> Cycle:
    """With the part of a round before it that did the same on pages still different, or led through the same pages by
    another action: there it was entered."""
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
    """One action that goes round among pages, with the same action before it; more often, it may have been progress."""
    act = history.acts[cycle.start]
    before = sum(1 for _ in takewhile(lambda one: one == act, reversed(history.acts[: cycle.start])))
    start = cycle.start - before if before < rules.identical_actions else cycle.start
    return Cycle(start, cycle.period, cycle.end - start)


def _led_into(cycle: Cycle, history: History) -> Cycle:
    """One action with the same action before it, where that hardly changed the page, or was taken only once: more
    often, it may have been progress."""

    def same(i: int) -> bool:
        return i >= 0 and history.same_as(i, cycle.start) and carried_out(history.steps[i])

    start = cycle.start
    while same(start - 1) and history.alike(start - 1, start):
        start -= 1
    if same(start - 1) and not same(start - 2):
        start -= 1
    return Cycle(start, 1, cycle.end - start)


def _identical_tail(history: History, rules: LoopRules) -> Iterator[Cycle]:
    """The identical last actions where they go round, or are refused, on pages that differ. A drag's destination has no
    key, so that its equals are not known."""
    acts, states = history.acts, history.states
    start = len(acts) - sum(1 for _ in takewhile(lambda act: act == acts[-1], reversed(acts)))
    unknown = bool(acts) and isinstance(history.steps[-1][0].action, (*LOOKING, Drag))
    if unknown or len(acts) - start < rules.identical_actions:
        return
    run, late = range(start, len(acts)), range(len(acts) - rules.identical_actions, len(acts))
    if not any(carried_out(history.steps[i]) for i in run):
        yield Cycle(start, 1, len(run))
    elif all(states[i] in states[:i] for i in late):
        again = next(i for i in run if states[i] in states[i + 1 :] or i in late)
        yield Cycle(again, 1, len(acts) - again)


def _frequent(history: History, rules: LoopRules, gains: Sequence[int]) -> Iterator[Stretch]:
    """One action on one page among others, in at least half of the steps, with no page new and no milestone gained."""
    pairs = list(zip(history.acts, history.states, strict=True))
    doing = (pair for (intent, _), pair in zip(history.steps, pairs, strict=True) if not _looks(intent))
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


def _repeats_too(way: Sequence[Done], done: Sequence[Done], one: Stretch) -> bool:
    """A success does the same as often in a row, or, where it is scattered, in all."""
    block = list(done[one.end - one.period : one.end])
    if one.scattered:
        return way.count(block[0]) >= one.rounds
    turns = [block[i:] + block[:i] for i in range(one.period)]
    cycles = find_cycles(way, period=one.period, repeats=one.rounds)
    return any(list(way[cycle.start : cycle.start + one.period]) in turns for cycle in cycles)
