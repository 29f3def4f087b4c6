"""Sharing of runs, and the tasks that a policy may be evaluated on."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from agent.run.components import open_components
from agent.run.discover_traces import discover_traces
from agent.run.run_store import Manifest, RunFolder
from envs.core.errors import BadInput
from envs.core.observation import Observation
from envs.core.tasks import Milestone, TaskRef
from judges.base import Progress
from models.embedded import embedded_dir
from tests.agent.foreign_machine import keyed
from training.loop import rollouts as playing
from training.loop.evaluation_tasks import evaluation_refs
from training.loop.metrics import played_in
from training.loop.rollouts import check_policy, evaluation_config, play_run, rollout_config, shared_key
from training.loop.settings import EvaluationSettings, RaySettings, RolloutSettings
from training.rollouts.pool import find_runs

TASKS = tuple(TaskRef(suite="miniwob", name="click-test", seed=seed) for seed in (3, 4))


def key(
    policy: Path, settings: RolloutSettings | None = None, *, seed: int = 1, tasks: tuple[TaskRef, ...] = TASKS
) -> str:
    return shared_key(rollout_config(policy, settings or RolloutSettings(), seed), policy, tasks)


@pytest.fixture(scope="module")
def policy() -> Path:
    return embedded_dir()


def test_the_same_weights_elsewhere_are_the_same_rollouts(policy: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(policy, copy)
    assert key(copy) == key(policy)
    weights = load_file(copy / "model.safetensors")
    name = sorted(weights)[0]
    weights[name] = weights[name] + torch.tensor(0.01, dtype=weights[name].dtype)
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    assert key(copy) != key(policy)


def test_other_tasks_and_seeds_are_other_rollouts(policy: Path) -> None:
    keys = [key(policy), key(policy, seed=2), key(policy, tasks=TASKS[:1]), key(policy, tasks=TASKS[::-1])]
    assert len(set(keys)) == 4


@pytest.mark.parametrize(
    "changed", [{"temperature": 0.5}, {"attempts": 2}, {"show_plan": True}, {"profile": "large"}], ids=str
)
def test_what_changes_rollouts_changes_their_key(policy: Path, changed: dict[str, object]) -> None:
    assert key(policy, RolloutSettings.model_validate(changed)) != key(policy)


def test_the_number_of_workers_does_not_change_the_key(policy: Path) -> None:
    assert key(policy, RolloutSettings(workers=7)) == key(policy, RolloutSettings(workers=1))


@pytest.mark.browser
async def test_concurrent_arms_share_their_rollouts(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playing, "WAIT", 0.05)
    config = rollout_config(policy, RolloutSettings(workers=1), 1)
    messages: dict[str, list[str]] = {"mira": [], "awr": []}
    runs = await asyncio.gather(
        *(
            play_run(
                tmp_path / arm / "rollouts.json",
                config,
                policy,
                TASKS,
                shared=tmp_path / "shared",
                listeners=(),
                log=plan.append,
            )
            for arm, plan in messages.items()
        )
    )
    assert runs[0] == runs[1]
    assert len(discover_traces([runs[0]])) == len(TASKS)
    assert messages["mira"] == []
    assert [line.split(":")[0] for line in messages["awr"]] == ["another process plays the same run, waiting for it"]


def test_a_clusters_folders_have_another_key(policy: Path) -> None:
    config = rollout_config(policy, RolloutSettings(), 1)
    keys = {shared_key(config, policy, TASKS, ray) for ray in (None, RaySettings(workers=1), RaySettings(workers=2))}
    assert len(keys) == 2


@pytest.mark.browser
@pytest.mark.heavy
async def test_a_phase_is_played_by_a_cluster_and_resumed(policy: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the extra `ray`")
    config, mark, ray = rollout_config(policy, RolloutSettings(workers=1), 1), tmp_path / "rollouts.json", RaySettings
    for _ in range(2):
        run = await play_run(
            mark,
            config,
            policy,
            TASKS,
            shared=None,
            listeners=(),
            log=print,
            ray=ray(workers=1, shard_size=1),
        )
        assert run == tmp_path / "rollouts" / "run"
        assert [item.path.name for item in find_runs(run)] == ["shard-000", "shard-001"]
        counts = played_in(run)
        assert (counts.episodes, counts.successes, counts.broken) == (2, 2, 0)
        assert len(discover_traces([run])) == 2, "nothing was played twice"


def test_an_evaluation_shows_a_plan_only_on_request(policy: Path) -> None:
    config = evaluation_config(policy, EvaluationSettings(), RolloutSettings(), 1)
    assert (config.planner, config.show_plan, config.temperature) == ("reference", False, 0.0)
    assert shared_key(config, policy, TASKS) != key(policy)
    planned = evaluation_config(policy, EvaluationSettings(planner="same"), RolloutSettings(), 1)
    assert (planned.planner, planned.show_plan) == ("same", True)


@pytest.fixture
def planner_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`scripted:PLANNER` rates the milestone `See the button` as done."""
    monkeypatch.chdir(tmp_path)
    opinion = {"milestones": {"m1": {"quote": "button Save", "answer": "yes"}}, "current_complete": True}
    plan = {"when": "See the button", "answer": {**opinion, "next_milestone": "", "reason": "seen"}}
    Path("PLANNER").write_text(json.dumps([plan]), encoding="utf-8")


