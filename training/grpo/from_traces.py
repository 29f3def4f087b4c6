"""Examples from traces: what was done right on a page, asked again of one answer.

    element   a screenshot and an element's role and name; the answer is a point in it (visual grounding)
    goal      a screenshot and the instruction; the answer is a point in what was acted on next
    step      the prompt that the policy was sent; the answer is the action that it took

Where steps have screenshots, `step` shows them and asks clicks by place: the element's box says how near a click is,
which the rewards of places need. An element that was clicked becomes a point in the screenshot, said in the language of
the step. Other actions are asked as they were taken, and are right or wrong.

Only steps of successful episodes that were carried out. Whatever is left out is counted.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from envs.core.action_languages import LANGUAGES, ParseError, language
from envs.core.actions import Action, Click, ClickAt, DragAt, ScrollAt
from envs.core.atomic_write import replacing
from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from envs.core.trace import Intent
from envs.core.trace_store import BlobStore, Trace
from models.prompting.prompt_text import folded, quoted
from training.data.provenance import Provenance
from training.data.trajectories import Decision, trajectory
from training.grpo.examples import Example, Role, image_size
from training.grpo.rewards import PointTarget, StepTarget
from training.grpo.rewards.targets import points_of

Ask = Literal["element", "goal", "step"]
ROLES: Final[Mapping[str, Role]] = {"system": "system", "assistant": "assistant"}
THINK: Final = " Think first, between <think> and </think>; then answer between <answer> and </answer>."


class ExclusionReason(StrEnum):
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
class ExampleOptions:
    """How steps are asked."""

    ask: Ask
    think: bool = False
    """Ask for a thought before the answer."""
    resolution: bool = False
    """Say how large the screenshot is (GuirlVG, §3.7: better left away in training and said when it counts)."""
    held_out: frozenset[TaskRef] = frozenset()
    """Instances whose steps are left out."""
    pictures: bool = True
    """Of `step`: show the screenshots and ask clicks by place, where any step has a screenshot."""


@dataclass(slots=True)
class ExtractedExamples:
    """What came of traces."""

    examples: list[Example] = field(default_factory=list[Example])
    left_out: Counter[ExclusionReason] = field(default_factory=Counter[ExclusionReason])
    """Steps, by why."""
    provenance: Provenance = field(default_factory=Provenance)


def extract_examples(
    traces: Iterable[tuple[Trace, BlobStore]], asking: ExampleOptions, images: Path
) -> ExtractedExamples:
    """Examples in the order of episodes and steps, none that asks the same twice; screenshots are copied to *images*.

    Raises TraceError for a trace that was edited after it was written and for a blob that is missing or damaged,
    BadInput for a screenshot that is no image, and for a resolution that no screenshot has.
    """
    found = ExtractedExamples()
    known = set[object]()
    read = list(traces)
    for trace, _ in read:
        found.provenance.add(trace)
    shown = asking.ask != "step" or (asking.pictures and _has_pictures(read))
    if asking.resolution and not shown:
        raise BadInput("--resolution says how large a screenshot is, and none is shown")
    for trace, blobs in read:
        for made in _Episode(trace, blobs, asking, images, shown).asked():
            if isinstance(made, ExclusionReason):
                found.left_out[made] += 1
            elif (made.messages, made.image) in known:
                found.left_out[ExclusionReason.REPEATED] += 1
            else:
                known.add((made.messages, made.image))
                found.examples.append(made)
    return found


def _has_pictures(traces: Sequence[tuple[Trace, BlobStore]]) -> bool:
    return any(intent.seen.screenshot_blob is not None for trace, _ in traces for intent, _ in trace.steps)


@dataclass(frozen=True, slots=True)
class _Shot:
    """A screenshot and how many of its pixels a CSS pixel has, across and down."""

    picture: bytes
    size: tuple[int, int]
    scale: tuple[float, float]

    def place(self, box: tuple[float, float, float, float]) -> PointTarget | None:
        """Of an element's *box*: x, y, width and height in CSS pixels. None where the screenshot does not show it."""
        x, y, wide, high = box
        across, down = self.scale
        try:
            return PointTarget(box=(x * across, y * down, (x + wide) * across, (y + high) * down), size=self.size)
        except ValidationError:
            return None


