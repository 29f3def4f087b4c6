"""Extracts examples for GRPO from the successful steps of traces.

    element       a screenshot and an element's role and name; the answer is a point in the element (visual grounding)
    description   the same with the words of a policy that had a grounder
    goal          a screenshot and the instruction; the answer is a point in the element that was acted on
    step          the policy's prompt; the answer is the policy's action

If steps have screenshots, `step` shows them and asks for click coordinates. The element's box measures the proximity of
a click, which position-based rewards need. A click on an element becomes a click at a point of the screenshot, in the
action language of the step. Other actions stay as they are; their answers are correct or wrong.

Only executed steps of successful episodes become examples. Excluded steps are counted by reason.
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
from envs.core.actions import Action, Click, ClickAt
from envs.core.atomic_write import replacing
from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from envs.core.trace import Intent
from envs.core.trace_store import BlobStore, Trace
from models.prompting.prompt_text import quoted
from models.prompting.thought_request import asks_for_thought, with_thought_request, without_thought_request
from models.vision.coordinates import CoordinateSpace, Size
from models.vision.grounding import UNITS, AnswerShape, GroundingPrompt, resolution_sentence
from models.vision.profiles import profile_named
from training.data.provenance import Provenance
from training.data.trajectories import Decision, trajectory
from training.grpo.examples import Example, Facts, Role, image_size
from training.grpo.frames import DECLARED_PROFILE
from training.grpo.rewards import PointTarget, StepTarget
from training.grpo.rewards.targets import points_of, scaled_action

Ask = Literal["element", "description", "goal", "step"]
ROLES: Final[Mapping[str, Role]] = {"system": "system", "assistant": "assistant"}


class ExclusionReason(StrEnum):
    """Why a step or an episode is not used as an example."""

    FAILED = "of an episode that did not succeed"
    NOT_DONE = "not carried out"
    HELD_OUT = "of an instance that is held out for evaluation"
    NO_ELEMENT = "acts on no element"
    NO_SCREENSHOT = "without a screenshot (`mira run --screenshots steps`)"
    NOT_DESCRIBED = "of an element that no policy described (`mira run --grounder`)"
    DESCRIBED = "whose prompt asks to describe elements in words"
    NO_NAME = "of an element without a name"
    OUT_OF_SIGHT = "of an element outside the screenshot"
    NO_PROMPT = "without the prompt that its policy was sent"
    REPEATED = "asked before"


@dataclass(frozen=True, slots=True)
class ExampleOptions:
    """Options for converting steps to examples."""

    ask: Ask
    think: bool = False
    """Ask for a thought before the answer (`--think`)."""
    resolution: bool = False
    """State the size of the screenshot (GuirlVG, §3.7: better omitted in training and stated in evaluation)."""
    held_out: frozenset[TaskRef] = frozenset()
    """Instances whose steps are excluded."""
    coordinates: CoordinateSpace = CoordinateSpace.PIXELS
    """Units of the coordinates that prompts ask for."""
    pictures: bool = True
    """For `step`: show the screenshots and ask for click coordinates, if any step has a screenshot."""
    shape: AnswerShape = AnswerShape.POINT
    """What questions for a place ask for."""


@dataclass(slots=True)
class ExtractedExamples:
    """Examples extracted from traces, and the counts of excluded steps."""

    examples: list[Example] = field(default_factory=list[Example])
    left_out: Counter[ExclusionReason] = field(default_factory=Counter[ExclusionReason])
    """Excluded steps by reason."""
    provenance: Provenance = field(default_factory=Provenance)


def extract_examples(
    traces: Iterable[tuple[Trace, BlobStore]], options: ExampleOptions, images: Path
) -> ExtractedExamples:
    """Extracts distinct examples in the order of episodes and steps. Screenshots are copied to *images*.

    Raises TraceError for a trace that was edited after it was written and for a missing or damaged blob, BadInput for
    an invalid screenshot, and if the resolution is requested without screenshots.
    """
    result = ExtractedExamples()
    known, names = set[object](), Counter[str]()
    read = list(traces)
    for trace, _ in read:
        result.provenance.add(trace)
    shown = options.ask != "step" or (options.pictures and _has_screenshots(read))
    if options.resolution and not shown:
        raise BadInput("--resolution states the size of screenshots, and no screenshot is shown")
    for trace, blobs in read:
        for item in _Episode(trace, blobs, options, images, shown).examples():
            if isinstance(item, ExclusionReason):
                result.left_out[item] += 1
            elif (item.messages, item.image) in known:
                result.left_out[ExclusionReason.REPEATED] += 1
            else:
                known.add((item.messages, item.image))
                names[item.name] += 1  # runs of different phases of training have one id
                again = f"~{names[item.name]}" if names[item.name] > 1 else ""
                result.examples.append(item.model_copy(update={"name": item.name + again}))
    return result


def _has_screenshots(traces: Sequence[tuple[Trace, BlobStore]]) -> bool:
    return any(intent.seen.screenshot_blob is not None for trace, _ in traces for intent, _ in trace.steps)


@dataclass(frozen=True, slots=True)
class _Screenshot:
    """A screenshot and its pixels per CSS pixel, horizontal and vertical."""

    picture: bytes
    size: tuple[int, int]
    scale: tuple[float, float]

    def place(self, box: tuple[float, float, float, float]) -> PointTarget | None:
        """Target for an element's *box*: x, y, width and height in CSS pixels. None if it is outside the screenshot."""
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
    options: ExampleOptions
    images: Path
    shown: bool
    """Whether prompts show screenshots."""

    def examples(self) -> Iterator[Example | ExclusionReason]:
        """Yields an example or an exclusion reason for each step."""
        trace, steps = self.trace, self.trace.steps
        if trace.footer is None or trace.footer.outcome != "success":
            yield from (ExclusionReason.FAILED for _ in steps)
        elif trace.header.task in self.options.held_out:
            yield from (ExclusionReason.HELD_OUT for _ in steps)
        else:
            decisions = self._decisions() if self.options.ask == "step" else {}
            for intent, commit in steps:
                done = commit is not None and commit.result.ok
                yield self._example(intent, decisions.get(intent.step)) if done else ExclusionReason.NOT_DONE

    def _decisions(self) -> dict[int, Decision]:
        """Decisions by step; empty if the trace has no prompts of the policy."""
        read = trajectory(self.trace, self.blobs, texts=True)
        return (
            {}
            if isinstance(read, StrEnum)
            else {decision.step: decision for decision in read.decisions if decision.messages}
        )

    def _example(self, intent: Intent, decision: Decision | None) -> Example | ExclusionReason:
        header = self.trace.header
        name = f"{header.run_id}/{header.episode_id}/{intent.step}"
        if self.options.ask != "step":
            return self._grounding_example(name, intent)
        if intent.groundings:
            return ExclusionReason.DESCRIBED
        if decision is None:
            return ExclusionReason.NO_PROMPT
        return self._screenshot_step(name, intent, decision) if self.shown else self._text_step(name, intent, decision)

    def _text_step(self, name: str, intent: Intent, decision: Decision) -> Example:
        target = StepTarget(action=intent.action, language=_language(intent, decision))
        return Example(name=name, messages=_prompt(decision, think=self.options.think), target=target)

    def _screenshot_step(self, name: str, intent: Intent, decision: Decision) -> Example | ExclusionReason:
        shot = self._shot(intent)
        if shot is None:
            return ExclusionReason.NO_SCREENSHOT
        answer_language = _language(intent, decision)
        action, places = _to_coordinates(intent, shot)
        if action is None:
            return ExclusionReason.OUT_OF_SIGHT
        target = StepTarget(action=action, language=answer_language, places=places)
        size = self._stated_size(shot) if self.options.resolution else None
        unit = UNITS[self.options.coordinates].replace("in pixels", "in its pixels")
        click = f"To click, say where in the screenshot, {unit}: {_click_format(answer_language)}"
        messages = _prompt(decision, think=self.options.think, click=click, size=size)
        return Example(name=name, messages=messages, target=target, image=self._saved(shot.picture))

    def _stated_size(self, shot: _Screenshot) -> Size:
        """The size of the image whose coordinates the prompt asks for."""
        return profile_named(DECLARED_PROFILE[self.options.coordinates]).sent_size(Size(*shot.size))

    def _shot(self, intent: Intent) -> _Screenshot | None:
        seen = intent.seen
        if seen.screenshot_blob is None or seen.viewport is None:
            return None
        picture = self.blobs.read(seen.screenshot_blob)
        size = image_size(picture)
        return _Screenshot(picture, size, (size[0] / seen.viewport[0], size[1] / seen.viewport[1]))

    def _grounding_example(self, name: str, intent: Intent) -> Example | ExclusionReason:
        shot, target = self._shot(intent), intent.target
        if shot is None:
            return ExclusionReason.NO_SCREENSHOT  # and therefore no box
        if target is None or intent.target_box is None:
            return ExclusionReason.NO_ELEMENT
        if self.options.ask == "element" and not target.name.strip():
            return ExclusionReason.NO_NAME
        subject = f"the {target.role} {quoted(target.name)}"
        if self.options.ask == "description":
            subject = next((each.description for each in intent.groundings if each.field == "ref"), "")
        if not subject:
            return ExclusionReason.NOT_DESCRIBED
        place = shot.place(intent.target_box)
        if place is None:
            return ExclusionReason.OUT_OF_SIGHT
        profile = profile_named(DECLARED_PROFILE[self.options.coordinates])
        form = GroundingPrompt(self.options.think, self.options.resolution, self.options.shape, profile)
        if self.options.ask == "goal":
            question = form.where_to_click(self.trace.header.instruction, self._stated_size(shot))
        else:
            question = form.where_is(subject, self._stated_size(shot))
        messages: tuple[tuple[Role, str], ...] = (("user", question.text),)
        task = self.trace.header.task
        goal = self.options.ask == "goal"
        facts = Facts(
            subject=self.trace.header.instruction if goal else subject,
            question="where_to_click" if goal else "where_is",
            platform="web",
            source=task.suite,
            template=f"{task.suite}/{task.name}",
        )
        return Example(name=name, messages=messages, target=place, image=self._saved(shot.picture), facts=facts)

    def _saved(self, picture: bytes) -> Path:
        path = self.images / f"{hashlib.sha256(picture).hexdigest()[:24]}.png"
        if not path.exists():
            self.images.mkdir(parents=True, exist_ok=True)
            with replacing(path) as part:
                part.write_bytes(picture)
        return path.resolve()