@pytest.mark.usefixtures("planner_file")
@pytest.mark.parametrize(
    ("planner", "rater"),
    [("none", "state"), ("reference", "state"), ("scripted:PLANNER", "scripted:PLANNER"), ("same", "EMBEDDED")],
)
async def test_the_milestones_of_an_evaluations_planner_can_be_reached(policy: Path, planner: str, rater: str) -> None:
    """The state checkers know the reference milestones only, so a model's milestones would never count as done."""
    config = evaluation_config(policy, EvaluationSettings(planner=planner), RolloutSettings(), 1)
    observation = Observation("http://a.test/", "A", "button Save", (), (), "0" * 16, (1280, 800), (0, 0), 0)
    async with open_components(config, "miniwob") as components:
        assert components.rater.spec == (f"local:{policy}" if rater == "EMBEDDED" else rater)
        if rater == "scripted:PLANNER":
            plan = (Milestone(id="m1", text="See the button"),)
            rated = await components.rater.rate(Progress("Save", observation, milestones=plan, z=(False,)))
            assert rated.rating.z == (True,)


def test_an_evaluation_is_every_name_on_every_seed() -> None:
    refs = evaluation_refs(EvaluationSettings(names=("click-test", "login-user"), seeds=(0, 5)))
    assert [ref.id for ref in refs] == [
        "miniwob/click-test/0",
        "miniwob/click-test/5",
        "miniwob/login-user/0",
        "miniwob/login-user/5",
    ]
    assert len(evaluation_refs(EvaluationSettings(seeds=(0,)))) == 30, "the named tasks"


@pytest.mark.parametrize(
    ("settings", "messages"),
    [
        pytest.param({"seeds": (0, 1_000_000)}, "seed 1000000 of miniwob may be trained on", id="training seed"),
        pytest.param({"suite": "sites", "split": "test", "seeds": (8,)}, "take one below 8", id="of the sites"),
        pytest.param({"suite": "sites", "split": "tset"}, "no split 'tset'", id="unknown split"),
        pytest.param({"split": "test"}, "has no splits", id="a split where there are none"),
        pytest.param({"names": ("click-tset",)}, "no task 'click-tset'", id="unknown task"),
        pytest.param({"suite": "sites", "names": ("nope",), "seeds": (0,)}, "no task 'nope'", id="no template"),
        pytest.param({"suite": "webarena"}, "on sites, miniwob, or .*mira eval --play --suite webarena ", id="else"),
        pytest.param({"seeds": ()}, "needs tasks and seeds", id="nothing"),
    ],
)
def test_invalid_evaluation_settings_are_refused(settings: dict[str, object], messages: str) -> None:
    with pytest.raises(BadInput, match=messages):
        evaluation_refs(EvaluationSettings.model_validate(settings))


def test_a_folder_that_cannot_be_trained_from(tmp_path: Path, policy: Path) -> None:
    check_policy(policy)
    with pytest.raises(BadInput, match=r"no config\.json"):
        check_policy(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(BadInput, match=r"no \*\.safetensors"):
        check_policy(tmp_path)


def test_an_adapter_is_played_on_its_base(tmp_path: Path, policy: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(policy)}))
    assert rollout_config(tmp_path, RolloutSettings(), 1).policy == f"local:{policy.resolve()}+{tmp_path}"
    assert rollout_config(policy, RolloutSettings(), 1).policy == f"local:{policy}"


def test_a_model_with_unsupported_layers_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    messages = json.loads((embedded_dir() / "config.json").read_text(encoding="utf-8"))
    layers = ["linear_attention"] * messages["num_hidden_layers"]
    (tmp_path / "config.json").write_text(json.dumps({**messages, "model_type": "qwen3_next", "layer_types": layers}))
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(
        BadInput, match=r"a model of type qwen3_next cannot be trained on packed sequences.*linear_attention"
    ):
        check_policy(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(BadInput, match=r"the configuration in .* cannot be read"):
        check_policy(tmp_path)


@pytest.mark.browser
async def test_rollouts_of_another_machine_resume_with_this_loops_settings(policy: Path, tmp_path: Path) -> None:
    """No model and no setting with access to this machine is taken from its run.json."""
    refs = (TaskRef(suite="miniwob", name="click-test", seed=1_000_000),)
    config = rollout_config(policy, RolloutSettings(workers=1, attempts=1), 0)
    theirs = config.model_copy(update={"policy": "local:/of/theirs", "secrets": ("PIN=env:HOME",)})
    run = RunFolder(tmp_path / "rollouts" / "run")
    with keyed(tmp_path / "abroad"):
        begun = Manifest(
            run_id="run", created_at="", config=theirs, suite="miniwob", names=(), seeds=(), picked=refs, versions={}
        )
        run.create(begun)
    result = await play_run(tmp_path / "rollouts.json", config, policy, refs, shared=None, listeners=(), log=print)
    assert (result, played_in(result).episodes) == (run.path, 1)
    manifest, own = run.read_marked()
    assert (own, manifest.config.policy, manifest.config.secrets) == (True, config.policy, ())
