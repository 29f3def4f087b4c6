"""Records the hard cases again: real runs in Chromium, each by a script of its own, and successes to compare with.

    python tests/data/failures/hard/record.py

Writes `episodes/`, `references/` and both folders' `blobs/` beside this file; `labels.jsonl`, written by hand, stays as
it is. Stops with an error where an episode did not end as its case says. Takes about three minutes.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[3])]

from agent.config import parse_config  # noqa: E402
from agent.episode.policy import ActionProposal, Policy, Turn, storable_action  # noqa: E402
from agent.run.oracle import oracle_policy  # noqa: E402
from agent.run.runner import run_suite  # noqa: E402
from envs.core.action_languages import language  # noqa: E402
from envs.core.actions import Action, Back, Click, Find, Hover, Scroll, Stop, Type  # noqa: E402
from envs.core.tasks import TaskSelection  # noqa: E402
from envs.core.trace import EndedBy  # noqa: E402
from envs.core.trace_store import Trace, read_trace  # noqa: E402

Script = Generator[Action, Turn, None]
LANGUAGE = language("program")


@dataclass(frozen=True, slots=True)
class Case:
    """One episode: the oracle's first steps, then the script until the end."""

    name: str
    task: str
    max_steps: int
    oracle_steps: int
    script: Callable[[Turn], Script] | None = None
    """None: the oracle plays until the limit."""
    seed: int = 0
    pause_s: float = 0.0
    """Before each action of the script, as a model's answer would take."""
    ended_by: EndedBy = "max_steps"

    @property
    def suite(self) -> str:
        return "sites" if self.task.split("-")[0] in ("shop", "forum", "code", "cms", "map") else "miniwob"


class Scripted:
    """Plays one case."""

    spec = "scripted"

    def __init__(self, case: Case) -> None:
        self._case = case
        self._oracle = oracle_policy("oracle", case.suite, LANGUAGE)
        self._script: Script | None = None

    async def propose(self, turn: Turn) -> ActionProposal:
        if self._case.script is None or turn.step <= self._case.oracle_steps:
            return await self._oracle.propose(turn)
        await asyncio.sleep(self._case.pause_s)
        if self._script is None:
            self._script = self._case.script(turn)
            action = next(self._script)
        else:
            action = self._script.send(turn)
        clean = storable_action(action)
        return ActionProposal(clean, LANGUAGE.show(clean))


def click(turn: Turn, name: str, role: str = "link", nth: int = 0) -> Action:
    """The *nth* shown element of this role whose name begins so. Raises LookupError where there are not that many."""
    named = (
        one
        for one in turn.view.observation.elements
        if one.shown and one.key.role == role and one.key.name.strip().startswith(name)
    )
    found = [one for one, _ in zip(named, range(nth + 1), strict=False)]
    if len(found) <= nth:
        raise LookupError(f"{turn.task.id}: step {turn.step} shows no {role} {name!r}: {turn.view.observation.text}")
    return Click(ref=found[nth].ref)


def fill(turn: Turn, name: str, text: str, *, enter: bool = False, role: str = "textbox") -> Action:
    chosen = click(turn, name, role)
    assert isinstance(chosen, Click)
    return Type(ref=chosen.ref, text=text, enter=enter)


def clicks(turn: Turn, names: Sequence[str]) -> Script:
    """Links by their names, one after the other."""
    for name in names:
        turn = yield click(turn, name)


def pages_to_the_product(turn: Turn) -> Script:
    """Turns the catalogue's pages until the product is there."""
    while not any(one.key.name == "Harrow Steel Teapot" for one in turn.view.observation.elements):
        turn = yield click(turn, "next")
    yield click(turn, "Harrow Steel Teapot")
    yield Stop(answer="4737")


def turns_too_far_down(turn: Turn) -> Script:
    while True:
        turn = yield click(turn, "", "button", 1)


def profile_again_and_again(turn: Turn) -> Script:
    """The own profile in seven of ten steps; between them it scrolls and searches."""
    for action in ("profile", "profile", "profile", "down", "profile", "profile", "find", "profile", "profile", "up"):
        observing = {"down": Scroll(direction="down"), "up": Scroll(direction="up"), "find": Find(text="joined")}
        turn = yield observing.get(action) or click(turn, "robin_hale", nth=1)


def wrong_reply_then_round(turn: Turn) -> Script:
    """Writes another comment than was asked for, then goes from the list of topics to the topic and back."""
    turn = yield fill(turn, "Write comment...", "Thank you.")
    turn = yield click(turn, "Publish", "button")
    while True:
        turn = yield click(turn, "Quayside")
        turn = yield click(turn, "Slugs on my parsnips, what now?", "clickable")


def home_and_logo(turn: Turn) -> Script:
    """Two links that lead to the page that is shown already."""
    yield from clicks(turn, [{"L": "Harbour Lane", "H": "Home"}[one] for one in "LHLLHHLLLHLLHLH"])


def lost_after_the_product(turn: Turn) -> Script:
    """From the product to the catalogue, and there the two links that lead to it."""
    yield from clicks(turn, [{"L": "Harbour Lane", "H": "Home"}[one] for one in "HLHHLHLLLHH"])


def logo_then_wrong_product(turn: Turn) -> Script:
    """The reference goes back by Home, this one by the logo; then it opens a product that was not asked for."""
    turn = yield click(turn, "Harbour Lane")
    turn = yield fill(turn, "Search", "Marlowe Walnut")
    turn = yield click(turn, "Search", "button")
    turn = yield click(turn, "Marlowe Walnut Train")
    yield Stop(answer="Brackwater Walnut Nest Box")


