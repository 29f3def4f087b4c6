"""Puzzles: correct by their verifiers, equal for equal seeds, without held-out ones."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.toy_models.puzzles import fresh_model, puzzle_tokenizer, reference_answer, reference_rows
from envs.core.errors import BadInput
from training.engine.checkpoints import load_policy
from training.grpo.puzzles import KINDS, Kind, make_puzzles, parse_puzzle_kind
from training.grpo.puzzles.maze import shortest
from training.grpo.puzzles.sudoku import sudoku
from training.grpo.rewards import MazeTarget, SudokuTarget, is_right, read_completion

SIZES: list[tuple[Kind, int]] = [("maze", 3), ("maze", 9), ("sudoku", 4), ("sudoku", 9), ("pattern", 2), ("pattern", 5)]


@pytest.mark.parametrize(("kind", "size"), SIZES)
def test_each_is_solved_by_its_own_answer_and_by_no_other_ones(kind: Kind, size: int) -> None:
    built = make_puzzles(kind, 12, seed=3, size=size)
    answers = [reference_answer(example) for example in built]
    for example, answer in zip(built, answers, strict=True):
        assert is_right(example.target, read_completion(answer))
        assert not is_right(example.target, read_completion(""))
    assert len({example.messages for example in built}) == len({example.name for example in built}) == 12


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_makes_the_same_and_another_others(kind: Kind) -> None:
    size = 4 if kind == "sudoku" else None
    one, again, other = (make_puzzles(kind, 20, seed=seed, size=size) for seed in (0, 0, 1))
    assert one == again
    assert one[:20] == make_puzzles(kind, 30, seed=0, size=size)[:20], "more of them begin with the same"
    apart = make_puzzles(kind, 20, seed=0, size=size, apart_from=one)
    assert not {example.messages for example in apart} & {example.messages for example in one}
    assert {example.messages for example in other} != {example.messages for example in one}


def test_a_maze_tells_a_shortest_path() -> None:
    assert shortest(("S..", "##.", "G..")) == "RRDDLL"
    with pytest.raises(ValueError, match="no path"):
        shortest(("S#G",))
    for example in make_puzzles("maze", 30, seed=5, size=9):
        assert isinstance(example.target, MazeTarget)
        assert len(example.target.path) == len(shortest(example.target.rows)) > 0


@pytest.mark.parametrize("size", [4, 9])
def test_a_sudoku_has_one_solution(size: int) -> None:
    """Found by trying every digit in every empty cell, without the generator's own search."""

    def solutions(rows: list[str]) -> int:
        at = next(((r, row.index("0")) for r, row in enumerate(rows) if "0" in row), None)
        if at is None:
            return 1
        r, c = at
        side = 2 if size == 4 else 3
        taken = {*rows[r], *(row[c] for row in rows)}
        taken |= set("".join(row[c - c % side :][:side] for row in rows[r - r % side :][:side]))
        free = [str(digit) for digit in range(1, size + 1) if str(digit) not in taken]
        return sum(solutions([*rows[:r], rows[r][:c] + digit + rows[r][c + 1 :], *rows[r + 1 :]]) for digit in free)

    for seed in range(5):
        prompt, target = sudoku(Random(seed), size)
        assert isinstance(target, SudokuTarget)
        assert solutions(list(target.puzzle)) == 1
        assert prompt.endswith("\n".join(target.puzzle)) and "0" in prompt


def test_sudokus_are_of_all_families() -> None:
    """Symptom: every solution was one cyclic square with permuted digits, rows and columns, whose rows have 9 (turned:
    3) different sets of digits in their squares."""
    solutions = [solution_of(seed, 9) for seed in range(20)]
    sets = [len({frozenset(row[c : c + 3]) for row in rows for c in (0, 3, 6)}) for rows in solutions]
    assert len(set(sets)) > 2 and max(sets) > 20
    for rows in solutions:
        assert all(sorted(line) == [*"123456789"] for line in (*rows, *map("".join, zip(*rows, strict=True))))
    assert len({solution_of(seed, 4) for seed in range(4_000)}) == 288, "all that there are of 4 x 4"


def solution_of(seed: int, size: int) -> tuple[str, ...]:
    _, target = sudoku(Random(seed), size, blanks=0)
    return target.solution


@pytest.mark.parametrize(
    ("kind", "size", "says"),
    [("maze", 4, "odd number"), ("maze", 1, "odd number"), ("sudoku", 5, "4 or 9"), ("pattern", 1, "at least 2")],
)
def test_a_size_that_there_is_not(kind: Kind, size: int, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make_puzzles(kind, 1, seed=0, size=size)


def test_more_than_there_are() -> None:
    with pytest.raises(BadInput, match="different puzzles of"):
        make_puzzles("maze", 10_000, seed=0, size=3)


def test_a_kind_that_there_is_not() -> None:
    with pytest.raises(BadInput, match="unknown puzzle 'chess'; there are maze, sudoku, pattern"):
        parse_puzzle_kind("chess")


def test_the_small_models_tokens_are_characters_and_questions(tmp_path_factory: pytest.TempPathFactory) -> None:
    tokenizer = puzzle_tokenizer()
    examples = [make_puzzles(kind, 1, seed=0, size=4 if kind == "sudoku" else None)[0] for kind in KINDS]
    for example in examples:
        prompt, answer = example.messages[0][1], reference_answer(example)
        question, _, rest = prompt.partition("\n")
        ids = tokenizer.encode(prompt)
        assert tokenizer.decode(ids) == prompt
        assert len(ids) == 1 + len("\n" + rest), "the question is one token"
        assert tokenizer.unk_token_id not in ids, question
        (row,) = reference_rows([example], tokenizer)
        assert tokenizer.decode(row.completion) == answer + tokenizer.eos_token
    model, read = load_policy(fresh_model(tmp_path_factory.mktemp("m") / "fresh", width=32, layers=1), padded=True)
    assert read.encode("S.#") == tokenizer.encode("S.#")
    assert model.config.vocab_size == len(tokenizer)
