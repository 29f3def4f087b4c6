"""The catalog of tasks: number, kinds, splits and wordings."""

from __future__ import annotations

from collections import Counter
from types import ModuleType
from typing import Any, get_args

import pytest

from envs.suites.sites import splits
from envs.suites.sites.catalog import templates
from envs.suites.sites.golden import missing_packages
from envs.suites.sites.kinds import KINDS
from envs.suites.sites.splits import EVALUATION_SEEDS, POOL, split_of
from envs.suites.sites.suite import InstanceSampler, pool
from envs.suites.sites.tasks import cms, forum
from envs.suites.sites.templates import Difficulty, Kind, Template, instance
from tests.sampled import sampled


def test_there_is_enough_of_everything() -> None:
    all_templates = templates().values()
    assert len(all_templates) >= 60
    assert {site for template in all_templates for site in template.sites} == set(KINDS)
    assert sum(len(template.sites) > 1 for template in all_templates) >= 4, "some cross two sites"
    assert sum(template.kind == "impossible" for template in all_templates) >= 10
    for kind in get_args(Kind):
        assert any(template.kind == kind for template in all_templates)
    for difficulty in get_args(Difficulty):
        assert sum(template.difficulty == difficulty for template in all_templates) >= 10


@pytest.mark.parametrize("module", [cms, forum], ids=["cms", "forum"])
def test_a_site_has_several_kinds_and_refusals(module: ModuleType) -> None:
    assert {template.kind for template in module.TEMPLATES} == set(get_args(Kind))
    assert {template.difficulty for template in module.TEMPLATES} == set(get_args(Difficulty))
    assert len(module.TEMPLATES) >= 12


def test_the_splits_are_of_templates_that_exist_and_hold_every_category() -> None:
    assert not splits.VALIDATION & splits.TEST
    assert templates().keys() >= splits.VALIDATION | splits.TEST
    held_out = Counter((split_of(name), template.category) for name, template in templates().items())
    for category in {template.category for template in templates().values()}:
        assert all(held_out[split, category] for split in splits.SPLITS)


@pytest.mark.parametrize("template", templates().values(), ids=lambda template: template.name)
def test_a_template_is_worded_in_several_ways_for_somebody_who_can_be_logged_in(template: Template[Any]) -> None:
    assert len(template.wordings) >= 2
    assert len(set(template.wordings)) == len(template.wordings)
    assert all(persona in KINDS[site].personas for site, persona in template.personas.items())
    assert set(template.start) <= set(template.sites)


needs_sites = pytest.mark.skipif(
    any(missing_packages(name) for name in KINDS), reason="the extra `sites` is not installed"
)


@pytest.fixture(scope="module")
def sampler() -> InstanceSampler:
    """A sampler. It builds missing golden states."""
    return InstanceSampler()


@pytest.mark.slow
@needs_sites
@pytest.mark.parametrize("template", sampled((pytest.param(one, id=one.name) for one in templates().values()), every=3))
async def test_a_template_offers_distinct_tasks_with_one_right_answer_each(
    sampler: InstanceSampler, template: Template[Any]
) -> None:
    candidates = await sampler.candidates(template)
    assert 8 <= len(set(candidates)) == len(candidates) <= 300
    assert await InstanceSampler().candidates(template) == candidates, "the same each time"
    instructions = {instance(template, candidates, seed).instruction for seed in range(min(40, len(candidates)))}
    assert len(instructions) == min(40, len(candidates)), "distinct tasks are worded distinctly"
    assert "{" not in "".join(instructions)
    for params in candidates[:30]:
        answer = template.outcome(params).answer
        if answer is not None:
            assert answer.accepts(answer.truth())
            assert [mutant for mutant in answer.mutants() if answer.accepts(mutant)] == []


@pytest.mark.slow
@needs_sites
async def test_the_pool_is_of_training_templates_and_the_same_each_time(sampler: InstanceSampler) -> None:
    tasks = await pool(sampler)
    assert len(set(tasks)) == POOL
    assert {split_of(task.name) for task in tasks} == {"train"}
    assert min(task.seed for task in tasks) == EVALUATION_SEEDS
    assert tasks == await pool(InstanceSampler())