def home_then_right_product(turn: Turn) -> Script:
    turn = yield click(turn, "Home")
    turn = yield fill(turn, "Search", "Marlowe Walnut")
    turn = yield click(turn, "Search", "button")
    turn = yield click(turn, "Marlowe Walnut Seed Feeder")
    yield Stop(answer="Marlowe Walnut Seed Feeder")


def product_and_list(turn: Turn) -> Script:
    """Between the list and one product of it, by the picture's link or the title's, by the logo or Home."""
    while True:
        turn = yield click(turn, "Petrel Felt Sketchbook", nth=0)
        turn = yield click(turn, "Harbour Lane")
        turn = yield click(turn, "Petrel Felt Sketchbook", nth=1)
        turn = yield click(turn, "Home")
        turn = yield click(turn, "Petrel Felt Sketchbook", nth=1)
        turn = yield Back()


def wrong_answer(turn: Turn) -> Script:
    yield Stop(answer="4773")


def types_into_a_field_that_takes_nothing(turn: Turn) -> Script:
    while True:
        turn = yield fill(turn, "datepicker", "01/14/2016")


def tries_this_and_that(turn: Turn) -> Script:
    """Fourteen things on and around the topic, none of which moves it."""
    turn = yield click(turn, "share")
    turn = yield click(turn, "like")
    turn = yield click(turn, "Gardening")
    turn = yield click(turn, "", "clickable", 2)
    turn = yield click(turn, "quote")
    turn = yield click(turn, "Quayside")
    turn = yield click(turn, "All Categories")
    turn = yield click(turn, "Cooking")
    turn = yield click(turn, "", "clickable", 1)
    turn = yield click(turn, "report")
    turn = yield Back()
    turn = yield click(turn, "Bold")
    turn = yield click(turn, "Quayside")
    turn = yield Hover(ref=3)
    yield click(turn, "", "clickable", 4)


CASES = (
    Case("prev_to_the_month", "choose-date", 12, 0),
    Case("prev_half_the_way", "choose-date", 8, 0, seed=1),
    Case("covered_as_in_the_reference", "choose-date", 16, 0),
    Case("spinner_down", "use-spinner", 7, 0),
    Case("spinner_the_wrong_way", "use-spinner", 9, 2, turns_too_far_down, seed=3),
    Case("next_page", "shop-product-fact", 8, 0, pages_to_the_product),
    Case("profile_again", "forum-author-joined", 13, 3, profile_again_and_again, pause_s=0.9),
    Case("round_while_ages_pass", "forum-reply", 13, 3, wrong_reply_then_round, pause_s=0.9),
    Case("home_and_logo", "shop-compare", 15, 0, home_and_logo),
    Case("lost_after_the_product", "shop-compare", 14, 3, lost_after_the_product),
    Case("logo_then_wrong_product", "shop-compare", 14, 3, logo_then_wrong_product, ended_by="stop"),
    Case("product_and_list", "shop-product-fact", 14, 0, product_and_list),
    Case("wrong_answer", "shop-product-fact", 14, 3, wrong_answer, ended_by="stop"),
    Case("types_in_vain", "choose-date", 8, 0, types_into_a_field_that_takes_nothing),
    Case("this_and_that", "forum-move-topic", 17, 3, tries_this_and_that),
)  # fmt: skip
SUCCESSES = (
    Case("oracle", "choose-date", 40, 0),
    Case("oracle", "choose-date", 40, 0, seed=1),
    Case("oracle", "use-spinner", 40, 0),
    Case("oracle", "use-spinner", 40, 0, seed=3),
    Case("oracle", "shop-product-fact", 40, 0),
    Case("next_page", "shop-product-fact", 40, 0, pages_to_the_product),
    Case("oracle", "forum-author-joined", 40, 0),
    Case("oracle", "forum-reply", 40, 0),
    Case("oracle", "shop-compare", 40, 0),
    Case("home", "shop-compare", 40, 3, home_then_right_product),
    Case("oracle", "forum-move-topic", 40, 0),
)  # fmt: skip


async def record() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        for case in CASES:
            trace = await _played(case, Path(scratch), "failure")
            if trace.footer is None or trace.footer.ended_by != case.ended_by:
                raise SystemExit(f"{case.name}: not ended by {case.ended_by}: {trace.footer}")
            _copy(trace, HERE, f"{case.name}--{case.task}.jsonl")
        for case in SUCCESSES:
            trace = await _played(case, Path(scratch), "success")
            _copy(trace, HERE / "references", f"{case.name}--{case.task}-{case.seed}.jsonl")


async def _played(case: Case, scratch: Path, outcome: Literal["success", "failure"]) -> Trace:
    values = {"policy": "scripted", "planner": "reference", "fsync": False, "limits": {"max_steps": case.max_steps}}
    policy: Policy = Scripted(case)
    selection = TaskSelection(case.suite, (case.task,), (case.seed,))
    run = await run_suite(parse_config(values, "record"), selection, scratch, policy=policy)
    trace = read_trace(run.folder / run.episodes[0].trace)
    print(case.name, case.task, run.episodes[0].outcome, len(trace.steps), flush=True)
    if run.episodes[0].outcome != outcome:
        raise SystemExit(f"{case.name}: no {outcome}: {trace.footer}")
    return trace


def _copy(trace: Trace, folder: Path, name: str) -> None:
    """The trace and the page texts that it names; lists of keys and prompts, which no analysis reads, stay behind."""
    for part in ("episodes", "blobs"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    shutil.copyfile(trace.path, folder / "episodes" / name)
    for step in trace.steps:
        blob = step.intent.seen.text_blob
        shutil.copyfile(trace.path.parent.parent / "blobs" / blob, folder / "blobs" / blob)


if __name__ == "__main__":
    for stale in ("episodes", "blobs", "references"):
        shutil.rmtree(HERE / stale, ignore_errors=True)
    asyncio.run(record())