def _to_coordinates(intent: Intent, shot: _Screenshot) -> tuple[Action | None, tuple[PointTarget, ...]]:
    """Returns the step's action in screenshot pixels and the targets of its points; no action for a click on an element
    outside the screenshot."""
    action, box = intent.action, intent.target_box
    if isinstance(action, Click):
        place = None if box is None else shot.place(box)
        if place is None:
            return None, ()
        centre = place.region.centre
        at = (round(centre.x), round(centre.y))
        return ClickAt(x=at[0], y=at[1], button=action.button, count=action.count), (place,)
    scaled = scaled_action(action, shot.scale)
    place = None if box is None else shot.place(box)
    points = points_of(scaled)
    judged = place is not None and len(points) == 1 and place.region.holds(points[0])
    return scaled, (place,) if judged and place is not None else ()


def _prompt(
    decision: Decision, *, think: bool, click: str = "", size: Size | None = None
) -> tuple[tuple[Role, str], ...]:
    """Returns the policy's prompt with additional lines of instructions, if any. *think*: asks for a thought, as the
    prompt itself may do; *click*: how to click by coordinates, if these are asked for; *size*: the screenshot's, if it
    is stated."""
    messages: list[tuple[Role, str]] = [(ROLES.get(role, "user"), text) for role, text in decision.messages]
    added = ("" if size is None else resolution_sentence(size).text, click)
    role, text = messages[-1]
    asked = think or asks_for_thought(text)
    line = " ".join(filter(None, added))
    if line:
        text = f"{without_thought_request(text)}\n{line}"
    return (*messages[:-1], (role, with_thought_request(text) if asked else text))


def _click_format(spoken: Literal["program", "id"]) -> str:
    """Formats a click by coordinates, with letters for the numbers, which small models would repeat."""
    return language(spoken).show(ClickAt(x=10, y=20)).replace("10", "X").replace("20", "Y")


def _language(intent: Intent, decision: Decision) -> Literal["program", "id"]:
    """Returns the action language in which the completion parses to the executed action. A model that sees may name
    points in coordinates of its own."""
    for name, spoken in LANGUAGES.items():
        try:
            action = spoken.parse(decision.completion).action
            if action == intent.action or (type(action) is type(intent.action) and points_of(action)):
                return name
        except ParseError:
            continue
    return "program"
