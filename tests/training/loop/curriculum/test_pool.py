"""The real pools of both suites: no held-out tasks, a fixed order, instructions where known."""

from __future__ import annotations

from collections import Counter

import pytest
import pytest_asyncio

from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from envs.suites.sites.catalog import template, templates
from envs.suites.sites.splits import EVALUATION_SEEDS, split_of
from envs.suites.sites.suite import InstanceSampler, pool
from training.loop.curriculum import (
    Candidate,
    CurriculumSettings,
    Failed,
    build_pool,
    check_trainable,
    next_phase,
    training_seeds,
    variants_of,
    with_instructions,
)

FIRST = 1_000_000


def failed(name: str, seed: int, suite: str = "sites") -> Failed:
    return Failed(task=TaskRef(suite=suite, name=name, seed=seed), instruction="x", category="c", failure="")


# MiniWoB++


async def test_a_miniwob_pool_has_one_instance_of_each_task_per_round() -> None:
    result = await build_pool(
        "miniwob", names=["click-test", "login-user"], seeds=range(FIRST + 5, FIRST + 900), size=3
    )
    assert [(item.ref.name, item.ref.seed) for item in result] == [
        ("click-test", FIRST + 5),
        ("login-user", FIRST + 5),
        ("click-test", FIRST + 6),
    ]
    assert [(item.category, item.known, item.instruction) for item in result[:2]] == [
        ("navigation", False, ""),
        ("form", False, ""),
    ]


async def test_all_of_miniwob_is_every_page_once_a_round() -> None:
    result = await build_pool("miniwob", names=None, seeds=training_seeds("miniwob"), size=260)
    assert set(Counter(item.ref.name for item in result).values()) == {2}


REFUSED: list[tuple[str, str, list[str] | None, range, int]] = [
    ("an evaluation seed", "miniwob", ["click-test"], range(999_999, FIRST + 5), 5),
    ("an evaluation instance", "sites", ["shop-order"], range(7, 20), 5),
    ("a negative seed", "sites", ["shop-order"], range(-5, 20), 5),
    ("an unknown task", "miniwob", ["click-nothing"], range(FIRST, FIRST + 5), 5),
    ("an unknown template", "sites", ["shop-nothing"], range(8, 20), 5),
    ("a test template", "sites", ["shop-order", "shop-compare"], range(8, 20), 5),
    ("a validation template", "sites", ["map-drive-time"], range(8, 20), 5),
    ("a benchmark", "webarena-lite", None, range(8, 20), 5),
    ("no seeds", "miniwob", ["click-test"], range(FIRST, FIRST), 5),
    ("falling seeds", "miniwob", ["click-test"], range(FIRST + 5, FIRST, -1), 5),
    ("no size", "miniwob", ["click-test"], range(FIRST, FIRST + 5), 0),
]


@pytest.mark.parametrize("case", REFUSED, ids=[case[0] for case in REFUSED])
async def test_a_pool_with_held_out_tasks_is_refused(case: tuple[str, str, list[str] | None, range, int]) -> None:
    _, suite, names, seeds, size = case
    with pytest.raises(BadInput) as error:
        await build_pool(suite, names=names, seeds=seeds, size=size)
    assert "\n" not in str(error.value)


def test_a_recorded_instruction_fills_its_instance_and_stands_in_for_others() -> None:
    refs = [TaskRef(suite="miniwob", name="enter-text", seed=FIRST + n) for n in range(3)]
    own = Candidate(TaskRef(suite="sites", name="shop-order", seed=8), "Order a lamp.", "shop")
    pool = [*(Candidate(ref, "", "form", known=False) for ref in refs), own]
    recorded = [(refs[2], "Enter Bo"), (refs[1], "Enter Al"), (own.ref, "something else")]
    assert [(item.instruction, item.known) for item in with_instructions(pool, recorded)] == [
        ("Enter Al", False),
        ("Enter Al", True),
        ("Enter Bo", True),
        ("Order a lamp.", True),
    ]


async def test_a_variant_of_a_miniwob_task_is_an_instance_above_every_one_played() -> None:
    taken = [TaskRef(suite="miniwob", name="click-test", seed=FIRST + n) for n in (1, 7)]
    taken.append(TaskRef(suite="miniwob", name="click-test-2", seed=FIRST + 99))
    result = await variants_of([failed("click-test", FIRST + 3, "miniwob")] * 2, taken, each=2)
    assert [(item.candidate.ref.seed - FIRST, item.how) for item in result] == [(8, "instance"), (9, "instance")]


