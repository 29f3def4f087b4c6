"""Verifiers (SSL paper, App. B.4): correct answers of each kind of task, and valid targets."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from envs.core.action_languages import language
from envs.core.actions import Action, ClickAt, DragAt, Press, ScrollAt, Stop, Type
from tests.training.grpo.rewards.examples import (
    CHOICE,
    CLICK,
    DRAG,
    MAZE,
    POINT,
    SCROLL,
    SOLVED,
    SUDOKU_4,
    SUDOKU_9,
    TYPE,
)
from training.grpo.rewards import (
    ChoiceTarget,
    GridTarget,
    MazeTarget,
    PointTarget,
    StepTarget,
    SudokuTarget,
    Target,
    is_right,
    read_completion,
)
from training.grpo.rewards.grids import cells_of, is_path, is_sudoku, keeps_clues, parse_path, parse_rows
from training.grpo.rewards.targets import aimed_points, has_places, parse_box, parse_choice, parse_point, points_of


def right(target: Target, text: str) -> bool:
    return is_right(target, read_completion(text))


@pytest.mark.parametrize(("target", "text"), SOLVED.values(), ids=SOLVED)
def test_the_right_answer_is_right_in_its_tags_and_without(target: Target, text: str) -> None:
    assert right(target, text)
    assert right(target, f"<think>I see.</think>\n<answer>{text}</answer>")
    assert not right(target, f"<think>{text}</think>")
    assert not right(target, "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("130, 215", True),
        ("100 200", True),
        ("160 230", True),
        ("99.9 215", False),
        ("160.1 215", False),
        ("130 199", False),
        ("130 231", False),
        ("-130 215", False),
        ("215 130", False),
        ("[100, 200, 160, 230]", True),  # a box points at its centre, (130, 215)
        ("[0, 0, 100, 100]", False),
        ("130", False),
        ("130 215 1", False),
        ("100 200 160 230 1", False),
        ("the button", False),
    ],
    ids=repr,
)
def test_a_point_is_in_its_box(text: str, expected: bool) -> None:
    assert right(POINT, text) is expected


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        ("b", "B"),
        ("B. The cart", "B"),
        ("(A) or rather (B)", "B"),  # the last one in brackets
        ("A, not C", "C"),  # the last one between spaces
        ("(A), not C", "A"),  # brackets come first
        ("The answer is: 'C'!", "C"),
        ("D", None),  # of three
        ("D. The cart", None),
        ("abc", None),
        ("a c", None),
        ("1", None),
        ("<think>B</think>", None),
    ],
)
def test_a_letter_is_read_as_visualwebbench_reads_it(text: str, letter: str | None) -> None:
    """`parse_multi_choice_response`, which takes the last of several letters, and small ones alone."""
    place = parse_choice(read_completion(text), 3)
    assert (None if place is None else "ABC"[place]) == letter


def test_a_choice_has_its_right_element() -> None:
    with pytest.raises(ValidationError, match="the correct element is number 3 of 3, from 0"):
        ChoiceTarget(boxes=CHOICE.boxes, right=3, size=CHOICE.size)


def test_points_and_boxes_are_only_as_many_numbers_as_they_have() -> None:
    assert parse_point(read_completion("1 2")) == (1, 2)
    assert parse_point(read_completion("0 0 10 20")) == (5, 10)
    assert parse_box(read_completion("0 0 10 20")) == (0, 0, 10, 20)
    assert parse_point(read_completion("1 2 3")) is parse_box(read_completion("1 2")) is None


RIGHT_CLICK = StepTarget(action=ClickAt(x=130, y=215, button="right"), places=(POINT,))
EXACT = StepTarget(action=ClickAt(x=130, y=215))
IDS_CLICK = StepTarget(action=ClickAt(x=130, y=215), language="id", places=(POINT,))
IDS_TYPE = StepTarget(action=Type(ref=7, text="a [b]"), language="id")
IDS_DRAG = StepTarget(action=DRAG.action, language="id", places=DRAG.places)
EXACT_DRAG = StepTarget(action=DragAt(x=10, y=20, to_x=130, to_y=215))
STOP = StepTarget(action=Stop(answer="42"))


def test_the_digits_of_a_step_may_be_full_width_the_text_is_as_it_is() -> None:
    assert is_right(CLICK, read_completion('do(action="Click At", x=１３０, y=２１５)'))
    assert not is_right(CLICK, read_completion('do(action="Click At", x=−130, y=215)'))
    typed = StepTarget(action=Type(ref=7, text="Ａｄａ"))
    assert is_right(typed, read_completion('do(action="Type", argument="Ａｄａ", element="7")'))


@pytest.mark.parametrize(
    ("target", "text", "expected"),
    [
        pytest.param(CLICK, 'do(action="Click At", x=101, y=229)', True, id="click in the place"),
        pytest.param(CLICK, 'do(action="Click At", x=161, y=229)', False, id="click beside it"),
        pytest.param(
            CLICK, "# Element: the button\ndo(action='click_at', x=\"130\", y=215)", True, id="click, loosely"
        ),
        pytest.param(CLICK, 'do(action="Right Click At", x=130, y=215)', False, id="wrong button"),
        pytest.param(CLICK, 'do(action="Double Click At", x=130, y=215)', False, id="two clicks"),
        pytest.param(RIGHT_CLICK, 'do(action="Right Click At", x=130, y=215)', True, id="right button"),
        pytest.param(CLICK, 'do(action="Scroll At", x=130, y=215, dy=100)', False, id="another kind at the point"),
        pytest.param(CLICK, 'do(action="Click", element="7")', False, id="click on an element"),
        pytest.param(CLICK, "130 215", False, id="a point is no action"),
        pytest.param(CLICK, "click_at [130] [215]", False, id="another language"),
        pytest.param(
            CLICK,
            'do(action="Click At", x=0, y=0)\ndo(action="Click At", x=130, y=215)',
            False,
            id="the first action counts",
        ),
        pytest.param(EXACT, 'do(action="Click At", x=130.0, y=215)', True, id="exact click"),
        pytest.param(EXACT, 'do(action="Click At", x=131, y=215)', False, id="exact click, a pixel off"),
        pytest.param(IDS_CLICK, "```click_at [101] [229]```", True, id="id: click"),
        pytest.param(IDS_CLICK, "click_at [101] [229]", True, id="id: click without a fence"),
        pytest.param(
            IDS_CLICK,
            "It is there. In summary, the next action I will perform is ```click_at [101] [229]```",
            True,
            id="id: click in a sentence",
        ),
        pytest.param(IDS_CLICK, "```click_at [99] [229]```", False, id="id: click beside it"),
        pytest.param(IDS_CLICK, "```click_at [130] [215] [right]```", False, id="id: wrong button"),
        pytest.param(IDS_CLICK, 'do(action="Click At", x=130, y=215)', False, id="id: another language"),
        pytest.param(TYPE, 'do(action="Type", argument="Ada L", element="7")', False, id="type another text"),
        pytest.param(TYPE, 'do(action="Type", argument="ada l.", element="7")', False, id="type in small letters"),
        pytest.param(TYPE, 'do(action="Type", argument="Ada L. ", element="7")', False, id="type a blank more"),
        pytest.param(TYPE, 'do(action="Type", argument="Ada L.", element="8")', False, id="type elsewhere"),
        pytest.param(TYPE, 'do(action="Search", argument="Ada L.", element="7")', False, id="type and press Enter"),
        pytest.param(TYPE, 'do(action="Type", argument="Ada L.", element=7)', True, id="type, loosely"),
        pytest.param(IDS_TYPE, "```type [7] [a [b]] [0]```", True, id="id: type"),
        pytest.param(IDS_TYPE, "```type [7] [a b] [0]```", False, id="id: type another text"),
        pytest.param(IDS_TYPE, "```type [7] [a [b]] [1]```", False, id="id: type and press Enter"),
        pytest.param(DRAG, 'do(action="Drag At", x=10, y=20, to_x=101, to_y=229)', True, id="drag into the place"),
        pytest.param(DRAG, 'do(action="Drag At", x=10, y=20, to_x=99, to_y=229)', False, id="drag beside it"),
        pytest.param(DRAG, 'do(action="Drag At", x=130, y=215, to_x=10, to_y=20)', False, id="drag out of it"),
        pytest.param(DRAG, 'do(action="Drag At", x=700, y=20, to_x=130, to_y=215)', False, id="drag something else"),
        pytest.param(IDS_DRAG, "```drag_at [10] [20] [101] [229]```", True, id="id: drag"),
        pytest.param(IDS_DRAG, "```drag_at [10] [20] [99] [229]```", False, id="id: drag beside it"),
        pytest.param(EXACT_DRAG, 'do(action="Drag At", x=10, y=20, to_x=130, to_y=215)', True, id="exact drag"),
        pytest.param(EXACT_DRAG, 'do(action="Drag At", x=11, y=20, to_x=130, to_y=215)', False, id="exact drag, off"),
        pytest.param(SCROLL, "```scroll_at [101] [229] [0] [100]```", True, id="scroll over the place"),
        pytest.param(SCROLL, "```scroll_at [99] [229] [0] [100]```", False, id="scroll beside it"),
        pytest.param(SCROLL, "```scroll_at [130] [215] [0] [-100]```", False, id="scroll the wrong way"),
        pytest.param(SCROLL, "```scroll_at [130] [215] [100] [0]```", False, id="scroll across"),
        pytest.param(STOP, 'exit(message="42")', True, id="the answer"),
        pytest.param(STOP, "exit()", False, id="no answer"),
        pytest.param(STOP, 'exit(message="43")', False, id="another answer"),
    ],
)
def test_steps(target: StepTarget, text: str, expected: bool) -> None:
    assert right(target, text) is expected


coordinates = st.integers(-50, 1050)
actions = (
    st.builds(ClickAt, x=coordinates, y=coordinates, button=st.sampled_from(["left", "right", "middle"]))
    | st.builds(DragAt, x=coordinates, y=coordinates, to_x=coordinates, to_y=coordinates)
    | st.builds(ScrollAt, x=coordinates, y=coordinates, dx=coordinates, dy=coordinates)
    | st.builds(Type, ref=st.integers(0, 99), text=st.text(max_size=12, alphabet="aB []\"'\\`\n<>/é"))
    | st.builds(Press, keys=st.sampled_from(["Enter", "Control+A"]))
    | st.builds(Stop, answer=st.none() | st.text(max_size=5, alphabet="a 1"))
)


@given(actions, actions, st.sampled_from(["program", "id"]))
def test_without_a_place_only_the_same_action_is_right(action: Action, other: Action, name: str) -> None:
    target = StepTarget.model_validate({"action": action, "language": name})
    show = language(target.language).show
    assert right(target, show(action))
    assert right(target, show(other)) is (action == other)


@pytest.mark.parametrize(
    ("target", "text", "points"),
    [
        pytest.param(POINT, "1 2", [(1, 2)], id="point"),
        pytest.param(POINT, "nothing", [], id="no point"),
        pytest.param(CLICK, 'do(action="Click At", x=1, y=2)', [(1, 2)], id="click"),
        pytest.param(CLICK, 'do(action="Right Click At", x=1, y=2)', [], id="another button"),
        pytest.param(CLICK, 'do(action="Scroll At", x=1, y=2, dy=3)', [], id="another kind"),
        pytest.param(DRAG, 'do(action="Drag At", x=1, y=2, to_x=3, to_y=4)', [(1, 2), (3, 4)], id="a drag's two"),
        pytest.param(SCROLL, "scroll_at [1] [2] [0] [100]", [(1, 2)], id="scroll"),
        pytest.param(SCROLL, "scroll_at [1] [2] [0] [-100]", [], id="another way"),
        pytest.param(EXACT, 'do(action="Click At", x=1, y=2)', [], id="no place"),
        pytest.param(TYPE, 'do(action="Type", argument="Ada L.", element="7")', [], id="no point in the action"),
        pytest.param(MAZE, "1 2", [], id="maze"),
    ],
)
def test_the_points_that_places_judge(target: Target, text: str, points: list[tuple[float, float]]) -> None:
    result = aimed_points(target, read_completion(text))
    assert [one.point for one in result] == points
    places = (POINT,) if target is POINT else target.places if isinstance(target, StepTarget) else ()
    assert all(one.place == place and place.region.holds(one.right) for one, place in zip(result, places, strict=False))


def test_what_is_a_place() -> None:
    assert [has_places(target) for target in (POINT, CLICK, DRAG, SCROLL)] == [True] * 4
    assert not any(has_places(target) for target in (EXACT, TYPE, MAZE, SUDOKU_4))
    assert points_of(TYPE.action) == ()


@pytest.mark.parametrize(
    ("action", "places", "says"),
    [
        pytest.param(Type(ref=7, text="a"), (POINT,), "names 0 points, not 1", id="an action without points"),
        pytest.param(DRAG.action, (POINT,), "names 2 points, not 1", id="one of two"),
        pytest.param(ClickAt(x=1, y=2), (POINT,), "does not aim into its own places", id="a miss"),
    ],
)
def test_a_step_whose_places_are_not_its_own(action: Action, places: tuple[PointTarget, ...], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        StepTarget(action=action, places=places)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("RRRRRDDDDD", True, id="the reference"),
        pytest.param("DDDDDRRRRR", True, id="another way"),
        pytest.param("R R R R R\nD, D; D D D", True, id="whatever stands between"),
        pytest.param("RLRRRRRDDDDD", True, id="back and forth"),
        pytest.param("RRRRRDDDDDLR", True, id="past the goal and back to it"),
        pytest.param("RRRRRDDDDDL", False, id="past the goal"),
        pytest.param("RRRRRDDDD", False, id="not yet there"),
        pytest.param("RDDDDDRRRR", False, id="through a wall"),
        pytest.param("URRRRRDDDDDD", False, id="out of the grid at the top"),
        pytest.param("LDDDDDRRRRRR", False, id="out of the grid on the left"),
        pytest.param("RRRRRRLDDDDD", False, id="out of the grid on the right"),
        pytest.param("DDDDDDURRRRR", False, id="out of the grid at the bottom"),
        pytest.param("", False, id="nothing"),
        pytest.param("rrrrrddddd", False, id="small letters"),
        pytest.param("Right: RRRRRDDDDD", False, id="words"),
        pytest.param("R5D5", False, id="numbers"),
    ],
)
def test_mazes(path: str, expected: bool) -> None:
    assert right(MAZE, path) is expected


def test_an_index_below_0_is_not_the_other_end_of_the_grid() -> None:
    """In Python, rows[-1] is the last row."""
    assert not is_path(("S#", "#.", "G."), "U")
    assert not is_path(("S#G",), "L")


def test_a_maze_has_one_start_and_one_goal() -> None:
    for rows in (("S.",), (".G",), ("S.SG",), ("SGG",), ()):
        assert not is_path(rows, "R")


@given(st.text(alphabet="UDLR", max_size=30))
def test_a_path_is_right_if_a_walk_on_the_floor_ends_at_the_goal(path: str) -> None:
    """The maze's floor is the rim of six by six: walk along it with one number, 0 to 19, clockwise from the start."""
    rim = [(0, c) for c in range(6)] + [(r, 5) for r in range(1, 6)] + [(5, c) for c in range(4, -1, -1)]
    rim += [(r, 0) for r in range(4, 0, -1)]
    step = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
    at, walks = (0, 0), True
    for move in path:
        at = (at[0] + step[move][0], at[1] + step[move][1])
        walks = walks and at in rim
    assert right(MAZE, path) is (walks and at == (5, 5))


