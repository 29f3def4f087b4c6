"""`mira train mira` on a suite that an installed package adds: `tests/data/acme`, as pip would leave it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.run.suites import known_suite
from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from envs.suites.entry import SuiteEntry
from models.registry import added_points
from tests.agent.mira_process import run_mira
from training.loop.curriculum import Failed, build_pool, held_out, training_seeds, variants_of
from training.loop.evaluation_tasks import evaluation_refs
from training.loop.settings import EvaluationSettings

ACME = Path(__file__).parents[2] / "data" / "acme"


@pytest.fixture
def acme() -> Iterator[str]:
    """The name of the suite, while its package is found in this process."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(ACME))
        added_points.cache_clear()
        yield "acme"
    added_points.cache_clear()


def ref(name: str, seed: int) -> TaskRef:
    return TaskRef(suite="acme", name=name, seed=seed)


async def test_its_pool_has_training_seeds_of_tasks_that_are_not_held_out(acme: str) -> None:
    pool = await build_pool(acme, names=None, seeds=training_seeds(acme), size=2)
    assert [item.ref for item in pool] == [ref("click-test", 100), ref("click-test", 101)]
    assert {(item.category, item.instruction, item.known) for item in pool} == {("form", "Click the button.", False)}
    assert len(await build_pool(acme, names=None, seeds=training_seeds(acme), size=1_500)) == 100, "all there are"
    for names, seeds in ((["click-test-2"], range(100, 105)), (["no"], range(100, 105)), (None, range(99, 105))):
        with pytest.raises(BadInput):
            await build_pool(acme, names=names, seeds=seeds, size=1)


async def test_its_evaluation_instances_are_held_out(acme: str) -> None:
    held = await held_out([ref("click-test", 100), ref("click-test", 99), ref("click-test-2", 100)])
    assert list(held) == [ref("click-test", 99), ref("click-test-2", 100)]
    assert "train on seeds from 100" in held[ref("click-test", 99)]
    assert "held out for test" in held[ref("click-test-2", 100)]


async def test_variants_of_its_tasks_end_with_its_seeds(acme: str) -> None:
    failed = Failed(task=ref("click-test", 97 + 100), instruction="x", category="form", failure="")
    variants = await variants_of([failed], [], each=5)
    assert [one.candidate.ref for one in variants] == [ref("click-test", 198), ref("click-test", 199)]


def test_a_training_run_is_evaluated_on_its_other_seeds(acme: str) -> None:
    chosen = EvaluationSettings(suite=acme, split="test", seeds=(0, 3))
    assert evaluation_refs(chosen) == (ref("click-test-2", 0), ref("click-test-2", 3))
    named = EvaluationSettings(suite=acme, names=("click-test",), seeds=(99,))
    assert evaluation_refs(named) == (ref("click-test", 99),), "a training task on another seed"
    for settings, says in (
        (EvaluationSettings(suite=acme, split="test", seeds=(100,)), "take one below 100"),
        (EvaluationSettings(suite=acme, seeds=(0,)), "acme has no split '': take test, train"),
    ):
        with pytest.raises(BadInput, match=says):
            evaluation_refs(settings)


@pytest.mark.parametrize("seeds", [range(5, 5), range(9), range(100, 200, 2), range(200, 100, -1)], ids=str)
def test_training_seeds_that_leave_none_for_evaluation_are_refused(seeds: range) -> None:
    made = known_suite("miniwob")
    with pytest.raises(ValueError, match="above those for evaluation"):
        SuiteEntry(made.make, made.infos, seeds)


@pytest.mark.browser
@pytest.mark.slow
def test_a_phase_plays_and_learns_its_tasks(tmp_path: Path) -> None:
    words = ["arm=filtered_bc", "phases=1", "pool.suite=acme", "pool.size=2", "rollouts.tasks=2", "compute.threads=1"]
    words += ["evaluation.suite=acme", "evaluation.split=test", "evaluation.seeds=[0]", "compute.cpu=true"]
    changes = [part for word in words for part in ("--set", word)]
    done = run_mira(
        "train", "mira", "-o", "out", *changes, "--json", cwd=tmp_path, env=dict(os.environ), packages=(ACME,)
    )
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)["phases"][1]
    assert first["rollouts"]["episodes"] == 2 and first["evaluation"]["episodes"] == 1
    played = {path.name for path in (tmp_path / "out" / "phase-1").rglob("episodes/*.jsonl")}
    assert played == {"click-test-100-a1.jsonl", "click-test-101-a1.jsonl", "click-test-2-0-a1.jsonl"}