# The sites, from their golden states

TRAINED = {name for name in templates() if split_of(name) == "train"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sampler() -> InstanceSampler:
    return InstanceSampler()


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_the_sites_pool_is_the_suites_own_with_every_instruction_known(sampler: InstanceSampler) -> None:
    result = await build_pool("sites", names=None, seeds=training_seeds("sites"), size=1_500, sampler=sampler)
    assert tuple(item.ref for item in result) == await pool(sampler, 1_500)
    assert {split_of(item.ref.name) for item in result} == {"train"}
    assert min(item.ref.seed for item in result) == EVALUATION_SEEDS
    assert all(item.known and item.instruction for item in result)
    assert (len(TRAINED), TRAINED - {item.ref.name for item in result}) == (85, {"code-count-owned"})
    assert len(await sampler.candidates(template("code-count-owned"))) == EVALUATION_SEEDS, "none is for training"


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_variants_of_a_sites_task_are_other_wordings_then_other_instances(sampler: InstanceSampler) -> None:
    distinct = len(await sampler.candidates(template("shop-reorder")))
    original = await sampler.instance(TaskRef(suite="sites", name="shop-reorder", seed=9))
    reworded, other = await variants_of([failed("shop-reorder", 9)], [], each=2, sampler=sampler)
    assert (reworded.how, reworded.candidate.ref.seed) == ("wording", 9 + distinct)
    assert reworded.candidate.instruction != original.instruction
    assert (await sampler.instance(reworded.candidate.ref)).params == original.params
    assert (other.how, other.candidate.ref.seed) == ("instance", 10)

    back, *_ = await variants_of([failed("shop-reorder", 9 + distinct)], [], each=1, sampler=sampler)
    assert back.candidate.ref.seed == 9, "two wordings: the other one's other one is the first"


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_a_template_gives_all_variants_except_reworded_evaluation_tasks(sampler: InstanceSampler) -> None:
    distinct = len(await sampler.candidates(template("shop-reorder")))
    result = await variants_of([failed("shop-reorder", seed) for seed in (8, 9)], [], each=99, sampler=sampler)
    seeds = [item.candidate.ref.seed for item in result]
    assert len(set(seeds)) == len(seeds) and {seed % distinct for seed in seeds} == set(range(8, distinct))
    evaluated = TaskRef(suite="sites", name="shop-reorder", seed=distinct + 7)
    with pytest.raises(BadInput, match="a rewording of 7"):
        check_trainable(evaluated, distinct)
    with pytest.raises(BadInput, match="a rewording of 7"):
        await variants_of([failed("shop-reorder", evaluated.seed)], [], sampler=sampler)


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_a_phase_from_the_real_pool_practises_failed_skills(sampler: InstanceSampler) -> None:
    """Most similar tasks are of the failed task's own site; a site without a pool gets variants."""
    everything = await build_pool("sites", names=None, seeds=training_seeds("sites"), size=1_500, sampler=sampler)
    failures = [
        Failed(task=item.ref, instruction=item.instruction, category=item.category, failure="stuck_midway")
        for item in everything
        if item.ref.name in ("shop-add-to-basket", "forum-vote", "map-opening-hours") and item.ref.seed < 11
    ]
    without_map = [item for item in everything if item.category != "map"]
    settings = CurriculumSettings(top_k=4, rare_share=0.2, overlap=False)
    result = await next_phase(failures, [], without_map, settings, size=50, seed=3, sampler=sampler)
    near = Counter(
        (item.reason.failure.name, item.category)
        for item in result.tasks
        if item.reason.kind == "similar" and item.category == template(item.reason.failure.name).category
    )
    assert result.counts.model_dump(exclude={"explore", "similar"}) == {
        "rare": 6,
        "retry": 0,
        "missing": 0,
        "too_hard": 0,
        "too_easy": 0,
    }
    assert result.rare_categories == ("map",)
    assert {item.task.name for item in result.tasks if item.reason.kind == "rare"} == {"map-opening-hours"}
    assert near["shop-add-to-basket", "shop"] >= 9 and near["forum-vote", "forum"] >= 9, "of 12 each"
    for item in result.tasks:
        check_trainable(item.task, len(await sampler.candidates(template(item.task.name))))