def test_cells_of_a_path() -> None:
    assert list(cells_of(("#S", ".G"), "DLU")) == [(0, 1), (1, 1), (1, 0), (0, 0)]
    assert parse_path(read_completion("U, D;L\tR")) == "UDLR"
    assert parse_path(read_completion("U-D")) == ""
    assert parse_path(read_completion("R: DD")) == parse_path(read_completion("Path: RR Path: DD")) == ""


VALID_9 = "\n".join(SUDOKU_9.solution)
SWAPPED = str.maketrans("12", "21")
"""Of a solution: another grid that is a sudoku."""


@pytest.mark.parametrize(
    ("target", "text", "expected"),
    [
        pytest.param(SUDOKU_9, VALID_9, True, id="9x9"),
        pytest.param(SUDOKU_9, VALID_9.replace("\n", " / "), True, id="9x9 in one line"),
        pytest.param(SUDOKU_9, " ".join(VALID_9), True, id="9x9 with blanks"),
        pytest.param(SUDOKU_9, VALID_9.translate(SWAPPED), False, id="9x9, clues changed"),
        pytest.param(SUDOKU_9, "\n".join(SUDOKU_9.puzzle), False, id="9x9, not filled"),
        pytest.param(SUDOKU_9, VALID_9 + "\n123456789", False, id="9x9, a row too many"),
        pytest.param(SUDOKU_9, VALID_9[:-10], False, id="9x9, a row too few"),
        pytest.param(SUDOKU_9, "4" + VALID_9[1:], False, id="9x9, a digit twice"),
        pytest.param(SUDOKU_9, "Solution:\n" + VALID_9, False, id="9x9, with words"),
        pytest.param(SUDOKU_4, "1234/3412/2143/4321", True, id="4x4"),
        pytest.param(SUDOKU_4, "1 2 3 4 | 3 4 1 2", False, id="4x4, half of it"),
        pytest.param(SUDOKU_4, "2134/3421/1243/4312", False, id="4x4, clues changed"),
        pytest.param(SUDOKU_4, "1234/3412/2143/3421", False, id="4x4, columns wrong"),
        pytest.param(SUDOKU_4, "1234/2341/3412/4123", False, id="4x4, squares wrong"),
        pytest.param(SUDOKU_4, "1111/1111/1111/1111", False, id="4x4, all the same"),
    ],
)
def test_sudokus(target: SudokuTarget, text: str, expected: bool) -> None:
    assert right(target, text) is expected


