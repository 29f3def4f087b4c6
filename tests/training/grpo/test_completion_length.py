"""Correct answers that exceed the completion length limit are reported before training."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.toy_models.puzzles import fresh_model, puzzle_tokenizer
from benchmarks.toy_models.vision import character_tokenizer
from envs.core.actions import Action, ClickAt, DragAt, ScrollAt
from envs.core.errors import BadInput
from models.vision.coordinates import CoordinateSpace, ImageFrame, Size
from models.vision.grounding import AnswerShape, GroundingPrompt
from models.vision.profiles import profile_named
from tests.training.grpo.rewards.examples import SOLVED
from tests.training.grpo.vision_cases import vision_examples, vision_settings
from training.grpo.completion_length import check_completion_lengths, right_answer
from training.grpo.examples import Example
from training.grpo.frames import DECLARED_PROFILE, AnswerFrames
from training.grpo.puzzles import make_puzzles
from training.grpo.rewards import PointTarget, Scale, StepTarget, SudokuTarget, Target, is_right, read_completion
from training.grpo.rewards.geometry import Point
from training.grpo.rewards.registry import REWARDS
from training.grpo.rewards.targets import decimals_of, points_of
from training.grpo.run import load_start, train_grpo
from training.grpo.settings import GrpoSettings, Recipe, parse_settings
from training.step_accuracy.answers import scale_of

SUDOKUS = make_puzzles("sudoku", 16, seed=0, size=9)
SMALL = make_puzzles("sudoku", 16, seed=0, size=4)
POINT = Example(name="p", messages=(("user", "?"),), target=SOLVED["point"][0])


def settings(**changes: Any) -> GrpoSettings:
    options: dict[str, Any] = {
        "steps": 1,
        "optimization": {"batch_rows": 16},
        "compute": {"max_tokens": 512, "threads": 1, "cpu": True},
    }
    return parse_settings({**options, **changes}, "here")


@pytest.mark.parametrize(("target", "text"), SOLVED.values(), ids=SOLVED)
def test_a_right_answer_is_right(target: Target, text: str) -> None:
    assert is_right(target, read_completion(right_answer(target)))
    assert len(right_answer(target)) <= len(text)


def scale_in(size: Size, space: CoordinateSpace) -> Scale:
    sent = profile_named(DECLARED_PROFILE[space]).sent_size(size)
    return scale_of(ImageFrame(size, sent, sent), space)


def drawn_point(data: st.DataObject, size: Size) -> tuple[float, float]:
    whole = st.tuples(*(st.integers(0, int(extent)).map(float) for extent in size))
    x, y = data.draw(whole | st.tuples(*(st.floats(0, extent) for extent in size)))
    return x, y


def action_at(data: st.DataObject, size: Size) -> Action:
    x, y = drawn_point(data, size)
    to_x, to_y = drawn_point(data, size)
    actions = (ClickAt(x=x, y=y), ScrollAt(x=x, y=y, dy=120), DragAt(x=x, y=y, to_x=to_x, to_y=to_y))
    return data.draw(st.sampled_from(actions))


def place_around(data: st.DataObject, point: Point, size: Size, scale: Scale) -> PointTarget:
    """A box with *point*, on which an answer can be: at least as wide and high as the step between two answers."""
    box: list[float] = []
    for value, extent, unit in zip(point, size, scale, strict=True):
        least = max(1.0, unit * 10.0 ** -decimals_of(unit)) * 1.001
        width = data.draw(st.floats(least, 60))
        low = min(max(0.0, value - data.draw(st.floats(0, 1)) * width), extent - width)
        box += [min(low, value), max(low + width, value)]
    return PointTarget(box=(box[0], box[2], box[1], box[3]), size=(int(size[0]), int(size[1])))


SIDES = st.integers(56, 4000)


@given(st.builds(Size, SIDES, SIDES), st.sampled_from(CoordinateSpace), st.data())
def test_a_right_answer_is_right_in_every_coordinate_space(
    size: Size, space: CoordinateSpace, data: st.DataObject
) -> None:
    scale = scale_in(size, space)
    action = action_at(data, size)
    places = tuple(place_around(data, point, size, scale) for point in points_of(action))
    for target in (StepTarget(action=action), StepTarget(action=action, places=places), *places):
        answer = right_answer(target, scale)
        assert is_right(target, read_completion(answer, scale)), (target, answer)


def test_a_step_without_a_box_has_no_other_point_than_its_own() -> None:
    step, thousandths = StepTarget(action=ClickAt(x=333, y=217)), (1.92, 1.08)
    assert right_answer(step, thousandths) == 'do(action="Click At", x=173, y=201)'
    for x, y in ((172, 201), (174, 201), (173, 200), (173, 202)):
        assert not is_right(step, read_completion(f'do(action="Click At", x={x}, y={y})', thousandths))
    assert not is_right(step, read_completion('do(action="Click At", x=334, y=217)'))


def test_an_edge_has_the_digits_that_the_units_of_its_axis_need() -> None:
    box = POINT.target.model_copy(update={"box": (100, 200, 160, 230)})
    assert right_answer(box, (0.9, 12.0), AnswerShape.BOX) == "[111, 16.67, 178, 19.17]"


@pytest.mark.parametrize("recipe", REWARDS.builtin)
def test_every_recipe_fits_the_completions_of_its_reward(recipe: Recipe) -> None:
    """Counted in characters, of which a token has one at least: a sudoku of 9 x 9 has 89, AdaGUI-R1's T is 100."""
    names = {"ssl": ("sudoku 9x9", "click", "type"), "adagui": ("click", "type", "point"), "lpo": ("click", "type")}
    examples = [POINT.model_copy(update={"target": SOLVED[name][0]}) for name in names.get(recipe, ("point",))]
    assert check_completion_lengths(examples, examples, parse_settings({"recipe": recipe}, "here"), len) == ()


