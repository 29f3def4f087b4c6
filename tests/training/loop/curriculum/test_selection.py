"""The next phase's tasks: worked by hand, then as properties of any failures and any pool."""

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
CATEGORY = dict(zip(TASKS, ("navigation", "navigation", "form", "form", "mail", "form"), strict=True))
PLAIN = CurriculumSettings(explore_share=0, rare_share=0, top_k=2)


def ref(name: str, n: int = 0) -> TaskRef:
    return TaskRef(suite="miniwob", name=name, seed=FIRST + n)


def offered(name: str, n: int = 0, instruction: str = "") -> Candidate:
    return Candidate(ref(name, n), instruction, CATEGORY[name])


def fail(name: str, n: int = 0, instruction: str = "") -> Failed:
    return Failed(task=ref(name, n), instruction=instruction, category=CATEGORY[name], failure="stuck_midway")


class Table:
    """Scores written down by hand, by failed and pool text; what is not in it was not compared."""

    def __init__(self, scores: dict[tuple[str, str], float]) -> None:
        self._scores = scores

    def scores(self, failed: Sequence[str], pool: Sequence[str]) -> Scores:
        return np.array([[self._scores.get((f, p), np.nan) for p in pool] for f in failed]).reshape(
            len(failed), len(pool)
        )


def named(selection: Selection) -> list[tuple[str, int, str]]:
    return [(one.task.name, one.task.seed - FIRST, one.reason.kind) for one in selection.tasks]


A, B = fail("click-button", 0, "a"), fail("enter-text", 0, "b")
POOL = [
    offered("click-link", 1, "x"),
    offered("click-link", 2, "y"),
    offered("login-user", 1, "z"),
    offered("use-slider", 1, "w"),
]
X, Y, Z, W = (task_text(one.ref, one.instruction) for one in POOL)
OF_A, OF_B = task_text(A.task, "a"), task_text(B.task, "b")
BY_HAND = Table({(OF_A, X): 0.9, (OF_A, Y): 0.8, (OF_A, Z): 0.1, (OF_B, X): 0.7, (OF_B, Z): 0.6, (OF_B, W): -0.2})
"""A names X, then Y; B names X, then Z. W is not like anything."""


def test_each_failure_names_its_top_k_and_a_task_that_two_name_is_listed_once() -> None:
    found = next_tasks([A, B], [], POOL, BY_HAND, PLAIN, size=3, seed=0)
    by_task = {one.task: one.reason for one in found.tasks}
    assert set(by_task) == {POOL[0].ref, POOL[1].ref, POOL[2].ref}
    assert [by_task[POOL[n].ref].model_dump()["named_by"] for n in (0, 1, 2)] == [2, 1, 1]
    assert by_task[POOL[1].ref].model_dump(exclude={"named_by"}) == {
        "kind": "similar",
        "failure": A.task.model_dump(),
        "score": 0.8,
        "rank": 2,
    }
    assert found.counts.similar == 3 and found.counts.missing == 0 and found.failures == 2


def test_a_small_budget_is_spread_over_the_failures() -> None:
    """Without overlap each failure finds one of its own before any finds a second."""
    settings = PLAIN.model_copy(update={"overlap": False})
    found = next_tasks([A, B], [], POOL, BY_HAND, settings, size=2, seed=0)
    assert {one.reason.model_dump()["failure"]["name"] for one in found.tasks} == {"click-button", "enter-text"}
    assert len(found.tasks) == 2


