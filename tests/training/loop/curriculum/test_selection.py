"""The next phase's tasks: examples by hand, then properties for any failures and pool."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from training.loop.curriculum import Candidate, CurriculumSettings, Failed, Selection, TfIdf, Variant, next_tasks
from training.loop.curriculum.pool import task_text
from training.loop.curriculum.similarity import Scores
from training.loop.curriculum.task_list import Similar

FIRST = 1_000_000
TASKS = ("click-button", "click-link", "enter-text", "login-user", "email-inbox", "use-slider")
CATEGORY: dict[str, str] = dict(zip(TASKS, ("navigation", "navigation", "form", "form", "mail", "form"), strict=True))
PLAIN = CurriculumSettings(explore_share=0, rare_share=0, top_k=2)


def ref(name: str, n: int = 0) -> TaskRef:
    return TaskRef(suite="miniwob", name=name, seed=FIRST + n)


def offered(name: str, n: int = 0, instruction: str = "") -> Candidate:
    return Candidate(ref(name, n), instruction, CATEGORY[name])


def fail(name: str, n: int = 0, instruction: str = "") -> Failed:
    return Failed(task=ref(name, n), instruction=instruction, category=CATEGORY[name], failure="stuck_midway")


def variant(name: str, n: int, failure_of: int) -> Variant:
    return Variant(offered(name, n), ref(name, failure_of), "instance")


class Table:
    """Scores by failed and pool text; other pairs are not compared."""

    def __init__(self, scores: dict[tuple[str, str], float]) -> None:
        self._scores = scores

    def scores(self, failed: Sequence[str], pool: Sequence[str]) -> Scores:
        return np.array([[self._scores.get((f, p), np.nan) for p in pool] for f in failed]).reshape(
            len(failed), len(pool)
        )


def named(selection: Selection) -> list[tuple[str, int, str]]:
    return [(item.task.name, item.task.seed - FIRST, item.reason.kind) for item in selection.tasks]


A, B = fail("click-button", 0, "a"), fail("enter-text", 0, "b")
POOL = [
    offered("click-link", 1, "x"),
    offered("click-link", 2, "y"),
    offered("login-user", 1, "z"),
    offered("use-slider", 1, "w"),
]
X, Y, Z, W = (task_text(item.ref, item.instruction) for item in POOL)
OF_A, OF_B = task_text(A.task, "a"), task_text(B.task, "b")
BY_HAND = Table({(OF_A, X): 0.9, (OF_A, Y): 0.8, (OF_A, Z): 0.1, (OF_B, X): 0.7, (OF_B, Z): 0.6, (OF_B, W): -0.2})
"""A nominates X, then Y; B nominates X, then Z. W is not similar to anything."""


def test_each_failure_nominates_top_k_tasks_and_duplicates_are_listed_once() -> None:
    result = next_tasks([A, B], [], POOL, BY_HAND, PLAIN, size=3, seed=0)
    by_task = {item.task: item.reason for item in result.tasks}
    assert set(by_task) == {POOL[0].ref, POOL[1].ref, POOL[2].ref}
    assert [by_task[POOL[n].ref].model_dump()["named_by"] for n in (0, 1, 2)] == [2, 1, 1]
    assert by_task[POOL[1].ref].model_dump(exclude={"named_by"}) == {
        "kind": "similar",
        "failure": A.task.model_dump(),
        "score": 0.8,
        "rank": 2,
    }
    assert result.counts.similar == 3 and result.counts.missing == 0 and result.failures == 2


def test_a_small_budget_is_spread_over_the_failures() -> None:
    """Without overlap each failure nominates a task of its own before any nominates a second."""
    settings = PLAIN.model_copy(update={"overlap": False})
    result = next_tasks([A, B], [], POOL, BY_HAND, settings, size=2, seed=0)
    assert {item.reason.model_dump()["failure"]["name"] for item in result.tasks} == {"click-button", "enter-text"}
    assert len(result.tasks) == 2


def test_skipping_nominated_tasks_creates_no_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three failures and nine tasks with equal texts: each failure skips the tasks of the previous two. A phase of
    some hundred failures skips millions."""

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a record for a task that was passed over")

    monkeypatch.setattr(Similar, "model_copy", refused)
    pool = [offered("click-link", n, "press it") for n in range(9)]
    settings = PLAIN.model_copy(update={"overlap": False, "top_k": 3})
    failures = [fail("click-link", n, "press it") for n in (9, 10, 11)]
    result = next_tasks(failures, [], pool, TfIdf(), settings, size=9, seed=0)
    reasons = [item.reason for item in result.tasks if isinstance(item.reason, Similar)]
    assert [item.task.seed - FIRST for item in result.tasks] == list(range(9))
    assert [item.rank for item in reasons] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert [item.named_by for item in reasons] == [3, 3, 3, 3, 3, 3, 3, 2, 1]


