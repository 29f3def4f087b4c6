"""Finds stretches of an episode that repeat themselves (MiRA paper: rule B of §4.2, state hashes of §4.3).

Two steps are alike when the action is (kind, the element's durable key, what was typed or chosen; never the number that
an element had in one observation) and the page is: by `Seen.state`, which ignores clocks, tokens and the focus, or by
`Seen.digest` in traces that have no states. What counts, first to last:

* a cycle of up to `max_period` (action, page) pairs, `cycle_repeats` times in a row; one action, `identical_actions`;
* the last `identical_actions` actions, or more, are identical, whatever the pages. Looking (scroll, find, expand,
  hover, wait) is left out here: scrolling down a list is no loop while the page shows something new;
* a cycle of actions on pages that differ in their numbers alone (a counter ticks), `blind_repeats` times;
* pages that come back in turn, `blind_repeats` times, whatever was done on them: A-B-A-B-A-B.

A stretch that was left again and followed by progress explains nothing: see :func:`find_loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from pydantic import Field

from envs.actions import Drag, Expand, Find, Hover, Scroll, ScrollAt, Wait
from envs.record import Record
from envs.trace import Commit, Intent, Loop

Step = tuple[Intent, Commit | None]
"""What was decided and what came of it; None where the process died in between."""

LOOKING: Final = (Find, Expand, Scroll, ScrollAt, Hover, Wait)
"""Actions that look at a page and change nothing on it."""


class LoopRules(Record):
    """Thresholds of rule B, in steps or rounds."""

    identical_actions: int = Field(default=3, ge=2)
    """N: identical last actions, or one action on one page in a row."""
    max_period: int = Field(default=4, ge=1)
    """Longest cycle, in steps."""
    cycle_repeats: int = Field(default=2, ge=2)
    """M: rounds of a cycle of two or more steps with equal actions on equal pages."""
    blind_repeats: int = Field(default=3, ge=2)
    """Rounds where only the actions, or only the pages, are known to be equal."""
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


Unnumbered = Callable[[Intent], str | None]
"""A page's address and text with its numbers masked; None where its text is not at hand."""


def find_loop(steps: Sequence[Step], rules: LoopRules, unnumbered: Unnumbered | None = None) -> Loop | None:
    """The repetition that the episode did not get out of, or None.

    The earliest stretch after which nothing new came, neither a page nor a milestone. Where there is none, the earliest
    that was followed by fewer than `progress_states` new pages and no milestone. Of two with one entry, the shorter
    period. Counters are looked through only where *unnumbered* is given: it reads page texts.
    """
    gains = _gains(steps)
    states = [state_of(intent) for intent, _ in steps]
    held = [one for one in _cycles(steps, rules, unnumbered) if not any(gain >= one.end for gain in gains)]
    news = [(len(set(states[one.end :]) - set(states[: one.end])), one) for one in held]
    stuck = [one for new, one in news if new == 0] or [one for new, one in news if new < rules.progress_states]
    if not stuck:
        return None
    first = min(stuck, key=lambda one: (one.start, one.period))
    return Loop(entry=steps[first.start][0].step, period=first.period, repetitions=first.length // first.period)


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


def state_of(intent: Intent) -> str:
    """The state of the page that the action was chosen on."""
    return intent.seen.state or intent.seen.digest


def action_key(intent: Intent) -> tuple[str, object]:
    """Equal for equal actions on the same element. The numbers that elements had do not count."""
    action = intent.action.model_dump_json(exclude={"ref", "to_ref"})
    target = intent.target
    if target is None:
        # Without a key (the element was not shown, or the trace was made elsewhere) the number is all there is.
        return action, getattr(intent.action, "ref", None)
    return action, (target.frame, target.role, target.name, target.ordinal)


def _cycles(steps: Sequence[Step], rules: LoopRules, unnumbered: Unnumbered | None) -> Iterator[Cycle]:
    acts = [action_key(intent) for intent, _ in steps]
    states = [state_of(intent) for intent, _ in steps]
    gains = _gains(steps)
    pairs = list(zip(acts, states, strict=True))
    for period in range(1, rules.max_period + 1):
        repeats = rules.identical_actions if period == 1 else rules.cycle_repeats
        for cycle in _joined(_stretches(pairs, period, repeats, gains), acts):
            yield _entered(cycle, acts, states)
    yield from _identical_tail(steps, acts, rules)
    for period in range(2, rules.max_period + 1):
        yield from _stretches(states, period, rules.blind_repeats, gains)
        if unnumbered is not None:
            for cycle in _stretches(acts, period, rules.blind_repeats, gains):
                pages = [unnumbered(intent) for intent, _ in steps[cycle.start : cycle.end]]
                if None not in pages and pages[period:] == pages[:-period]:
                    yield cycle


def _stretches(keys: Sequence[object], period: int, repeats: int, gains: Sequence[int]) -> Iterator[Cycle]:
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


def _entered(cycle: Cycle, acts: Sequence[object], states: Sequence[str]) -> Cycle:
    """With the part of a round before it that did the same on pages still different, or led through the same pages by
    another action: there it was entered."""
    start, period = cycle.start, cycle.period
    while start > 0 and cycle.start - start < period - 1:
        alike = acts[start - 1] == acts[start - 1 + period] or states[start - 1] == states[start - 1 + period]
        if not alike:
            break
        start -= 1
    return Cycle(start, period, cycle.end - start)


def _identical_tail(steps: Sequence[Step], acts: Sequence[object], rules: LoopRules) -> Iterator[Cycle]:
    """The last actions, where they are identical. A drag's destination has no key, so that its equals are not known."""
    run = next((i for i, key in enumerate(reversed(acts)) if key != acts[-1]), len(acts))
    if run >= rules.identical_actions and not isinstance(steps[-1][0].action, (*LOOKING, Drag)):
        yield Cycle(len(acts) - run, 1, run)


def _gains(steps: Sequence[Step]) -> list[int]:
    """0-based positions at which more milestones were achieved than ever before; the first step is none."""
    counts = [sum(intent.rating.z) for intent, _ in steps]
    return [i for i in range(1, len(counts)) if counts[i] > max(counts[:i])]