def test_going_on_past_what_others_named_makes_no_record_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three failures and nine tasks, all worded alike: each failure passes over what the two before it took. A phase of
    some hundred failures passes over millions."""

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a record for a task that was passed over")

    monkeypatch.setattr(Similar, "model_copy", refused)
    pool = [offered("click-link", n, "press it") for n in range(9)]
    settings = PLAIN.model_copy(update={"overlap": False, "top_k": 3})
    failures = [fail("click-link", n, "press it") for n in (9, 10, 11)]
    found = next_tasks(failures, [], pool, TfIdf(), settings, size=9, seed=0)
    told = [one.reason for one in found.tasks if isinstance(one.reason, Similar)]
    assert [one.task.seed - FIRST for one in found.tasks] == list(range(9))
    assert [one.rank for one in told] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert [one.named_by for one in told] == [3, 3, 3, 3, 3, 3, 3, 2, 1]


def test_what_is_not_alike_or_was_not_compared_is_never_called_similar() -> None:
    """Eight are asked for and four offered: the one that nobody is like comes in as exploration."""
    found = next_tasks([A, B], [], POOL, BY_HAND, PLAIN, size=8, seed=0)
    assert [kind for name, _, kind in named(found) if name == "use-slider"] == ["explore"]
    assert found.counts.missing == 4


def test_what_was_played_is_not_played_again_unless_as_a_retry() -> None:
    settings = PLAIN.model_copy(update={"retry_share": 0.5})
    found = next_tasks([A, B], [POOL[0].ref, A.task, B.task], POOL, BY_HAND, settings, size=4, seed=0)
    assert POOL[0].ref not in found.refs
    assert {one.task for one in found.tasks if one.reason.kind == "retry"} == {A.task, B.task}
    assert found.counts.retry == 2


def test_a_failed_task_that_the_pool_holds_is_not_its_own_best_neighbour() -> None:
    pool = [*POOL, Candidate(A.task, "a", "navigation")]
    assert A.task not in next_tasks([A], [], pool, TfIdf(), PLAIN, size=9, seed=0).refs


def test_at_most_400_new_instructions_a_phase() -> None:
    pool = [offered("click-link", n) for n in range(700)]
    found = next_tasks([], [], pool, TfIdf(), CurriculumSettings(), size=600, seed=0)
    assert len(found.tasks) == 400 and found.counts.missing == 200


def test_ties_go_by_the_number_of_the_instance_and_not_by_its_digits() -> None:
    pool = [offered("click-link", n, "press it") for n in (10, 9, 8_999_999)]
    found = next_tasks([fail("click-link", 0, "press it")], [], pool, TfIdf(), PLAIN, size=2, seed=0)
    assert named(found) == [("click-link", 9, "similar"), ("click-link", 10, "similar")]


def test_without_failures_a_phase_explores_evenly() -> None:
    pool = [offered(name, n) for n in range(1, 4) for name in TASKS]
    found = next_tasks([], [], pool, TfIdf(), CurriculumSettings(), size=5, seed=1)
    assert [kind for _, _, kind in named(found)] == ["explore"] * 5
    assert found.refs != next_tasks([], [], pool, TfIdf(), CurriculumSettings(), size=5, seed=2).refs


# Rare categories

MAIL = [fail("email-inbox", n, f"mail {n}") for n in (0, 1)]
CLICKS = [fail("click-button", n, "press the button") for n in (0, 1)]
MANY = [offered("click-button", n, "press the button") for n in range(10, 40)]
REWORDED = [Variant(offered("email-inbox", 50 + n, f"other {n}"), MAIL[n % 2].task, "instance") for n in (0, 2, 1, 3)]
RARE = CurriculumSettings(explore_share=0, rare_share=0.5, top_k=4)


def test_a_category_that_the_pool_does_not_hold_is_filled_with_variants_of_its_failures_in_turn() -> None:
    """Half of the failures are mail, no mail is in the pool: 4 of 8 tasks are variants, two of each failure."""
    found = next_tasks([*MAIL, *CLICKS], [], MANY, TfIdf(), RARE, size=8, seed=0, variants=REWORDED)
    rare = [one for one in found.tasks if one.reason.kind == "rare"]
    assert found.rare_categories == ("mail",) and found.counts.similar == 4
    assert sorted(one.task.seed - FIRST for one in rare) == [50, 51, 52, 53]
    of = [one.reason.model_dump()["failure"]["seed"] for one in rare]
    assert of[:2] == of[2:] and len(set(of)) == 2


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
    found = next_tasks([*MAIL, *CLICKS], [], [*MANY, mail], table, RARE, size=8, seed=0)
    reason = next(one.reason for one in found.tasks if one.task == mail.ref)
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
def test_a_task_that_may_not_be_trained_on_is_refused_wherever_it_is_offered(task: TaskRef) -> None:
    bad = Candidate(task, "x", "form")
    told = Failed(task=task, instruction="x", category="form", failure="")
    variant = Variant(bad, A.task, "instance")
    for failed, pool, variants in (([A], [*POOL, bad], []), ([A, told], POOL, []), ([A], POOL, [variant])):
        with pytest.raises(BadInput):
            next_tasks(failed, [], pool, BY_HAND, PLAIN, size=1, seed=0, variants=variants)


# Properties

instructions = st.sampled_from(["", "press the button", "press Submit", "type Anna", "log in as Bo", "forward it"])
some_failures = st.lists(st.builds(fail, st.sampled_from(TASKS), st.integers(0, 5), instructions), max_size=8)
some_pool = st.lists(st.builds(offered, st.sampled_from(TASKS), st.integers(0, 30), instructions), max_size=25)
some_variants = st.lists(
    st.builds(
        lambda name, n, of: Variant(offered(name, n), ref(name, of), "instance"),
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
def test_any_selection_keeps_its_promises(
    drawn: tuple[list[Failed], list[Candidate], list[Variant]], settings: CurriculumSettings, size: int, rng: Random
) -> None:
    failed, pool, variants = drawn
    pool = list({one.ref: one for one in pool}.values())
    failed = list({one.task: one for one in failed}.values())
    variants = list({one.candidate.ref: one for one in variants}.values())
    seen = {one.ref for one in pool[::4]} | {one.task for one in failed}
    found = next_tasks(failed, seen, pool, TfIdf(), settings, size=size, seed=7, variants=variants)

    assert len(set(found.refs)) == len(found.refs) <= size
    new = [one for one in found.tasks if one.reason.kind != "retry"]
    assert len(new) <= settings.max_new and not seen & {one.task for one in new}
    assert all(one.task.seed >= FIRST for one in found.tasks)
    assert set(found.refs) - seen <= {one.ref for one in pool} | {one.candidate.ref for one in variants}
    failures = {one.task for one in failed}
    for one in found.tasks:
        match one.reason.kind:
            case "similar":
                assert one.reason.failure in failures and one.reason.score > 0
                assert 1 <= one.reason.rank <= settings.top_k and 1 <= one.reason.named_by <= len(failures)
            case "rare":
                assert one.reason.failure in failures and one.category == one.reason.category
            case "retry":
                assert one.task in failures
            case "explore":
                assert one.task in {candidate.ref for candidate in pool}
    counts = found.counts
    assert counts.similar + counts.rare + counts.explore + counts.retry + counts.missing == size
    if counts.missing and len(new) < settings.max_new and counts.retry < size:
        assert {one.ref for one in pool} <= seen | set(found.refs), "something was left, and was not taken"

    for some in (failed, pool, variants):
        rng.shuffle(some)
    again = next_tasks(failed, list(seen), pool, TfIdf(), settings, size=size, seed=7, variants=variants)
    assert again == found, "the order of the arguments decides nothing"
    assert Selection.model_validate_json(found.model_dump_json()) == found
