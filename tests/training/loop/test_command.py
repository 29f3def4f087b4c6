"""`mira train` on wrong input: one line, exit code 2, nothing written."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from envs.core.errors import BadInput
from envs.core.run_lock import LOCK_NAME, RunLock, RunLocked
from envs.suites.sites.golden import PACKAGES
from models.embedded import embedded_dir
from tests.agent.episodes import Play, write_run
from tests.envs.core.edits import rechained, rewrite
from tests.mira_command import mira
from training.engine.checkpoints import load_policy, save_policy
from training.loop.loop import Loop
from training.loop.parts import write_record
from training.loop.phase import learn
from training.loop.phase_context import PhaseContext
from training.loop.settings import LoopSettings
from training.loop.sft import BEGUN, Begun, SupervisedSettings

MIRA = ["train", "mira", "-o", "out"]
SFT = ["train", "sft", "-o", "out"]
FIRST = 1_000_000
"""First MiniWoB++ seed for training."""


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "lost", [Play(outcome="failure"), Play(seed=1, outcome="broken")])
    write_run(tmp_path / "measured", [Play(seed=FIRST), Play(seed=7), Play(seed=3), Play(seed=5, outcome="failure")])
    write_run(tmp_path / "held", [Play(seed=7)])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    (tmp_path / "good.toml").write_text("phases = 2\n")
    (tmp_path / "optimization.toml").write_text("[optimization]\nepochs = 2\n")
    (tmp_path / "bad.toml").write_text("[rollouts]\ntaks = 3\n")


SEED_7 = (
    "the first is login-user-7-a1 of run measured: miniwob/login-user/7: seed 7 is for evaluation; "
    "train on seeds from 1000000"
)
WRONG = [
    pytest.param([*MIRA, "-c", "nowhere.toml"], "'nowhere.toml' does not exist", id="no such config"),
    pytest.param([*MIRA, "-c", "bad.toml"], "bad.toml: unknown key 'rollouts.taks'", id="unknown key in a file"),
    pytest.param([*MIRA, "--set", "targets.alfa=1"], "unknown key 'targets.alfa'", id="unknown key"),
    pytest.param(
        [*MIRA, "-c", "good.toml", "--set", "targets.alfa=1"],
        "mira: --set: unknown key 'targets.alfa'",
        id="unknown key over a file",
    ),
    pytest.param(
        [*MIRA, "-c", "good.toml", "--set", "arm=ppo"], "mira: --set: unknown arm 'ppo'", id="unknown arm over a file"
    ),
    pytest.param(
        [*SFT, "measured", "-c", "optimization.toml", "--set", "optimization.epoch=2"],
        "mira: --set: unknown key 'optimization.epoch'",
        id="unknown key of sft over a file",
    ),
    pytest.param([*MIRA, "--set", "alpha"], "--set 'alpha' is not KEY=VALUE", id="no value"),
    pytest.param([*MIRA, "--set", "arm=ppo"], "unknown arm 'ppo'", id="unknown arm"),
    pytest.param([*MIRA, "--set", "start=nowhere"], "'nowhere' is not a checkpoint", id="no start"),
    pytest.param([*MIRA, "--set", 'pool.names=["click-tset"]'], "no task 'click-tset'", id="unknown task"),
    pytest.param([*MIRA, "--set", "pool.suite=webarena"], "never trained on", id="a benchmark as pool"),
    pytest.param([*MIRA, "--set", "pool.split=test"], "pool.split", id="a split as pool"),
    pytest.param([*MIRA, "--set", "evaluation.seeds=[1000000]"], "may be trained on", id="evaluated on training"),
    pytest.param([*MIRA, "--set", 'demonstrations=["nowhere"]'], "'nowhere' holds no traces", id="no demonstrations"),
    pytest.param(["train", "mira", "-o", "full"], "'full' is not empty", id="a folder of something else"),
    pytest.param([*SFT, "nowhere"], "'nowhere' holds no traces", id="no traces"),
    pytest.param([*SFT, "lost", "--start", "nowhere"], "'nowhere' is not a checkpoint", id="no start of sft"),
    pytest.param([*SFT, "lost"], "nothing to learn from in 2 episodes (1 broken, 1 failed)", id="only failures"),
    pytest.param(
        [*SFT, "held"], "nothing to learn from in 1 episodes (1 held out for evaluation)", id="sft on evaluation"
    ),
    pytest.param(
        [*MIRA, "--set", 'demonstrations=["measured"]'],
        f"demonstrations: 2 of 3 episodes are not for training, {SEED_7}",
        id="demonstrations of evaluation",
    ),
    pytest.param([*SFT, "lost", "--set", "epochs=3"], "unknown key 'epochs'", id="unknown key of sft"),
    pytest.param(
        [*SFT, "measured", "--set", "optimization.epochs=0"], "optimization.epochs must be at least 1", id="no epoch"
    ),
    pytest.param(["train", "sft", "-o", "full", "lost"], "'full' is not an empty folder", id="sft over something else"),
    pytest.param(
        ["train", "sft", "-o", "bad.toml", "lost"], "--out 'bad.toml' is a file: name a folder", id="sft over a file"
    ),
    pytest.param(["train", "mira", "-o", "bad.toml"], "'bad.toml' is a file: name a folder", id="a file as folder"),
    pytest.param(
        [*SFT, "measured", "--set", "compute.shared_base=true"], "compute.shared_base is for", id="sft on a shared base"
    ),
    pytest.param([*MIRA, "--set", 'arm=["mira"]'], "unknown arm ['mira']", id="an arm that is no word"),
    pytest.param([*MIRA, "--set", 'curriculum.similarity="model"'], "needs curriculum.judge", id="no model named"),
    pytest.param([*MIRA, "--set", 'curriculum.judge="openai:x"'], "and only it, needs", id="a model for nothing"),
    pytest.param(
        [*MIRA, "--set", 'curriculum.similarity="model"', "--set", 'curriculum.judge="openai:x"'],
        "OPENAI_API_KEY",
        id="no key",
    ),
    pytest.param(
        [*MIRA, "--set", "arm=filtered_bc", "--set", "curriculum.value_band={}"], "needs a value critic", id="no value"
    ),
    pytest.param(
        [*MIRA, "--set", 'evaluation.names=["click-test"]', "--set", "evaluation.split=test"],
        "name the tasks, or take those of a split",
        id="names and a split",
    ),
    pytest.param([*MIRA, "--set", "potential.folds=2"], "potential.folds: only the value critic", id="folds"),
    pytest.param([*MIRA, "--set", "arm=mira_group"], "set rollouts.attempts to 2 or more", id="a group of one"),
    pytest.param(
        [*MIRA, "--set", "arm=filtered_bc", "--set", "rollouts.attempts=2", "--set", "targets.group_weight=1"],
        "arm 'filtered_bc' uses none",
        id="a baseline without advantages",
    ),
    pytest.param(
        [*MIRA, "--set", "arm=webrl_code", "--set", "rollouts.attempts=2", "--set", "targets.group_weight=1"],
        "targets.group_weight is a baseline of Eq. 10",
        id="a baseline in WebRL's code",
    ),
    pytest.param(
        [*MIRA, "--set", "arm=filtered_bc", "--set", "actor.failures_from=key_step"],
        "actor.failures_from 'key_step' has no effect",
        id="failures of successes",
    ),
    pytest.param(
        [*MIRA, "--set", "arm=mira_anchored", "--set", "actor.objective.kind=weighted"],
        "apply to a regression, not to 'weighted'",
        id="an anchor of nothing",
    ),
    pytest.param(
        [*MIRA, "--set", "arm=filtered_bc", "--set", "actor.keep=digirl"],
        "needs a value critic",
        id="filters by no value",
    ),
    pytest.param(
        [*MIRA, "--set", "rollouts.constrained=true", "--set", 'rollouts.server={url="http://h:1", command=["vllm"]}'],
        "rollouts.constrained with rollouts.server: vLLM computes log-probabilities after the limit",
        id="constrained on a server",
    ),
    pytest.param(
        [*MIRA, "--set", "targets.alpha=0", "--set", "targets.shape_failures=true"],
        "targets.shape_failures: no effect, because targets.alpha is 0",
        id="failures of no shaping",
    ),
    pytest.param(
        [*MIRA, "--set", "targets.alpha=0", "--set", "potential.milestones=true"],
        "potential.milestones: no effect, because targets.alpha is 0",
        id="milestones of no critic",
    ),
    pytest.param(
        [*MIRA, "--set", "targets.gamma=1", "--set", "targets.discounted_shaping=true"],
        "targets.discounted_shaping: no effect, because targets.gamma is 1",
        id="a discount of 1",
    ),
    pytest.param(
        [*MIRA, "--set", "rollouts.planner=none"], "set targets.alpha to 0, or name runs", id="progress of no plan"
    ),
    pytest.param(
        [*MIRA, "--set", "rollouts.planner=none", "--set", "targets.alpha=0", "--set", "value.milestones=true"],
        "value.milestones: no effect, because rollouts.planner 'none' makes no milestones",
        id="milestones of no plan",
    ),
    pytest.param(
        [*MIRA, "--set", "evaluation.attempts=4"],
        "evaluation.attempts: 4 greedy attempts are the same attempt",
        id="greedy attempts",
    ),
    pytest.param(
        [*MIRA, "--set", "rollouts.planner=openai:p", "--set", "rollouts.rater=state"],
        "rollouts.rater 'state' knows the suite's own milestones only, and rollouts.planner 'openai:p' makes others",
        id="checkers of a model's milestones",
    ),
    pytest.param(
        [
            *MIRA,
            *("--set", 'rollouts.server={url = "http://127.0.0.1:9", command = ["no-such-vllm", "serve"]}'),
        ],
        "rollouts.server.command 'no-such-vllm' cannot be started: No such file",
        id="no program of the server",
    ),
    pytest.param([*MIRA, "--set", "rollouts.prompt_style=full"], "was trained on compact prompts", id="prompt style"),
    pytest.param(["train", "show", "full"], "'full' holds no training run", id="nothing to show"),
    pytest.param(["train", "show", "a=full"], "'full' holds no training run", id="nothing to show under a name"),
    pytest.param(["train", "show", "full", "--out", "c.png"], "must end in .svg", id="no picture"),
    pytest.param(["train", "show", "full", "--phase", "1", "--out", "c.svg"], "leave", id="no picture of a phase"),
]


@pytest.mark.parametrize(("words", "problem"), WRONG)
def test_wrong_input_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], problem: str
) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert mira(monkeypatch, *words) == 2
    output = capsys.readouterr()
    lines = [line for line in output.err.splitlines() if line.startswith("mira: ")]
    assert output.out == "" and len(lines) == 1 and output.err.rstrip().endswith(lines[0])
    assert problem in lines[0]
    assert sorted(tmp_path.rglob("*")) == before, "no partial file"


def test_a_run_resumes_only_with_its_settings_or_more_phases(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for phases in (2, 3):
        with Loop.open(tmp_path / "out", LoopSettings(phases=phases)).owned():
            pass
    assert mira(monkeypatch, *MIRA, "--set", "phases=3", "--set", "targets.mix=1.0") == 2
    assert "holds a run with other settings of targets.mix: restore them, or choose" in capsys.readouterr().err


def test_a_run_resumes_only_from_its_original_weights(tmp_path: Path) -> None:
    start = tmp_path / "start"
    shutil.copytree(embedded_dir(), start)
    with Loop.open(tmp_path / "out", LoopSettings(start=str(start))).owned():
        pass
    model, tokenizer = load_policy(start)
    model.model.norm.weight.data += 1
    shutil.rmtree(start)
    save_policy(model, tokenizer, start)
    again = Loop.open(tmp_path / "out", LoopSettings(start=str(start)))
    with pytest.raises(BadInput, match="was started from other weights"), again.owned():
        pass


def test_a_phase_of_broken_episodes_is_an_error(tmp_path: Path) -> None:
    """The broken browser or server would break the next phase, too."""
    run = write_run(tmp_path / "broken", [Play(seed=FIRST, outcome="broken"), Play(seed=FIRST + 1, outcome="broken")])
    options = PhaseContext(
        settings=LoopSettings(),
        number=1,
        folder=tmp_path / "phase-1",
        policy=embedded_dir(),
        start=embedded_dir(),
        critics={},
        past=(),
    )
    with pytest.raises(BadInput, match=r"phase 1 has nothing to learn from \(2 broken\).*remove it to play it again"):
        learn(options, [run.path])
    assert not (tmp_path / "phase-1" / "data").exists()


def test_a_run_without_a_newer_setting_resumes(tmp_path: Path) -> None:
    with Loop.open(tmp_path / "out", LoopSettings()).owned():
        pass
    config = tmp_path / "out" / "config.json"
    values = json.loads(config.read_text(encoding="utf-8"))
    del values["report_to"], values["compute"]["shared_base"]
    config.write_text(json.dumps(values), encoding="utf-8")
    with Loop.open(tmp_path / "out", LoopSettings()).owned():
        assert set(values) < set(json.loads(config.read_text(encoding="utf-8"))), "a new setting has its default"


def test_of_two_concurrent_starts_one_locks_the_folder(tmp_path: Path) -> None:
    """Both check the folder before either writes; only the lock's owner writes its settings."""
    out = tmp_path / "out"
    first, second = (Loop.open(out, LoopSettings(seed=seed)) for seed in (1, 2))
    assert not out.exists()
    with first.owned():
        with pytest.raises(RunLocked, match="is in use by"):
            asyncio.run(second.run())
        assert json.loads((out / "config.json").read_text(encoding="utf-8"))["seed"] == 1
    with pytest.raises(BadInput, match="holds a run with other settings of seed"):
        asyncio.run(second.run())