def test_a_run_whose_right_answers_do_not_fit_is_refused(tmp_path: Path) -> None:
    start = fresh_model(tmp_path / "start", width=32, layers=1)
    with pytest.raises(BadInput, match=r"64 is too short for the right answer to any of the 16 examples: .* 89 tokens"):
        train_grpo(SUDOKUS, str(start), tmp_path / "run", settings(answer_tokens=64), log=lambda _: None)
    assert not (tmp_path / "run").exists()


def test_right_answers_that_do_not_fit_are_counted_before_anything_is_trained(tmp_path: Path) -> None:
    start = fresh_model(tmp_path / "start", width=32, layers=1)
    lines: list[str] = []
    config = settings(answer_tokens=20, compute={"max_tokens": 256, "threads": 1, "cpu": True})
    held_out = make_puzzles("sudoku", 2, seed=5, size=4, apart_from=SMALL)
    train_grpo((*SMALL, *SUDOKUS[:3]), str(start), tmp_path / "run", config, held_out=held_out, log=lines.append)
    assert lines[0] == (
        "warning: answer_tokens 20 is too short for the right answer to 3 of 19 examples: they cannot be solved "
        "(89 tokens)"
    )
    assert next(line for line in lines if line.startswith("update")).startswith("update 0")
    warned = len(lines)
    train_grpo((*SMALL, *SUDOKUS[:3]), str(start), tmp_path / "run", config, held_out=held_out, log=lines.append)
    assert len(lines) == warned, "a run that is done does not warn again"


def test_held_out_examples_are_counted_apart() -> None:
    (line,) = check_completion_lengths(SMALL, SUDOKUS, settings(answer_tokens=64), len)
    assert line == (
        "warning: answer_tokens 64 is too short for the right answer to 16 of 16 held-out examples: they count as "
        "unsolved (89 tokens)"
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        # "130, 215" takes 8 characters, its tags 32 more; the thought of AdaGUI-R1 100
        pytest.param({"recipe": "guirlvg", "answer_tokens": 40}, None, id="tags fit"),
        pytest.param({"recipe": "guirlvg", "answer_tokens": 39}, "in their tags.*full reward.*40 tokens", id="no tags"),
        pytest.param({"recipe": "guirlvg", "answer_tokens": 9, "reward": {"format": "none"}}, None, id="none wanted"),
        pytest.param(
            {"recipe": "lpo/ui-r1", "answer_tokens": 39},
            "in their tags.*full reward.*40 tokens",
            id="lpo/ui-r1 without room for tags",
        ),
        pytest.param({"recipe": "lpo/ui-r1", "answer_tokens": 40}, None, id="lpo/ui-r1 with room for tags"),
        pytest.param({"recipe": "lpo", "answer_tokens": 9}, None, id="no tags with LPO"),
        pytest.param({"recipe": "adagui", "answer_tokens": 140}, None, id="a thought fits"),
        pytest.param({"recipe": "adagui", "answer_tokens": 64}, "thought_tokens 100.*140 tokens", id="no thought"),
        pytest.param({"recipe": "adagui", "answer_tokens": 64, "reward": {"thought": "none"}}, None, id="not rewarded"),
        pytest.param(
            {"recipe": "adagui", "answer_tokens": 64, "reward": {"thought_tokens": 20}}, None, id="a short one"
        ),
    ],
)
def test_text_that_a_reward_requires_besides_the_answer(changes: dict[str, Any], says: str | None) -> None:
    lines = check_completion_lengths([POINT], [], settings(**changes, group=8), len)
    assert len(lines) == (0 if says is None else 1)
    assert all(says is not None and re.search(says, line) for line in lines)