def test_another_solution_of_the_same_clues_is_right() -> None:
    """Only the 1 in the corner is given, so 3 and 4 may change places."""
    target = SudokuTarget(puzzle=("1000", "0000", "0000", "0000"), solution=("1234", "3412", "2143", "4321"))
    assert right(target, "1243/4312/2134/3421")
    assert not right(target, "2143/3412/1234/4321")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(SUDOKU_9.solution, True, id="9x9"),
        pytest.param(SUDOKU_4.solution, True, id="4x4"),
        pytest.param(SUDOKU_9.puzzle, False, id="not filled"),
        pytest.param(("1",), False, id="1x1"),
        pytest.param((), False, id="none"),
        pytest.param(("12", "21"), False, id="2x2"),
        pytest.param(("1234", "3412", "2143"), False, id="not square"),
        pytest.param(("1234", "3412", "2143", "432"), False, id="ragged"),
        # rows and columns of a Latin square hold, its squares, 12/23, do not
        pytest.param(("1234", "2341", "3412", "4123"), False, id="Latin square"),
        # squares and columns hold, the first row, 1213, does not
        pytest.param(("1213", "3442", "2134", "4321"), False, id="a row"),
    ],
)
def test_what_is_a_sudoku(rows: tuple[str, ...], expected: bool) -> None:
    assert is_sudoku(rows) is expected


