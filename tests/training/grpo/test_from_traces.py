"""Examples from steps of traces: targets, positions in the image, and excluded steps by reason."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.run.discover_traces import discover_traces
from envs.core.action_languages import LANGUAGES
from envs.core.actions import Action, Click, ClickAt, Stop, Type
from envs.core.errors import BadInput
from envs.core.grounding import Grounding
from envs.core.tasks import TaskRef
from models.local.declarations import declared_style
from models.prompting.thought_request import THOUGHT_REQUEST
from models.vision.coordinates import CoordinateSpace, ImageFrame, Point, Size
from models.vision.grounding import GroundingPrompt
from models.vision.profiles import profile_named
from tests.agent.boxes_grounder import FromBoxes, WatchedGrounder
from tests.agent.episode.test_prompts import OBSERVATION
from tests.agent.episodes import Play, png, write_run
from training.grounding.answering import AskedPoint, asked_point
from training.grpo.declarations import form_of
from training.grpo.examples import read_examples, write_examples
from training.grpo.frames import DECLARED_PROFILE
from training.grpo.from_traces import ExampleOptions, ExclusionReason, ExtractedExamples, extract_examples
from training.grpo.rewards import PointTarget, Rewarder, StepTarget, is_right, read_completion
from training.grpo.run import train_grpo
from training.grpo.settings import parse_settings
from training.loop.curriculum import held_out

BOX = (100.0, 60.0, 80.0, 30.0)
"""x, y, width, height of a page of 400 x 300 CSS pixels."""
SEED = 1_000_000
"""MiniWoB++ seeds from here on are for training."""


def questions(folder: Path, plays: list[Play], **asking: Any) -> ExtractedExamples:
    run = write_run(folder / "run", plays)
    options: dict[str, Any] = {"ask": "element", **asking}
    traces = [(one.read(), one.blobs) for one in discover_traces([run.path])]
    return extract_examples(traces, ExampleOptions(**options), folder / "images")


def test_an_element_is_where_its_box_is_in_the_image(tmp_path: Path) -> None:
    """The image has twice as many pixels as the page has CSS pixels."""
    result = questions(tmp_path, [Play(text="Save", picture=png(800, 600), box=BOX, actions=[Click(ref=1)])])
    (example,) = result.examples
    assert example.messages == (("user", 'Where is the button "Save"? Answer with x and y in pixels.'),)
    assert example.target == PointTarget(box=(200, 120, 360, 180), size=(800, 600))
    assert is_right(example.target, read_completion("280, 150"))
    assert not is_right(example.target, read_completion("140, 75")), "those are CSS pixels"
    assert example.picture == png(800, 600)
    write_examples(tmp_path / "train.jsonl", result.examples)
    assert read_examples(tmp_path / "train.jsonl") == (example,)


@pytest.mark.parametrize(
    ("asking", "text"),
    [
        ({"ask": "goal"}, "Where to click next: Save Answer with x and y in pixels."),
        (
            {"ask": "element", "coordinates": "thousand"},
            'Where is the button "Save"? Answer with x and y from 0 to 1000.',
        ),
        (
            {"ask": "element", "resolution": True},
            'The screenshot resolution is 800x600. Where is the button "Save"? Answer with x and y in pixels.',
        ),
        (
            {"ask": "element", "think": True},
            'Where is the button "Save"? Answer with x and y in pixels. Think first, between <think> and </think>; '
            "then answer between <answer> and </answer>.",
        ),
    ],
)
def test_prompts_of_each_kind(tmp_path: Path, asking: dict[str, Any], text: str) -> None:
    result = questions(tmp_path, [Play(text="Save", picture=png(800, 600), box=BOX, actions=[Click(ref=1)])], **asking)
    (example,) = result.examples
    assert example.messages == (("user", text),)
    asked = asked_point(example)
    goal = asking["ask"] == "goal"
    assert asked == AskedPoint(where_is=not goal, subject="Save" if goal else 'the button "Save"')
    assert asked_point(example.model_copy(update={"facts": None})) == asked, "examples that were made before"
    assert example.facts is not None and example.facts.template.startswith("miniwob/")


@pytest.mark.parametrize(
    ("think", "coordinates"),
    [(False, "pixels"), (True, "pixels"), (True, "resized"), (False, "thousand"), (False, "unit")],
)
@pytest.mark.parametrize("resolution", [False, True])
def test_a_grounder_is_asked_what_it_was_trained_on(
    tmp_path: Path, *, think: bool, coordinates: CoordinateSpace, resolution: bool
) -> None:
    """Examples of described controls, of named ones, and the prompts of a run have one form, which is declared."""
    profile = profile_named(DECLARED_PROFILE[coordinates])
    asking: dict[str, Any] = {"think": think, "coordinates": coordinates, "resolution": resolution}
    grounding = Grounding(field="ref", description="the big Save button", point=(140, 75), by="hit")
    play = Play(text="Save", picture=png(800, 600), box=BOX, actions=[Click(ref=1)], groundings=(grounding,))
    (described,) = questions(tmp_path / "d", [play], ask="description", **asking).examples
    (named,) = questions(tmp_path / "n", [play], **asking).examples
    form = form_of((described, named))
    assert form is not None and form == GroundingPrompt(think, resolution)
    model = FromBoxes({"the big Save button": lambda observation: Point(140, 75)}, profile.name)
    observation = replace(OBSERVATION, screenshot=png(800, 600), viewport=(400, 300))
    located = asyncio.run(
        WatchedGrounder(model, replace(form, profile=profile)).locate("the big Save button", observation)
    )
    assert model.requests[0].messages[0].text == described.messages[0][1]
    frame = ImageFrame(Size(400, 300), Size(800, 600), profile.sent_size(Size(800, 600)))
    across, down = frame.extent(profile.space)
    assert located.point == pytest.approx((140, 75), abs=0.5)
    assert is_right(described.target, read_completion(located.answer, (800 / across, 600 / down)))
    assert questions(tmp_path / "s", [play], ask="step").left_out == Counter([ExclusionReason.DESCRIBED])
    bare = replace(play, groundings=())
    assert questions(tmp_path / "b", [bare], ask="description").left_out == Counter([ExclusionReason.NOT_DESCRIBED])
    assert form_of(questions(tmp_path / "g", [play], ask="goal").examples) is None


@pytest.mark.parametrize(
    ("completion", "action", "language", "wrong"),
    [
        ('do(action="Type", argument="ada", element="2")', Type(ref=2, text="ada"), "program", "nothing"),
        ("```type [2] [ada] [0]```", Type(ref=2, text="ada"), "id", "```type [2] [bob] [0]```"),
    ],
)
def test_a_step_keeps_its_action_language(
    tmp_path: Path, completion: str, action: Type, language: str, wrong: str
) -> None:
    result = questions(tmp_path, [Play(text=completion, actions=[action])], ask="step")
    (example,) = result.examples
    assert example.target == StepTarget(action=action, language=language)  # pyright: ignore[reportArgumentType]
    assert example.messages == (("user", completion),), "what the policy was sent; this one was sent its own answer"
    assert is_right(example.target, read_completion(f"<think>{wrong}</think>{completion}"))
    assert not is_right(example.target, read_completion(wrong))


SHOT: dict[str, Any] = {"picture": png(800, 600), "box": BOX}
PLACE = PointTarget(box=(200, 120, 360, 180), size=(800, 600))
"""Of `BOX` in that screenshot; its centre is (280, 150)."""
CLICKED, TYPED = 'do(action="Click", element="1")', 'do(action="Type", argument="ada", element="1")'
PROGRAM_CLICK = 'To click, say where in the screenshot, in its pixels: do(action="Click At", x=X, y=Y)'
ID_CLICK = (
    "To click, say where in the screenshot, in its pixels: In summary, the next action I will perform is "
    "```click_at [X] [Y]```"
)


@pytest.mark.parametrize(
    ("completion", "action", "expected", "places", "line"),
    [
        pytest.param(CLICKED, Click(ref=1), ClickAt(x=280, y=150), (PLACE,), PROGRAM_CLICK, id="a click"),
        pytest.param(
            "```click [1]```", Click(ref=1), ClickAt(x=280, y=150), (PLACE,), ID_CLICK, id="a click in id style"
        ),
        pytest.param(
            'do(action="Right Click", element="1")',
            Click(ref=1, button="right"),
            ClickAt(x=280, y=150, button="right"),
            (PLACE,),
            PROGRAM_CLICK,
            id="another button",
        ),
        pytest.param(
            'do(action="Click At", x=120, y=70)',
            ClickAt(x=120, y=70),
            ClickAt(x=240, y=140),
            (PLACE,),
            PROGRAM_CLICK,
            id="a click by place, in CSS pixels",
        ),
        pytest.param(
            'do(action="Click At", x=10, y=10)',
            ClickAt(x=10, y=10),
            ClickAt(x=20, y=20),
            (),
            PROGRAM_CLICK,
            id="a click by place beside the element",
        ),
        pytest.param(TYPED, Type(ref=1, text="ada"), Type(ref=1, text="ada"), (), PROGRAM_CLICK, id="typing"),
        pytest.param("exit()", Stop(), Stop(), (), PROGRAM_CLICK, id="the end"),
    ],
)
def test_a_step_with_a_screenshot_shows_it_and_is_judged_by_its_place(
    *, tmp_path: Path, completion: str, action: Action, expected: Action, places: tuple[PointTarget, ...], line: str
) -> None:
    result = questions(tmp_path, [Play(text=completion, actions=[action], **SHOT)], ask="step")
    (example,) = result.examples
    spoken = "id" if "```" in completion else "program"
    assert example.target == StepTarget(action=expected, language=spoken, places=places)
    assert example.messages == (("user", f"{completion}\n{line}"),)
    assert example.picture == png(800, 600)
    assert is_right(example.target, read_completion(LANGUAGES[spoken].show(expected)))
    write_examples(tmp_path / "train.jsonl", result.examples)
    assert read_examples(tmp_path / "train.jsonl") == (example,)


@pytest.mark.parametrize(
    ("recipe", "reward", "near", "far"),
    [
        # (280, 150) is the centre; SSL: 1 + 0.2·1, and outside of the second and third deviation 1 + 0.2·0.5
        pytest.param("ssl", {}, 1.2, 1.1, id="SSL's tiers"),
        # LPO: 1 − 60/800·1000/1000 = 0.925
        pytest.param("lpo", {"windows": False}, 1.0, 0.925, id="LPO's distance"),
        # AdaGUI: both are right, level 1, σ = 0.32; 60 of 160 across: exp(−0.375²/(2·0.32²)); too far on the screen: 0
        pytest.param("adagui", {"thought": "none", "threshold": 0.1}, 1.0, 0.5032, id="AdaGUI-R1's click"),
    ],
)
def test_rewards_of_places_tell_clicks_apart_that_are_right(
    *, tmp_path: Path, recipe: str, reward: dict[str, Any], near: float, far: float
) -> None:
    """Of a step that was clicked by its element: without a place both would get the same."""
    (example,) = questions(tmp_path, [Play(text=CLICKED, actions=[Click(ref=1)], **SHOT)], ask="step").examples
    judged = parse_settings({"recipe": recipe, "reward": reward}, "here").reward
    completion = [f'do(action="Click At", x={x}, y=150)' for x in (280, 340)]
    scores = Rewarder(judged, len).of_group(example.target, completion, example.picture)
    assert [score.total for score in scores] == pytest.approx([near, far], abs=1e-4)


@pytest.mark.parametrize(
    ("asking", "more"),
    [
        ({}, PROGRAM_CLICK),
        ({"resolution": True}, f"The screenshot resolution is 800x600. {PROGRAM_CLICK}"),
        ({"resolution": True, "coordinates": "resized"}, f"The screenshot resolution is 812x588. {PROGRAM_CLICK}"),
        ({"think": True}, f"{PROGRAM_CLICK}\n{THOUGHT_REQUEST}"),
        ({"coordinates": "resized"}, PROGRAM_CLICK),
        ({"coordinates": "thousand"}, PROGRAM_CLICK.replace("in its pixels", "from 0 to 1000")),
        ({"think": True, "pictures": False}, THOUGHT_REQUEST),
    ],
    ids=str,
)
def test_options_hold_for_steps_as_for_points(tmp_path: Path, asking: dict[str, Any], more: str) -> None:
    result = questions(tmp_path, [Play(text=CLICKED, actions=[Click(ref=1)], **SHOT)], ask="step", **asking)
    assert result.examples[0].messages == (("user", f"{CLICKED}\n{more}"),)


@pytest.mark.parametrize(
    ("asking", "lines"),
    [({"pictures": False}, ()), ({"pictures": False, "think": True}, ()), ({}, (PROGRAM_CLICK,))],
    ids=str,
)
def test_a_recorded_prompt_that_asks_for_a_thought_asks_once_and_last(
    tmp_path: Path, asking: dict[str, Any], lines: tuple[str, ...]
) -> None:
    play = Play(text=f"{CLICKED}\n{THOUGHT_REQUEST}", actions=[Click(ref=1)], **SHOT)
    (example,) = questions(tmp_path, [play], ask="step", **asking).examples
    assert example.messages == (("user", "\n".join((CLICKED, *lines, THOUGHT_REQUEST))),)


@pytest.mark.parametrize(
    ("play", "asking"),
    [
        (Play(text=CLICKED, actions=[Click(ref=1)]), {}),
        (Play(text=CLICKED, actions=[Click(ref=1)], picture=png(800, 600), box=BOX), {"pictures": False}),
    ],
    ids=["there are none", "not wanted"],
)
def test_a_resolution_that_no_screenshot_has_is_refused(tmp_path: Path, play: Play, asking: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="--resolution states the size of screenshots, and no screenshot is shown"):
        questions(tmp_path, [play], ask="step", resolution=True, **asking)


def test_steps_without_screenshots_become_text_examples(tmp_path: Path) -> None:
    result = questions(tmp_path, [Play(text=CLICKED, actions=[Click(ref=1)], **SHOT)], ask="step", pictures=False)
    (example,) = result.examples
    assert (example.image, example.target) == (None, StepTarget(action=Click(ref=1)))
    assert example.messages == (("user", CLICKED),)


def test_equal_names_of_different_runs_are_made_distinct(tmp_path: Path) -> None:
    """The runs of a training's phases have one run id."""
    runs = [
        write_run(tmp_path / f"phase-{number}" / "run", [Play(text=f"{CLICKED} # {number}", actions=[Click(ref=1)])])
        for number in (1, 2)
    ]
    traces = [(one.read(), one.blobs) for run in runs for one in discover_traces([run.path])]
    result = extract_examples(traces, ExampleOptions(ask="step", pictures=False), tmp_path / "images")
    first, second = (one.name for one in result.examples)
    assert second == f"{first}~2"