def asking(form: GroundingPrompt, size: tuple[int, int] = (1000, 500)) -> Example:
    """A box of 60 x 30 pixels at 1000, 2000 or in an image of *size*."""
    target = PointTarget(box=(100, 200, 160, 230), size=size)
    return Example(name="q", messages=(("user", form.where_is("it", Size(*size)).text),), target=target)


@pytest.mark.parametrize(
    ("shape", "changes", "longest"),
    [
        (AnswerShape.POINT, {}, "130, 215"),
        (AnswerShape.BOX, {}, "[100, 200, 160, 230]"),
        (AnswerShape.JSON_BOX, {}, '[{"bbox_2d": [100, 200, 160, 230]}]'),
        (
            AnswerShape.POINT,
            {"recipe": "guirlvg", "reward": {"format": "none", "accuracy": "iou"}},
            "[100, 200, 160, 230]",
        ),
    ],
    ids=["a point", "a box", "a box in JSON", "a point, and its overlap counts"],
)
def test_the_answer_has_the_shape_that_is_asked_for(shape: AnswerShape, changes: dict[str, Any], longest: str) -> None:
    for form in (GroundingPrompt(shape=shape), GroundingPrompt(think=True, resolution=True, shape=shape)):
        fits = settings(**changes, group=8, answer_tokens=len(longest))
        assert check_completion_lengths([asking(form)], [], fits, len) == ()
        short = settings(**changes, group=8, answer_tokens=len(longest) - 1)
        with pytest.raises(BadInput, match=rf"they have {len(longest)} tokens"):
            check_completion_lengths([asking(form)], [], short, len)


def test_a_question_in_words_of_its_own_is_answered_in_the_shape_of_the_row() -> None:
    row = settings(recipe="guirlvg/trivial", answer_tokens=40, group=8)
    (line,) = check_completion_lengths([POINT], [], row, len)
    assert "in their tags" in line, '[{"bbox_2d": [100, 200, 160, 230]}] fits alone'
    assert (
        check_completion_lengths([POINT], [], settings(recipe="guirlvg/trivial", answer_tokens=67, group=8), len) == ()
    )


def test_answers_are_measured_in_the_units_of_the_row(
    starts: Callable[[str], Path], images: Path, tmp_path: Path
) -> None:
    """The centre of a square at the left edge of an image of 56 x 84 pixels is `6, 16`, and `107, 190` in
    thousandths."""
    lines: list[str] = []
    (one, *_) = vision_examples(images)
    how = {"group": 2, "micro_rows": 2, "steps": 1, "optimization": {"batch_rows": 2, "learning_rate": 1e-6}}
    for space, tokens in (("pixels", 5), ("thousand", 8)):
        fits = vision_settings(**how, coordinates=space, answer_tokens=tokens)
        scale = AnswerFrames(load_start(starts("Qwen3-VL"), vision=True)[1], fits.coordinates).scale
        assert check_completion_lengths([one], [], fits, len, scale) == ()
        short = fits.model_copy(update={"answer_tokens": tokens - 1})
        with pytest.raises(BadInput, match=rf"they have {tokens} tokens"):
            check_completion_lengths([one], [], short, len, scale)
    with pytest.raises(BadInput, match=r"answer_tokens 7 is too short .* they have 8 tokens"):
        short = vision_settings(**how, coordinates="thousand", answer_tokens=7)
        train_grpo([one], str(starts("Qwen3-VL")), tmp_path / "run", short, log=lines.append)


def test_tokens_are_those_of_the_policys_tokenizer() -> None:
    solution = SUDOKUS[0].target
    assert isinstance(solution, SudokuTarget)
    for tokenizer in (puzzle_tokenizer(), character_tokenizer()):
        assert len(tokenizer.encode(right_answer(solution), add_special_tokens=False)) == 89
