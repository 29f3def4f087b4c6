"""A shortened page keeps the lines of its quotes whole: by hand-made pages and by recorded episodes of the sites."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.run.discover_traces import EpisodeFile, discover_traces
from envs.core.observation import Observation
from envs.core.past_actions import PastAction
from envs.core.tasks import Milestone
from envs.core.trace import Commit, Flip, Intent, Rating
from envs.observer.page_focus import focused_lines, interest
from envs.observer.page_lines import without_refs
from judges.base import Ending
from judges.ending import EARLIER_CHARS, EndedEpisode, complete_ending
from judges.quoted_lines import holds, quoted_lines

RECORDED = Path(__file__).parents[1] / "data" / "failures"
FILES = [(file.read().header.task, file) for file in discover_traces([RECORDED / "references"])]
SITES = {task.name: file for task, file in FILES if task.suite == "sites"}

PAGE = '# Orders\n\n[1] textbox "From" = "May"\n[2] tab "All" (on?)\nOrder 7\n| sent'


@pytest.mark.parametrize(
    ("quote", "places"),
    [
        ('textbox "From" = "May"', {2}),
        ('[1] textbox "From" = "May"', {2}),
        ('tab "All" (on?)', {3}),
        ('tab "All"  Order 7', {3, 4}),
        ("Order  7 | sent", {4, 5}),
        ("Order 8", set[int]()),
        (" ", set[int]()),
    ],
)
def test_a_quote_is_found_as_it_was_shown(quote: str, places: set[int]) -> None:
    assert quoted_lines(PAGE, [quote]) == places
    assert holds(PAGE, [quote]) is bool(places)


def test_lines_that_must_stay_are_neither_left_out_nor_cut() -> None:
    rows = [f"Row {row} | {'word ' * 30}| {row} euros" for row in range(100)]
    shown = focused_lines("\n".join(rows), interest(("Row 3", 1.0)), 900, whole=frozenset({57}))
    assert rows[57] in shown and len("\n".join(shown)) <= 900


def observation(file: EpisodeFile, intent: Intent) -> Observation:
    text = file.blobs.text(intent.seen.text_blob)
    return Observation(intent.seen.url, intent.seen.title, text, (), (), intent.seen.digest, (1280, 800), (0, 0), 0)


def new_lines(before: str, now: str) -> list[str]:
    known = set(without_refs(before).split("\n"))
    lines = without_refs(now).split("\n")
    return [line for line in lines if line not in known and sum(map(str.isalnum, line)) >= 3]


def proofs(file: EpisodeFile, steps: list[tuple[Intent, Commit | None]], seed: int) -> Iterator[tuple[int, Flip]]:
    """Up to four milestones, each proven by one or two lines that are new on a page."""
    draw = random.Random(seed)
    texts = [observation(file, intent).text for intent, _ in steps]
    fresh = {place: new_lines(texts[place - 1], texts[place]) for place in range(1, len(texts))}
    places = sorted(place for place, lines in fresh.items() if lines)
    for number, place in enumerate(sorted(draw.sample(places, min(4, len(places)))), 1):
        first, *further = draw.sample(fresh[place], min(2, len(fresh[place])))
        yield place, Flip(milestone=f"m{number}", achieved=True, evidence=first, further=tuple(further))


@pytest.mark.parametrize("file", SITES.values(), ids=SITES.keys())
def test_the_judge_sees_every_quote_of_recorded_episodes_in_its_place(file: EpisodeFile) -> None:
    trace = file.read()
    for seed in range(2):
        steps: list[tuple[Intent, Commit | None]] = [(step.intent, step.commit) for step in trace.steps]
        flips = dict(proofs(file, steps, seed))
        for place, (intent, commit) in enumerate(steps):
            rating = Rating(z=(), flips=(flips[place],) if place in flips else ())
            steps[place] = (intent.model_copy(update={"rating": rating}), commit)
        z = (True,) * len(flips)
        ending = complete_ending(
            EndedEpisode(
                Ending(
                    instruction=trace.header.instruction,
                    observation=observation(file, steps[-1][0]),
                    history=tuple(PastAction(i.action, None, c.result if c else None) for i, c in steps),
                    milestones=tuple(Milestone(id=flip.milestone, text="A part is done") for flip in flips.values()),
                    z=z,
                    answer=trace.footer.answer if trace.footer is not None else None,
                ),
                steps,
                Rating(z=z),
                file.blobs,
            )
        )
        shown = [ending.observation.text, *(page.text for page in ending.pages)]
        assert sum(len(page.text) for page in ending.pages) <= EARLIER_CHARS
        for flip in flips.values():
            for quote in (flip.evidence, *flip.further):
                assert any(holds(text, [quote]) for text in shown), quote