def test_of_steps_with_and_without_screenshots_the_latter_are_left_out(tmp_path: Path) -> None:
    """A model is shown a picture with every prompt or with none."""
    plays = [
        Play(seed=1, text=CLICKED, actions=[Click(ref=1)], **SHOT),
        Play(seed=2, text=f"{CLICKED} # 2", actions=[Click(ref=1)]),
        Play(seed=3, text=f"{CLICKED} # 3", actions=[Click(ref=1)], picture=png(800, 600), box=(500, 20, 10, 10)),
        Play(seed=4, text=f"{CLICKED} # 4", actions=[Click(ref=1)], picture=png(800, 600)),
    ]
    result = questions(tmp_path, plays, ask="step")
    assert [one.name for one in result.examples] == ["run/login-user-1-a1/1"]
    assert result.left_out == Counter({ExclusionReason.NO_SCREENSHOT: 1, ExclusionReason.OUT_OF_SIGHT: 2})


def test_excluded_steps_are_counted(tmp_path: Path) -> None:
    seen: dict[str, Any] = {"picture": png(800, 600), "box": BOX}
    plays = [
        Play(seed=1, text="a", actions=[Click(ref=1), Click(ref=1), Stop()], **seen),
        Play(seed=2, text="b", actions=[Click(ref=1)], outcome="failure", **seen),
        Play(seed=3, text="c", actions=[Click(ref=1)], outcome=None, **seen),
        Play(seed=4, text="d", actions=[Click(ref=1)], box=BOX),
        Play(seed=5, text=" ", actions=[Click(ref=1)], **seen),
        Play(seed=6, text="f", actions=[Click(ref=1)], picture=png(800, 600), box=(500, 20, 10, 10)),
        Play(seed=7, text="g", actions=[Click(ref=1)], picture=png(800, 600), box=(50, 20, 0, 0)),
        Play(seed=8, text="h", actions=[Click(ref=1)], **seen),
    ]
    held = frozenset({TaskRef(suite="miniwob", name="login-user", seed=8)})
    result = questions(tmp_path, plays, held_out=held)
    assert [one.name for one in result.examples] == ["run/login-user-1-a1/1"]
    assert result.left_out == Counter(
        {
            ExclusionReason.REPEATED: 1,
            ExclusionReason.NO_ELEMENT: 1,
            ExclusionReason.FAILED: 2,
            ExclusionReason.NO_SCREENSHOT: 1,
            ExclusionReason.NO_NAME: 1,
            ExclusionReason.OUT_OF_SIGHT: 2,
            ExclusionReason.HELD_OUT: 1,
        }
    )