def test_clues() -> None:
    assert keeps_clues(("10", "02"), ("13", "42"))
    assert not keeps_clues(("10", "02"), ("23", "42"))
    assert not keeps_clues(("10", "02"), ("10",))
    assert not keeps_clues(("10", "02"), ("103", "02"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("000/050", True),
        ("0 0 0\n0 5 0", True),
        ("0,0,0\n\n0,5,0\n", True),
        ("|0|0|0|\n|0|5|0|", True),
        ("000/051", False),
        ("000", False),
        ("000050", False),
        ("000/050/000", False),
        ("0000/0500", False),
        ("00/05", False),
        ("zero", False),
        ("٠٠٠/٠٥٠", False),
    ],
    ids=repr,
)
def test_grids(text: str, expected: bool) -> None:
    assert right(GridTarget(rows=("000", "050")), text) is expected


def test_rows_are_all_digits_or_none() -> None:
    assert parse_rows(read_completion("12/34")) == ("12", "34")
    assert parse_rows(read_completion("12/3a")) == parse_rows(read_completion("12.34")) == ()


@pytest.mark.parametrize(
    "text",
    [
        "[[1, 2], [3, 4]]",
        "[\n  [1, 2],\n  [3, 4]\n]",
        "[\n  [\n    1,\n    2\n  ],\n  [\n    3,\n    4\n  ]\n]",
        "[1, 2]\n[3, 4]",
        '["12", "34"]',
        "```\n1 2\n3 4\n```",
        "```json\n[[1, 2], [3, 4]]\n```",
        "|1|2|\n|3|4|",
        "12\n34.",
        "[[1, 2], [3, 4]].",
        "```\n12\n34\n```.",
        "```12/34```",
        "```12\n34```",
        "```text \n12\n34.\n```",
    ],
)
def test_rows_as_models_write_them(text: str) -> None:
    assert parse_rows(read_completion(text)) == ("12", "34")