def test_tasks_without_a_positive_score_are_never_similar() -> None:
    """Eight requested, four offered: the task without similar failures is listed as exploration."""
    result = next_tasks([A, B], [], POOL, BY_HAND, PLAIN, size=8, seed=0)
    assert [kind for name, _, kind in named(result) if name == "use-slider"] == ["explore"]
    assert result.counts.missing == 4


def test_played_tasks_are_only_listed_as_retries() -> None:
    settings = PLAIN.model_copy(update={"retry_share": 0.5})
    result = next_tasks([A, B], [POOL[0].ref, A.task, B.task], POOL, BY_HAND, settings, size=4, seed=0)
    assert POOL[0].ref not in result.refs
    assert {item.task for item in result.tasks if item.reason.kind == "retry"} == {A.task, B.task}
    assert result.counts.retry == 2


def test_a_failed_task_that_the_pool_holds_is_not_its_own_best_neighbour() -> None:
    pool = [*POOL, Candidate(A.task, "a", "navigation")]
    assert A.task not in next_tasks([A], [], pool, TfIdf(), PLAIN, size=9, seed=0).refs


def test_at_most_400_new_instructions_a_phase() -> None:
    pool = [offered("click-link", n) for n in range(700)]
    result = next_tasks([], [], pool, TfIdf(), CurriculumSettings(), size=600, seed=0)
    assert len(result.tasks) == 400 and result.counts.missing == 200


def test_ties_are_ordered_by_the_seed_as_a_number() -> None:
    pool = [offered("click-link", n, "press it") for n in (10, 9, 8_999_999)]
    result = next_tasks([fail("click-link", 0, "press it")], [], pool, TfIdf(), PLAIN, size=2, seed=0)
    assert named(result) == [("click-link", 9, "similar"), ("click-link", 10, "similar")]


def test_without_failures_a_phase_explores_evenly() -> None:
    pool = [offered(name, n) for n in range(1, 4) for name in TASKS]
    result = next_tasks([], [], pool, TfIdf(), CurriculumSettings(), size=5, seed=1)
    assert [kind for _, _, kind in named(result)] == ["explore"] * 5
    assert result.refs != next_tasks([], [], pool, TfIdf(), CurriculumSettings(), size=5, seed=2).refs


# Rare categories

MAIL = [fail("email-inbox", n, f"mail {n}") for n in (0, 1)]
CLICKS = [fail("click-button", n, "press the button") for n in (0, 1)]
MANY = [offered("click-button", n, "press the button") for n in range(10, 40)]
REWORDED = [Variant(offered("email-inbox", 50 + n, f"other {n}"), MAIL[n % 2].task, "instance") for n in (0, 2, 1, 3)]
RARE = CurriculumSettings(explore_share=0, rare_share=0.5, top_k=4)


def test_a_category_that_the_pool_does_not_hold_is_filled_with_variants_of_its_failures_in_turn() -> None:
    """Half of the failures are mail, no mail is in the pool: 4 of 8 tasks are variants, two of each failure."""
    result = next_tasks([*MAIL, *CLICKS], [], MANY, TfIdf(), RARE, size=8, seed=0, variants=REWORDED)
    rare = [item for item in result.tasks if item.reason.kind == "rare"]
    assert result.rare_categories == ("mail",) and result.counts.similar == 4
    assert sorted(item.task.seed - FIRST for item in rare) == [50, 51, 52, 53]
    failure_of = [item.reason.model_dump()["failure"]["seed"] for item in rare]
    assert failure_of[:2] == failure_of[2:] and len(set(failure_of)) == 2


def test_a_category_that_is_covered_is_not_rare_unless_it_never_succeeded() -> None:
    covered = next_tasks(CLICKS, [], MANY, TfIdf(), RARE, size=8, seed=0)
    solved = next_tasks(CLICKS, [], MANY, TfIdf(), RARE, size=8, seed=0, succeeded=[ref("click-button", 5)])
    never = next_tasks(CLICKS, [], MANY, TfIdf(), RARE, size=8, seed=0, succeeded=[])
    assert covered.rare_categories == solved.rare_categories == ()
    assert never.rare_categories == ("navigation",)


def test_without_variants_a_rare_category_is_filled_from_the_pool() -> None:
    mail = offered("email-inbox", 9, "nothing in common")
    table = Table(
        {(task_text(CLICKS[0].task, "press the button"), task_text(ref("click-button"), "press the button")): 1}
    )
    result = next_tasks([*MAIL, *CLICKS], [], [*MANY, mail], table, RARE, size=8, seed=0)
    reason = next(item.reason for item in result.tasks if item.task == mail.ref)
    assert reason.model_dump()["how"] == "pool"