def test_instances_that_policies_are_measured_on_are_known() -> None:
    tasks = [TaskRef(suite="miniwob", name="login-user", seed=seed) for seed in (3, SEED)]
    assert set(asyncio.run(held_out(tasks))) == {tasks[0]}


def test_a_policy_trained_on_steps_declares_their_prompt_style(tmp_path: Path) -> None:
    """The embedded model uses compact prompts, and so does the trained policy."""
    completion = 'do(action="Click", element="1")'
    plays = [Play(seed=seed, text=f"Goal {seed}", actions=[Click(ref=1)]) for seed in range(4)]
    result = questions(tmp_path, plays, ask="step").examples
    assert {type(one.target) for one in result} == {StepTarget}
    compute = {"max_tokens": 64, "cpu": True, "threads": 1}
    options = {"steps": 1, "answer_tokens": 8, "compute": compute, "optimization": {"batch_rows": 16}}
    lines: list[str] = []
    config = train_grpo(result, "embedded", tmp_path / "compact", parse_settings(options, "here"), log=lines.append)
    assert [line for line in lines if "none of the 4 steps has coordinates, so reward 'ssl' tells right from" in line]
    assert declared_style(config.model) == "compact"
    full = [one.model_copy(update={"messages": (("system", completion), *one.messages)}) for one in result]
    config = train_grpo(full, "embedded", tmp_path / "full", parse_settings(options, "here"), log=lambda _: None)
    assert declared_style(config.model) == "full"
