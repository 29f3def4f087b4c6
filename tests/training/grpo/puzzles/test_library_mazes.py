"""Mazes of maze-dataset: valid by size and generator, reproducible. `make setup` does not install the extra `mazes`."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from envs.core.errors import BadInput
from models.optional import missing_modules
from tests.mira_command import mira
from training.grpo.examples import read_examples
from training.grpo.puzzles import MAZE_GENERATORS, MazeGenerator, make_puzzles, make_puzzles_of_sizes
from training.grpo.puzzles.maze import shortest
from training.grpo.rewards import MazeTarget, is_right, read_completion

NEEDS_MAZES = pytest.mark.skipif(bool(missing_modules("maze_dataset")), reason="needs the extra `mazes`")


@NEEDS_MAZES
@pytest.mark.parametrize("generator", MAZE_GENERATORS)
@pytest.mark.parametrize("size", [3, 9])
def test_each_maze_has_a_shortest_path_as_its_answer(generator: MazeGenerator, size: int) -> None:
    built = make_puzzles("maze", 12, seed=3, size=size, generator=generator)
    for example in built:
        target = example.target
        assert isinstance(target, MazeTarget)
        assert [len(row) for row in target.rows] == [size] * size
        assert example.messages[0][1].endswith("\n" + "\n".join(target.rows))
        assert is_right(target, read_completion(target.path)) and not is_right(target, read_completion("U"))
        assert len(target.path) == len(shortest(target.rows)) > 0
    assert len({example.messages for example in built}) == len({example.name for example in built}) == 12


@NEEDS_MAZES
def test_seeds_generators_and_files_are_apart() -> None:
    def mazes(seed: int, generator: MazeGenerator) -> set[str]:
        return {example.messages[0][1] for example in make_puzzles("maze", 20, seed=seed, size=7, generator=generator)}

    assert mazes(0, "dfs") == mazes(0, "dfs")
    assert len({frozenset(mazes(0, "dfs")), frozenset(mazes(1, "dfs")), frozenset(mazes(0, "wilson"))}) == 3
    one = make_puzzles("maze", 20, seed=0, size=5, generator="dfs")
    apart = make_puzzles("maze", 20, seed=0, size=5, generator="dfs", apart_from=one)
    assert not {example.messages for example in apart} & {example.messages for example in one}


@NEEDS_MAZES
def test_percolation_opens_walls() -> None:
    def floor(percolation: float) -> int:
        built = make_puzzles("maze", 5, seed=0, size=9, generator="dfs_percolation", percolation=percolation)
        return sum(row.count(".") for one in built if isinstance(one.target, MazeTarget) for row in one.target.rows)

    assert floor(0.0) < floor(0.4) < floor(1.0)
    tree = 25 + 24 - 2
    assert floor(0.0) == 5 * tree, "a tree of 25 rooms with 24 openings, of which S and G are two"


@NEEDS_MAZES
def test_global_random_generators_are_left_as_they_were() -> None:
    random.seed(5)
    np.random.seed(5)
    expected = random.random(), np.random.random()
    random.seed(5)
    np.random.seed(5)
    make_puzzles("maze", 3, seed=0, size=5, generator="kruskal")
    assert (random.random(), np.random.random()) == expected


@NEEDS_MAZES
def test_several_sizes_are_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["maze", "-o", "mazes.jsonl", "--generator", "wilson", "--size", "3", "--size", "9", "--count", "7"]
    assert mira(monkeypatch, "train", "puzzles", *words) == 0
    names = [example.name.split("/")[0] for example in read_examples(Path("mazes.jsonl"))]
    assert names == ["maze-wilson-3"] * 4 + ["maze-wilson-9"] * 3


@NEEDS_MAZES
@pytest.mark.parametrize(
    ("size", "generator", "percolation", "says"),
    [
        (4, "dfs", None, "odd number"),
        (5, "percolation", 0.0, "no two connected cells"),
        (3, "dfs", None, "different puzzles of"),
    ],
)
def test_mazes_that_cannot_be_made(size: int, generator: MazeGenerator, percolation: float | None, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make_puzzles("maze", 5_000, seed=0, size=size, generator=generator, percolation=percolation)


def test_sizes_share_the_count_of_own_puzzles() -> None:
    made = make_puzzles_of_sizes("maze", 5, seed=0, sizes=(3, 5, 3))
    assert [example.name.split("/")[0] for example in made] == ["maze-3"] * 3 + ["maze-5"] * 2
    assert made[:3] == make_puzzles("maze", 3, seed=0, size=3)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["maze", "--generator", "prim"], "--generator 'prim': maze-dataset has dfs, wilson, kruskal,"),
        (["sudoku", "--generator", "dfs"], "--generator dfs makes mazes, not 'sudoku'"),
        (["maze", "--percolation", "0.1"], "--percolation needs --generator percolation or dfs_percolation"),
        (["maze", "--percolation", "0.1", "--generator", "dfs"], "--percolation needs --generator percolation"),
        (["maze", "--percolation", "2", "--generator", "percolation"], "--percolation 2 is not a probability"),
        (["maze", "--generator", "dfs"], "--generator needs maze_dataset: pip install '.[mazes]' in the clone of Mira"),
    ],
)
def test_bad_options_and_a_missing_extra_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], says: str
) -> None:
    monkeypatch.setitem(sys.modules, "maze_dataset", None)  # as where it is not installed
    assert mira(monkeypatch, "train", "puzzles", *words, "-o", tmp_path / "x.jsonl") == 2
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1
    assert not (tmp_path / "x.jsonl").exists()


def test_a_package_that_cannot_be_imported_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As maze-dataset 1.4 with muutils 0.9."""
    (tmp_path / "maze_dataset.py").write_text("from json import no_such_name\n")
    for name in [name for name in sys.modules if name.partition(".")[0] == "maze_dataset"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        BadInput, match=r"is installed and cannot be imported \(cannot import name 'no_such_name'.*mazes\]"
    ):
        make_puzzles("maze", 1, seed=0, generator="dfs")
