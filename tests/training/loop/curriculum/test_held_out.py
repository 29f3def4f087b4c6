"""Which traces may be trained on: the curriculum's rule, applied to episodes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from envs.core.tasks import TaskRef
from envs.suites.sites.catalog import template
from envs.suites.sites.suite import InstanceSampler
from training.loop.curriculum import held_out, refusal

CASES = [
    ("a training seed", TaskRef(suite="miniwob", name="click-test", seed=1_000_000), None),
    ("an evaluation seed", TaskRef(suite="miniwob", name="click-test", seed=999_999), "train on seeds from 1000000"),
    ("no task", TaskRef(suite="miniwob", name="click-nothing", seed=1_000_000), "no task 'click-nothing'"),
    ("a test template", TaskRef(suite="sites", name="shop-compare", seed=8), "held out for test"),
    ("an evaluation instance", TaskRef(suite="sites", name="shop-order", seed=7), "train on seeds from 8"),
    ("a benchmark", TaskRef(suite="webarena-lite", name="7"), "'webarena-lite' is never trained on"),
    ("an open task", TaskRef(suite="open", name="task"), None),
    ("a benchmark through BrowserGym", TaskRef(suite="browsergym:webarena", name="webarena.7"), "is never trained on"),
    ("BrowserGym's", TaskRef(suite="browsergym:miniwob", name="miniwob.click-test"), None),
]


@dataclass(frozen=True)
class Episode:
    run_id: str
    episode_id: str
    task: TaskRef


@pytest.mark.parametrize(("task", "reason"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
async def test_evaluation_instances_are_not_trained_on(task: TaskRef, reason: str | None) -> None:
    result = await held_out([task, task])
    if reason is None:
        assert result == {}
    else:
        assert list(result) == [task] and reason in result[task]


async def test_a_refusal_names_the_first_episode_and_how_many_there_are() -> None:
    episodes = [
        Episode("r", f"e{seed}", TaskRef(suite="miniwob", name="click-test", seed=seed))
        for seed in (1_000_000, 4, 4, 2)
    ]
    assert refusal(episodes, await held_out(item.task for item in episodes)) == (
        "3 of 4 episodes are not for training, the first is e4 of run r: miniwob/click-test/4: seed 4 is for "
        "evaluation; train on seeds from 1000000"
    )


@pytest.mark.slow
async def test_a_reworded_evaluation_task_is_held_out_too() -> None:
    sampler = InstanceSampler()
    distinct = len(await sampler.candidates(template("shop-reorder")))
    own, theirs = (TaskRef(suite="sites", name="shop-reorder", seed=seed) for seed in (distinct - 1, distinct + 7))
    result = await held_out([own, theirs], sampler)
    assert list(result) == [theirs] and "a rewording of 7" in result[theirs]