@dataclass(frozen=True, slots=True)
class _Episode:
    trace: Trace
    blobs: BlobStore
    asking: ExampleOptions
    images: Path
    shown: bool
    """Screenshots are."""

    def asked(self) -> Iterator[Example | ExclusionReason]:
        """Of each step."""
        trace, steps = self.trace, self.trace.steps
        if trace.footer is None or trace.footer.outcome != "success":
            yield from (ExclusionReason.FAILED for _ in steps)
        elif trace.header.task in self.asking.held_out:
            yield from (ExclusionReason.HELD_OUT for _ in steps)
        else:
            decisions = self._decisions() if self.asking.ask == "step" else {}
            for intent, commit in steps:
                done = commit is not None and commit.result.ok
                yield self._example(intent, decisions.get(intent.step)) if done else ExclusionReason.NOT_DONE

    def _decisions(self) -> dict[int, Decision]:
        """By step; empty where the policy's prompts are not there."""
        read = trajectory(self.trace, self.blobs, texts=True)
        return {} if isinstance(read, StrEnum) else {one.step: one for one in read.decisions if one.messages}

    def _example(self, intent: Intent, decision: Decision | None) -> Example | ExclusionReason:
        header = self.trace.header
        name = f"{header.run_id}/{header.episode_id}/{intent.step}"
        if self.asking.ask != "step":
            return self._pointing(name, intent)
        if decision is None:
            return ExclusionReason.NO_PROMPT
        return self._seen_step(name, intent, decision) if self.shown else self._told_step(name, intent, decision)

    def _told_step(self, name: str, intent: Intent, decision: Decision) -> Example:
        target = StepTarget(action=intent.action, language=_language(intent, decision))
        return Example(name=name, messages=_prompt(decision, think=self.asking.think), target=target)

    def _seen_step(self, name: str, intent: Intent, decision: Decision) -> Example | ExclusionReason:
        shot = self._shot(intent)
        if shot is None:
            return ExclusionReason.NO_SCREENSHOT
        spoken = _language(intent, decision)
        action, places = _placed(intent, shot)
        if action is None:
            return ExclusionReason.OUT_OF_SIGHT
        target = StepTarget(action=action, language=spoken, places=places)
        size = shot.size if self.asking.resolution else None
        messages = _prompt(decision, think=self.asking.think, example=_click_in(spoken), size=size)
        return Example(name=name, messages=messages, target=target, image=self._kept(shot.picture))

    def _shot(self, intent: Intent) -> _Shot | None:
        seen = intent.seen
        if seen.screenshot_blob is None or seen.viewport is None:
            return None
        picture = self.blobs.read(seen.screenshot_blob)
        size = image_size(picture)
        return _Shot(picture, size, (size[0] / seen.viewport[0], size[1] / seen.viewport[1]))

    def _pointing(self, name: str, intent: Intent) -> Example | ExclusionReason:
        shot, target = self._shot(intent), intent.target
        if shot is None:
            return ExclusionReason.NO_SCREENSHOT  # and so no box either
        if target is None or intent.target_box is None:
            return ExclusionReason.NO_ELEMENT
        if self.asking.ask == "element" and not target.name.strip():
            return ExclusionReason.NO_NAME
        place = shot.place(intent.target_box)
        if place is None:
            return ExclusionReason.OUT_OF_SIGHT
        goal = self.trace.header.instruction
        what = folded(goal) if self.asking.ask == "goal" else f"the {target.role} {quoted(target.name)}"
        messages: tuple[tuple[Role, str], ...] = (("user", _question(what, shot.size, self.asking)),)
        return Example(name=name, messages=messages, target=place, image=self._kept(shot.picture))

    def _kept(self, picture: bytes) -> Path:
        path = self.images / f"{hashlib.sha256(picture).hexdigest()[:24]}.png"
        if not path.exists():
            self.images.mkdir(parents=True, exist_ok=True)
            with replacing(path) as part:
                part.write_bytes(picture)
        return path.resolve()


def _placed(intent: Intent, shot: _Shot) -> tuple[Action | None, tuple[PointTarget, ...]]:
    """The step's action, in pixels of the screenshot, and the places that judge where it points. None for a click on an
    element that the screenshot does not show."""
    action, box = intent.action, intent.target_box
    if isinstance(action, Click):
        place = None if box is None else shot.place(box)
        if place is None:
            return None, ()
        centre = place.region.centre
        at = (round(centre.x), round(centre.y))
        return ClickAt(x=at[0], y=at[1], button=action.button, count=action.count), (place,)
    scaled = _scaled(action, shot.scale)
    place = None if box is None else shot.place(box)
    points = points_of(scaled)
    judged = place is not None and len(points) == 1 and place.region.holds(points[0])
    return scaled, (place,) if judged and place is not None else ()


def _scaled(action: Action, scale: tuple[float, float]) -> Action:
    """*action* with its points in pixels of the screenshot."""
    across, down = scale
    match action:
        case ClickAt() | ScrollAt():
            return action.model_copy(update={"x": action.x * across, "y": action.y * down})
        case DragAt():
            start = {"x": action.x * across, "y": action.y * down}
            return action.model_copy(update={**start, "to_x": action.to_x * across, "to_y": action.to_y * down})
        case _:
            return action


def _prompt(
    decision: Decision, *, think: bool, example: str = "", size: tuple[int, int] | None = None
) -> tuple[tuple[Role, str], ...]:
    """What the policy was sent, and a line more where there is more to say. *example*: how a click is said by place,
    where it is asked that way; *size*: the screenshot's, where that is told."""
    messages: list[tuple[Role, str]] = [(ROLES.get(role, "user"), text) for role, text in decision.messages]
    added = (
        f"The screenshot resolution is {size[0]}x{size[1]}." if size else "",
        f"To click, say where in the screenshot, in its pixels: {example}" if example else "",
        THINK.strip() if think else "",
    )
    role, text = messages[-1]
    line = " ".join(filter(None, added))
    return (*messages[:-1], (role, f"{text}\n{line}" if line else text))


def _click_in(spoken: Literal["program", "id"]) -> str:
    """How a click is said by place, without numbers, which small models would repeat."""
    return language(spoken).show(ClickAt(x=10, y=20)).replace("10", "X").replace("20", "Y")


def _language(intent: Intent, decision: Decision) -> Literal["program", "id"]:
    """The one in which the answer says what was done."""
    for name, spoken in LANGUAGES.items():
        try:
            if spoken.parse(decision.completion).action == intent.action:
                return name
        except ParseError:
            continue
    return "program"


def _question(what: str, size: tuple[int, int], asking: ExampleOptions) -> str:
    shown = f"The screenshot resolution is {size[0]}x{size[1]}. " if asking.resolution else ""
    where = f"Where to click next: {what}" if asking.ask == "goal" else f"Where is {what}?"
    return f"{shown}{where} Answer with x and y in pixels.{THINK if asking.think else ''}"