# What may never be listed

HELD_OUT = [
    ("a MiniWoB++ evaluation seed", TaskRef(suite="miniwob", name="click-button", seed=999_999)),
    ("a seed below 0", TaskRef(suite="miniwob", name="click-button", seed=-1)),
    ("a task that does not exist", TaskRef(suite="miniwob", name="click-nothing", seed=FIRST)),
    ("a test template", TaskRef(suite="sites", name="shop-compare", seed=20)),
    ("a validation template", TaskRef(suite="sites", name="cms-create-article", seed=20)),
    ("an evaluation instance of a training template", TaskRef(suite="sites", name="shop-order", seed=7)),
    ("a template that does not exist", TaskRef(suite="sites", name="shop-nothing", seed=20)),
    ("a benchmark", TaskRef(suite="webarena-lite", name="7", seed=0)),
]


@pytest.mark.parametrize("task", [task for _, task in HELD_OUT], ids=[name for name, _ in HELD_OUT])
def test_a_held_out_task_is_refused_in_every_argument(task: TaskRef) -> None:
    bad = Candidate(task, "x", "form")
    reasons = Failed(task=task, instruction="x", category="form", failure="")
    variant = Variant(bad, A.task, "instance")
    for failed, pool, variants in (([A], [*POOL, bad], []), ([A, reasons], POOL, []), ([A], POOL, [variant])):
        with pytest.raises(BadInput):
            next_tasks(failed, [], pool, BY_HAND, PLAIN, size=1, seed=0, variants=variants)


# Properties

instructions = st.sampled_from(["", "press the button", "press Submit", "type Anna", "log in as Bo", "forward it"])
some_failures = st.lists(st.builds(fail, st.sampled_from(TASKS), st.integers(0, 5), instructions), max_size=8)
some_pool = st.lists(st.builds(offered, st.sampled_from(TASKS), st.integers(0, 30), instructions), max_size=25)
some_variants = st.lists(
    st.builds(
        variant,
        st.sampled_from(TASKS),
        st.integers(40, 60),
        st.integers(0, 5),
    ),
    max_size=6,
)
some_settings = st.builds(
    CurriculumSettings,
    top_k=st.integers(1, 4),
    overlap=st.booleans(),
    max_new=st.integers(1, 12),
    rare_share=st.sampled_from([0, 0.3, 0.5]),
    explore_share=st.sampled_from([0, 0.2, 0.5]),
    retry_share=st.sampled_from([0, 0.5, 1]),
)


@hypothesis_settings(max_examples=60)
@given(st.tuples(some_failures, some_pool, some_variants), some_settings, st.integers(1, 20), st.randoms())
def test_any_selection_keeps_the_guarantees(
    drawn: tuple[list[Failed], list[Candidate], list[Variant]], settings: CurriculumSettings, size: int, rng: Random
) -> None:
    failed, pool, variants = drawn
    pool = list({item.ref: item for item in pool}.values())
    failed = list({item.task: item for item in failed}.values())
    variants = list({item.candidate.ref: item for item in variants}.values())
    seen = {item.ref for item in pool[::4]} | {item.task for item in failed}
    result = next_tasks(failed, seen, pool, TfIdf(), settings, size=size, seed=7, variants=variants)

    assert len(set(result.refs)) == len(result.refs) <= size
    new = [item for item in result.tasks if item.reason.kind != "retry"]
    assert len(new) <= settings.max_new and not seen & {item.task for item in new}
    assert all(item.task.seed >= FIRST for item in result.tasks)
    assert set(result.refs) - seen <= {item.ref for item in pool} | {item.candidate.ref for item in variants}
    failures = {item.task for item in failed}
    for item in result.tasks:
        match item.reason.kind:
            case "similar":
                assert item.reason.failure in failures and item.reason.score > 0
                assert 1 <= item.reason.rank <= settings.top_k and 1 <= item.reason.named_by <= len(failures)
            case "rare":
                assert item.reason.failure in failures and item.category == item.reason.category
            case "retry":
                assert item.task in failures
            case "explore":
                assert item.task in {candidate.ref for candidate in pool}
    counts = result.counts
    assert counts.similar + counts.rare + counts.explore + counts.retry + counts.missing == size
    if counts.missing and len(new) < settings.max_new and counts.retry < size:
        assert {item.ref for item in pool} <= seen | set(result.refs), "tasks are missing although some were left"

    for some in (failed, pool, variants):
        rng.shuffle(some)
    again = next_tasks(failed, list(seen), pool, TfIdf(), settings, size=size, seed=7, variants=variants)
    assert again == result, "the result does not depend on the order of the arguments"
    assert Selection.model_validate_json(result.model_dump_json()) == result
