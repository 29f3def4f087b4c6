"""Examples from traces: what was done right on a page, asked again of one answer.

    element   a screenshot and an element's role and name; the answer is a point in it (visual grounding)
    goal      a screenshot and the instruction; the answer is a point in what was acted on next
    step      the prompt that the policy was sent; the answer is the action that it took

Only steps of successful episodes that were carried out. Whatever is left out is counted.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from envs.languages import LANGUAGES, ParseError
from envs.tasks import TaskRef
from envs.trace import Intent
from envs.trace_store import BlobStore, Trace
from envs.whole_files import replacing
from training.data.trajectories import Decision, trajectory
from training.grpo.examples import Example, Role, size_of
from training.rewards import PointTarget, StepTarget

Ask = Literal["element", "goal", "step"]
ROLES: Final[Mapping[str, Role]] = {"system": "system", "assistant": "assistant"}
THINK: Final = " Think first, between <think> and </think>; then answer between <answer> and </answer>."


class Missing(StrEnum):
    """Why a step, or a whole episode, is no example."""

    FAILED = "of an episode that did not succeed"
    NOT_DONE = "not carried out"
    HELD_OUT = "of an instance that is held out for evaluation"
    NO_ELEMENT = "acts on no element"
    NO_SCREENSHOT = "without a screenshot (`mira run --screenshots steps`)"
    NO_NAME = "of an element without a name"
    OUT_OF_SIGHT = "of an element outside the screenshot"
    NO_PROMPT = "without the prompt that its policy was sent"
    REPEATED = "asked before"


@dataclass(frozen=True, slots=True)
class Asking:
    """How steps are asked."""

    ask: Ask
    think: bool = False
    """Ask for a thought before the answer."""
    resolution: bool = False
    """Say how large the screenshot is (GuirlVG, §3.7: better left away in training and said when it counts)."""
    held_out: frozenset[TaskRef] = frozenset()
    """Instances whose steps are left out."""


@dataclass(slots=True)
class Asked:
    """What came of traces."""

    examples: list[Example] = field(default_factory=list[Example])
    left_out: Counter[Missing] = field(default_factory=Counter[Missing])
    """Steps, by why."""


def examples_of(traces: Iterable[tuple[Trace, BlobStore]], asking: Asking, images: Path) -> Asked:
    """Examples in the order of episodes and steps, none that asks the same twice; screenshots are copied to *images*.

    Raises TraceError for a blob that is missing or damaged, BadInput for a screenshot that is no image.
    """
    found = Asked()
    known = set[object]()
    for trace, blobs in traces:
        for made in _Episode(trace, blobs, asking, images).asked():
            if isinstance(made, Missing):
                found.left_out[made] += 1
            elif (made.messages, made.image) in known:
                found.left_out[Missing.REPEATED] += 1
            else:
                known.add((made.messages, made.image))
                found.examples.append(made)
    return found


@dataclass(frozen=True, slots=True)
class _Episode:
    trace: Trace
    blobs: BlobStore
    asking: Asking
    images: Path

    def asked(self) -> Iterator[Example | Missing]:
        """Of each step."""
        trace, steps = self.trace, self.trace.steps
        if trace.footer is None or trace.footer.outcome != "success":
            yield from (Missing.FAILED for _ in steps)
        elif trace.header.task in self.asking.held_out:
            yield from (Missing.HELD_OUT for _ in steps)
        else:
            decisions = self._decisions() if self.asking.ask == "step" else {}
            for intent, commit in steps:
                done = commit is not None and commit.result.ok
                yield self._example(intent, decisions.get(intent.step)) if done else Missing.NOT_DONE

    def _decisions(self) -> dict[int, Decision]:
        """By step; empty where the policy's prompts are not there."""
        read = trajectory(self.trace, self.blobs, texts=True)
        return {} if isinstance(read, StrEnum) else {one.step: one for one in read.decisions if one.messages}

    def _example(self, intent: Intent, decision: Decision | None) -> Example | Missing:
        header = self.trace.header
        name = f"{header.run_id}/{header.episode_id}/{intent.step}"
        if self.asking.ask != "step":
            return self._pointing(name, intent)
        if decision is None:
            return Missing.NO_PROMPT
        target = StepTarget(action=intent.action, language=_language(intent, decision))
        messages: tuple[tuple[Role, str], ...] = tuple(
            (ROLES.get(role, "user"), text) for role, text in decision.messages
        )
        return Example(name=name, messages=messages, target=target)

    def _pointing(self, name: str, intent: Intent) -> Example | Missing:
        seen, target = intent.seen, intent.target
        if seen.screenshot_blob is None or seen.viewport is None:
            return Missing.NO_SCREENSHOT  # and so no box either
        if target is None or intent.target_box is None:
            return Missing.NO_ELEMENT
        if self.asking.ask == "element" and not target.name.strip():
            return Missing.NO_NAME
        picture = self.blobs.read(seen.screenshot_blob)
        size = size_of(picture)
        across, down = size[0] / seen.viewport[0], size[1] / seen.viewport[1]
        x, y, wide, high = intent.target_box
        try:
            place = PointTarget(box=(x * across, y * down, (x + wide) * across, (y + high) * down), size=size)
        except ValidationError:
            return Missing.OUT_OF_SIGHT
        goal = self.trace.header.instruction
        what = goal if self.asking.ask == "goal" else f'the {target.role} "{target.name}"'
        messages: tuple[tuple[Role, str], ...] = (("user", _question(what, size, self.asking)),)
        return Example(name=name, messages=messages, target=place, image=self._kept(picture))

    def _kept(self, picture: bytes) -> Path:
        path = self.images / f"{hashlib.sha256(picture).hexdigest()[:24]}.png"
        if not path.exists():
            self.images.mkdir(parents=True, exist_ok=True)
            with replacing(path) as part:
                part.write_bytes(picture)
        return path.resolve()


def _language(intent: Intent, decision: Decision) -> Literal["program", "id"]:
    """The one in which the answer says what was done."""
    for name, language in LANGUAGES.items():
        try:
            if language.parse(decision.said).action == intent.action:
                return name
        except ParseError:
            continue
    return "program"


def _question(what: str, size: tuple[int, int], asking: Asking) -> str:
    shown = f"The screenshot resolution is {size[0]}x{size[1]}. " if asking.resolution else ""
    where = f"Where to click next: {what}" if asking.ask == "goal" else f"Where is {what}?"
    return f"{shown}{where} Answer with x and y in pixels.{THINK if asking.think else ''}"