@pytest.mark.parametrize(
    "text",
    [
        *["RRDD.", "R, R, D, D", "`RRDD`", "**RRDD**", '["R", "R", "D", "D"]', "R→R→D→D", "R->R->D->D"],
        *["```RRDD```", "```RRDD\n```", "```text\nRRDD\n```", "```\nRRDD.\n```", "```RRDD```."],
        *["Path: RRDD", "**Path:** RRDD.", "The shortest path is: R, R, D, D", "Final answer:\n`RRDD`"],
    ],
)
def test_a_path_as_models_write_it(text: str) -> None:
    assert parse_path(read_completion(text)) == "RRDD"


@pytest.mark.parametrize(
    "box",
    [(10, 0, 10, 10), (0, 10, 10, 10), (10, 0, 0, 10), (0, 10, 10, 0), (10, 10, 0, 0), (0.1, 0.1, 0.9, 0.9)],
    ids=str,
)
def test_a_box_smaller_than_a_pixel_is_refused(box: tuple[float, float, float, float]) -> None:
    """Or one in shares of the image."""
    with pytest.raises(ValidationError, match="smaller than a pixel"):
        PointTarget(box=box, size=(100, 100))


def test_a_box_beyond_the_image_is_refused() -> None:
    with pytest.raises(ValidationError, match="outside the image of 100 x 100 pixels"):
        PointTarget(box=(90, 90, 200, 99), size=(100, 100))