def test_a_run_killed_before_its_settings_were_written_restarts(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with RunLock(out):
        (out / "config.json.4711.part").write_text("{")
    with Loop.open(out, LoopSettings()).owned():
        assert (out / "config.json").exists()


def test_another_fine_tuning_is_not_resumed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_run(tmp_path / "won", [Play(seed=FIRST)])
    write_record(tmp_path / "out" / BEGUN, Begun(start="0" * 16, rows="0" * 16, settings=SupervisedSettings()))
    assert mira(monkeypatch, *SFT, "won") == 2
    assert "holds a fine-tuning with another start, other rows: restore this, or" in capsys.readouterr().err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {BEGUN, LOCK_NAME}


@pytest.mark.slow
@pytest.mark.parametrize("allowed", [False, True])
def test_evaluation_instances_are_trained_on_only_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], allowed: bool
) -> None:
    small = ["--json", "--set", "optimization.epochs=1", "--set", "compute.threads=1"]
    assert mira(monkeypatch, *SFT, "measured", *(["--allow-evaluation"] if allowed else []), *small) == 0
    printed = capsys.readouterr()
    assert (f"2 of 3 episodes are not for training, {SEED_7}; left out" in printed.err) is not allowed
    data = json.loads(printed.out)["data"]
    assert sum(group["trajectories"] for group in data["groups"]) == (3 if allowed else 1)
    assert data["left_out"].get("held out for evaluation", 0) == (0 if allowed else 2)


@pytest.mark.slow
def test_a_fine_tuning_that_diverged_ends_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_run(tmp_path / "won", [Play(seed=FIRST)])
    small = ["--set", "optimization.learning_rate=1e20", "--set", "optimization.epochs=3", "--set", "compute.threads=1"]
    assert mira(monkeypatch, *SFT, "won", *small) == 1
    assert "lower the learning rate" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out" / "model").exists()


def test_sft_reports_an_unbuildable_site_with_advice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (trace,) = write_run(tmp_path / "shop", [Play(seed=9)]).traces()
    on_a_site = rechained(
        lambda lines: [
            line.replace(b'"miniwob","name":"login-user"', b'"sites","name":"shop-reorder"') for line in lines
        ]
    )
    rewrite(trace, on_a_site)
    monkeypatch.setitem(PACKAGES, "shop", ("no-such-shop",))
    assert mira(monkeypatch, *SFT, str(trace)) == 2
    output = capsys.readouterr().err
    assert "the site shop needs no-such-shop" in output and "--allow-evaluation" in output
    assert not (tmp_path / "out").exists()
