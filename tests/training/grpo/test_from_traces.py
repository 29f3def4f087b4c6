"""Steps of traces asked again: what is right, where it is in the image, what is left out and why."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent.gathering import gather
from envs.actions import Click, Stop, Type
from envs.tasks import TaskRef
from models.prompt_style import declared_style
from tests.agent.episodes import Play, png, write_run
from training.curriculum import held_out
from training.grpo.examples import read_examples, write_examples
from training.grpo.from_traces import Asked, Asking, Missing, examples_of
from training.grpo.running import improve
from training.grpo.settings import parse_settings
from training.rewards import PointTarget, StepTarget, is_right, read_completion

BOX = (100.0, 60.0, 80.0, 30.0)
"""x, y, width, height of a page of 400 x 300 CSS pixels."""
SEED = 1_000_000
"""MiniWoB++ seeds from here on are for training."""


def asked(folder: Path, plays: list[Play], **asking: Any) -> Asked:
    run = write_run(folder / "run", plays)
    given: dict[str, Any] = {"ask": "element", **asking}
    traces = [(one.read(), one.blobs) for one in gather([run.path])]
    return examples_of(traces, Asking(**given), folder / "images")


def test_an_element_is_where_its_box_is_in_the_image(tmp_path: Path) -> None:
    """The image has twice as many pixels as the page has CSS pixels."""
    found = asked(tmp_path, [Play(text="Save", picture=png(800, 600), box=BOX, actions=[Click(ref=1)])])
    (example,) = found.examples
    assert example.messages == (("user", 'Where is the button "Save"? Answer with x and y in pixels.'),)
    assert example.target == PointTarget(box=(200, 120, 360, 180), size=(800, 600))
    assert is_right(example.target, read_completion("280, 150"))
    assert not is_right(example.target, read_completion("140, 75")), "those are CSS pixels"
    assert example.picture == png(800, 600)
    write_examples(tmp_path / "train.jsonl", found.examples)
    assert read_examples(tmp_path / "train.jsonl") == (example,)


@pytest.mark.parametrize(
    ("asking", "text"),
    [
        ({"ask": "goal"}, "Where to click next: Save Answer with x and y in pixels."),
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
def test_how_it_is_asked(tmp_path: Path, asking: dict[str, Any], text: str) -> None:
    found = asked(tmp_path, [Play(text="Save", picture=png(800, 600), box=BOX, actions=[Click(ref=1)])], **asking)
    assert found.examples[0].messages == (("user", text),)


@pytest.mark.parametrize(
    ("said", "action", "language", "wrong"),
    [
        ('do(action="Type", argument="ada", element="2")', Type(ref=2, text="ada"), "program", "nothing"),
        ("```type [2] [ada] [0]```", Type(ref=2, text="ada"), "id", "```type [2] [bob] [0]```"),
    ],
)
def test_a_step_is_asked_in_the_language_it_was_taken_in(
    tmp_path: Path, said: str, action: Type, language: str, wrong: str
) -> None:
    found = asked(tmp_path, [Play(text=said, actions=[action])], ask="step")
    (example,) = found.examples
    assert example.target == StepTarget(action=action, language=language)  # pyright: ignore[reportArgumentType]
    assert example.messages == (("user", said),), "what the policy was sent; this one was sent its own answer"
    assert is_right(example.target, read_completion(f"<think>{wrong}</think>{said}"))
    assert not is_right(example.target, read_completion(wrong))


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    seen = {"picture": png(800, 600), "box": BOX}
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
    found = asked(tmp_path, plays, held_out=held)
    assert [one.name for one in found.examples] == ["run/login-user-1-a1/1"]
    assert found.left_out == Counter(
        {
            Missing.REPEATED: 1,
            Missing.NO_ELEMENT: 1,
            Missing.FAILED: 2,
            Missing.NO_SCREENSHOT: 1,
            Missing.NO_NAME: 1,
            Missing.OUT_OF_SIGHT: 2,
            Missing.HELD_OUT: 1,
        }
    )


def test_instances_that_policies_are_measured_on_are_known() -> None:
    tasks = [TaskRef(suite="miniwob", name="login-user", seed=seed) for seed in (3, SEED)]
    assert set(asyncio.run(held_out(tasks))) == {tasks[0]}


def test_what_learned_from_steps_is_played_with_their_prompts(tmp_path: Path) -> None:
    """The embedded model is asked in few words, and so is what came of it."""
    said = 'do(action="Click", element="1")'
    plays = [Play(seed=seed, text=f"Goal {seed}", actions=[Click(ref=1)]) for seed in range(4)]
    found = asked(tmp_path, plays, ask="step").examples
    assert {type(one.target) for one in found} == {StepTarget}
    compute = {"max_tokens": 64, "cpu": True, "threads": 1}
    given = {"steps": 1, "answer_tokens": 8, "compute": compute, "optimization": {"batch_rows": 16}}
    made = improve(found, "embedded", tmp_path / "compact", parse_settings(given, "here"), tell=lambda _: None)
    assert declared_style(made.model) == "compact"
    full = [one.model_copy(update={"messages": (("system", said), *one.messages)}) for one in found]
    made = improve(full, "embedded", tmp_path / "full", parse_settings(given, "here"), tell=lambda _: None)
    assert declared_style(made.model) == "full"