@pytest.mark.parametrize(
    "box", [(math.nan, 0, 10, 10), (0, 0, math.inf, 10), (-math.inf, 0, 10, 10), (0, -math.inf, 10, math.inf)], ids=str
)
def test_a_box_without_end_is_refused(box: tuple[float, float, float, float]) -> None:
    """It has no centre, and the distance to it is no number."""
    with pytest.raises(ValidationError):
        PointTarget(box=box, size=(100, 100))


@pytest.mark.parametrize("size", [(0, 100), (100, 0), (-1, 100)], ids=str)
def test_an_image_without_pixels_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(ValidationError, match="greater than 0"):
        PointTarget(box=(0, 0, 10, 10), size=size)


@pytest.mark.parametrize(
    ("rows", "path"),
    [
        pytest.param(("S.G",), "R", id="short of the goal"),
        pytest.param(("S#G",), "RR", id="through a wall"),
        pytest.param(("S.", "G"), "D", id="ragged"),
        pytest.param(("S.X", "..G"), "RRD", id="a strange cell"),
        pytest.param(("SSG",), "R", id="two starts"),
        pytest.param(("S.G",), "Rr", id="a strange letter"),
        pytest.param((), "", id="nothing"),
        pytest.param(("",), "", id="an empty row"),
    ],
)
def test_a_maze_that_is_none_is_refused(rows: tuple[str, ...], path: str) -> None:
    with pytest.raises(ValidationError):
        MazeTarget(rows=rows, path=path)


@pytest.mark.parametrize(
    ("puzzle", "solution"),
    [
        pytest.param(("2000", "0000", "0000", "0000"), SUDOKU_4.solution, id="of another puzzle"),
        pytest.param(("1000", "0000", "0000", "0000"), ("1234", "2341", "3412", "4123"), id="no sudoku"),
        pytest.param(("1000",), SUDOKU_4.solution, id="another size"),
        pytest.param(("1...", "....", "....", "...."), SUDOKU_4.solution, id="dots"),
        pytest.param((), (), id="nothing"),
    ],
)
def test_a_sudoku_that_is_none_is_refused(puzzle: tuple[str, ...], solution: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError, match="does not solve"):
        SudokuTarget(puzzle=puzzle, solution=solution)


@pytest.mark.parametrize("rows", [(), ("",), ("12", "3"), ("ab", "cd"), ("1 2",)], ids=str)
def test_a_grid_that_is_none_is_refused(rows: tuple[str, ...]) -> None:
    """As a maze and a sudoku are: no answer could be right, and blocks want rows of one length."""
    with pytest.raises(ValidationError):
        GridTarget(rows=rows)
