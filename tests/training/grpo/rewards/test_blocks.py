"""Blocks of grids (SSL paper, §3.3 and App. B.2), by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.grpo.rewards.examples import MAZE, SUDOKU_4
from training.grpo.rewards import GridTarget, read_completion
from training.grpo.rewards.blocks import Grid, Scale, block_edges, block_score, compared_grids


def ones(rows: int, columns: int, wrong: int = 0) -> list[list[int]]:
    """All 1 but for the first *wrong* cells, row by row, which are 0."""
    return [[int(r * columns + c >= wrong) for c in range(columns)] for r in range(rows)]


@pytest.mark.parametrize(
    ("length", "parts", "edges"),
    [
        (9, 3, (0, 3, 6, 9)),
        (10, 3, (0, 4, 7, 10)),  # ⌈10/3⌉ = 4, ⌈20/3⌉ = 7
        (11, 3, (0, 4, 8, 11)),  # ⌈11/3⌉ = 4, ⌈22/3⌉ = 8
        (7, 3, (0, 3, 5, 7)),  # ⌈7/3⌉ = 3, ⌈14/3⌉ = 5
        (4, 3, (0, 2, 3, 4)),
        (3, 3, (0, 1, 2, 3)),
        (2, 3, (0, 1, 2, 2)),  # ⌈2/3⌉ = 1, ⌈4/3⌉ = 2: the last block is empty
        (1, 3, (0, 1, 1, 1)),
        (4, 2, (0, 2, 4)),
        (5, 1, (0, 5)),
    ],
    ids=str,
)
def test_where_blocks_end(length: int, parts: int, edges: tuple[int, ...]) -> None:
    assert block_edges(length, parts) == edges


@given(st.integers(1, 200), st.integers(1, 12))
def test_every_row_is_in_one_block_and_blocks_are_of_one_size_but_for_a_row(length: int, parts: int) -> None:
    edges = block_edges(length, parts)
    sizes = [end - start for start, end in pairwise(edges)]
    assert edges[0] == 0 and edges[-1] == length and len(sizes) == parts
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("scale", "zones", "cells", "worth"),
    [
        # App. B.2: from ¾ on 1, from ½ on 2/3, from ¼ on 1/3, else 0. Worth of 0, 1 … 8 matches of 8:
        pytest.param("tiered", 4, 8, [0, 0, 1 / 3, 1 / 3, 2 / 3, 2 / 3, 1, 1, 1], id="four zones"),
        # of 9 cells the bounds are 2.25, 4.5 and 6.75: 3, 5 and 7 cells
        pytest.param(
            "tiered", 4, 9, [0, 0, 0, 1 / 3, 1 / 3, 2 / 3, 2 / 3, 1, 1, 1], id="four zones of a sudoku's square"
        ),
        pytest.param("tiered", 4, 1, [0, 1], id="four zones of one cell"),
        pytest.param("tiered", 4, 4, [0, 1 / 3, 2 / 3, 1, 1], id="four zones of four cells"),
        # K zones: bounds k/K, values k/(K − 1)
        pytest.param("tiered", 2, 8, [0, 0, 0, 0, 1, 1, 1, 1, 1], id="two zones"),
        pytest.param("tiered", 8, 8, [0, 1 / 7, 2 / 7, 3 / 7, 4 / 7, 5 / 7, 6 / 7, 1, 1], id="eight zones"),
        # §3.3: 0 to 3 matches 1/3, 4 to 6 2/3, 7 to 9 1
        pytest.param("counts", 4, 9, [1 / 3] * 4 + [2 / 3] * 3 + [1] * 3, id="counts"),
        pytest.param("continuous", 4, 8, [n / 8 for n in range(9)], id="shares"),
    ],
)
def test_values_of_a_block(scale: Scale, zones: int, cells: int, worth: list[float]) -> None:
    result = [
        block_score(ones(1, cells, cells - matched), ones(1, cells), parts=1, scale=scale, zones=zones)
        for matched in range(cells + 1)
    ]
    assert result == pytest.approx(worth)


def with_wrong(rows: int, columns: int, *cells: tuple[int, int]) -> Grid:
    return [[int((r, c) not in cells) for c in range(columns)] for r in range(rows)]


@pytest.mark.parametrize(
    ("completion", "tiered", "continuous"),
    [
        pytest.param(ones(9, 9), 1, 1, id="all right"),
        pytest.param(ones(9, 9, 81), 0, 0, id="all wrong"),
        # rows of 10 are parted 4, 3, 3: the first four rows hold blocks of 16, 12 and 12 cells; 20 wrong cells are two
        # rows, half of each of the three
        pytest.param(ones(10, 10, 20), (3 * 2 / 3 + 6) / 9, (3 / 2 + 6) / 9, id="ten by ten"),
        # 7: 3, 2, 2 rows; 5: ⌈5/3⌉ = 2, ⌈10/3⌉ = 4: 2, 2, 1 columns. In the last block, (5…6, 4), one of two is wrong
        pytest.param(with_wrong(7, 5, (6, 4)), (2 / 3 + 8) / 9, (1 / 2 + 8) / 9, id="seven by five"),
        # of four blocks of one cell one is wrong; the five empty ones do not count
        pytest.param(ones(2, 2, 1), 3 / 4, 3 / 4, id="two by two"),
        pytest.param(ones(1, 1), 1, 1, id="one cell, right"),
        pytest.param(ones(1, 1, 1), 0, 0, id="one cell, wrong"),
        # 5 columns: 2, 2, 1; the first block has one right of two
        pytest.param(ones(1, 5, 1), (2 / 3 + 2) / 3, (1 / 2 + 2) / 3, id="one row"),
    ],
)
def test_the_mean_over_blocks(completion: Grid, tiered: float, continuous: float) -> None:
    right = ones(len(completion), len(completion[0]))
    assert block_score(completion, right) == pytest.approx(tiered)
    assert block_score(completion, right, scale="continuous") == pytest.approx(continuous)


grids = st.tuples(st.integers(1, 12), st.integers(1, 12)).flatmap(
    lambda size: st.tuples(
        *[st.lists(st.lists(st.integers(0, 2), min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0])]
        * 2
    )
)


@given(grids, st.integers(1, 4), st.integers(2, 9))
def test_a_score_is_a_share_and_that_of_the_right_grid_is_1(
    sides: tuple[list[list[int]], list[list[int]]], parts: int, zones: int
) -> None:
    completion, right = sides
    assert 0 <= block_score(completion, right, parts=parts, zones=zones) <= 1
    assert block_score(right, right, parts=parts, zones=zones) == 1
    assert block_score(right, right, parts=parts, scale="continuous") == 1


@pytest.mark.parametrize(
    ("answer", "size", "resized"),
    [
        pytest.param("123/456", (2, 3), ("123", "456"), id="as it is"),
        pytest.param("12/34", (4, 4), ("1122", "1122", "3344", "3344"), id="twice as large"),
        # the centres of the small cells are at 1 and 3 of 4: rows and columns 1 and 3
        pytest.param("1234/5678/9012/3456", (2, 2), ("68", "46"), id="half as large"),
        pytest.param("123", (1, 2), ("13",), id="three to two"),  # centres ¾ and 2¼
        pytest.param("12", (1, 3), ("122",), id="two to three"),  # centres 1/3, 1, 5/3
        pytest.param("4", (2, 3), ("444", "444"), id="one cell"),
        pytest.param("1 2 3\n4, 5, 6", (2, 3), ("123", "456"), id="blanks and commas"),
    ],
)
def test_an_answer_of_another_size_is_read_as_its_nearest_neighbours(
    answer: str, size: tuple[int, int], resized: tuple[str, ...]
) -> None:
    completion, _ = compared_grids(GridTarget(rows=("0" * size[1],) * size[0]), read_completion(answer))
    assert tuple("".join(map(str, row)) for row in completion) == resized


@given(st.integers(1, 10), st.integers(1, 10), st.integers(1, 30), st.integers(1, 30))
def test_no_cell_is_nearer_than_the_nearest_neighbour(high: int, wide: int, new_high: int, new_wide: int) -> None:
    """Each cell tells its row and column; centres are compared in fractions of the whole grid."""

    def is_nearest(old: int, olds: int, new: int, news: int) -> bool:
        away = [abs(Fraction(2 * index + 1, 2 * olds) - Fraction(2 * new + 1, 2 * news)) for index in range(olds)]
        return away[old] == min(away)

    target = GridTarget(rows=("0" * new_wide,) * new_high)
    columns, _ = compared_grids(target, read_completion("\n".join(["0123456789"[:wide]] * high)))
    rows, _ = compared_grids(target, read_completion("\n".join(str(row) * wide for row in range(high))))
    assert len(rows) == new_high and {len(row) for row in columns} == {new_wide}
    for r in range(new_high):
        for c in range(new_wide):
            assert is_nearest(int(str(rows[r][c])), high, r, new_high)
            assert is_nearest(int(str(columns[r][c])), wide, c, new_wide)


@pytest.mark.parametrize("answer", ["", "12/3", "a grid", "12/3x", "½½/½½"], ids=repr)
def test_an_answer_that_is_no_grid_matches_no_cell(answer: str) -> None:
    target = GridTarget(rows=("12", "34"))
    completion, right = compared_grids(target, read_completion(answer))
    assert block_score(completion, right) == block_score(completion, right, scale="continuous") == 0


def test_a_maze_is_the_cells_that_paths_go_over() -> None:
    """Down the left and half of the way along the bottom, against the reference along the top and down the right."""
    completion, right = compared_grids(MAZE, read_completion("DDDDD RR"))
    assert {(r, c) for r in range(6) for c in range(6) if completion[r][c]} == {
        *((r, 0) for r in range(6)),
        (5, 1),
        (5, 2),
    }
    assert {(r, c) for r in range(6) for c in range(6) if right[r][c]} == {
        *((0, c) for c in range(6)),
        *((r, 5) for r in range(6)),
    }


@pytest.mark.parametrize("answer", ["", "go right", "RRX", "rrrr"], ids=repr)
def test_no_path_is_right_nowhere(answer: str) -> None:
    assert block_score(*compared_grids(MAZE, read_completion(answer))) == 0


def test_cells_of_a_path_outside_the_maze_are_ignored() -> None:
    completion, _ = compared_grids(MAZE, read_completion("LLRRRUUD"))
    assert {(r, c) for r in range(6) for c in range(6) if completion[r][c]} == {(0, 0), (0, 1)}


def test_a_sudoku_is_its_digits() -> None:
    completion, right = compared_grids(SUDOKU_4, read_completion("1111/2222/3333/4444"))
    assert [list(row) for row in completion] == [["1"] * 4, ["2"] * 4, ["3"] * 4, ["4"] * 4]
    assert [list(row) for row in right] == [list("1234"), list("3412"), list("2143"), list("4321")]
