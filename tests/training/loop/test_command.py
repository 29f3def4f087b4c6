"""`mira train` on wrong input: one line, exit code 2, nothing written."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from agent.cli import main
from tests.agent.episodes import Play, write_run
from training.loop.loop import Loop
from training.loop.parts import write_record
from training.loop.settings import LoopSettings
from training.loop.supervised import BEGUN, Begun, SupervisedSettings

MIRA = ["train", "mira", "-o", "out"]
SFT = ["train", "sft", "-o", "out"]


def mira(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["mira", *words])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert isinstance(exit_.value.code, int)
    return exit_.value.code


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "lost", [Play(outcome="failure"), Play(seed=1, outcome="broken")])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    (tmp_path / "bad.toml").write_text("[rollouts]\ntaks = 3\n")


WRONG = [
    pytest.param([*MIRA, "-c", "nowhere.toml"], "'nowhere.toml' does not exist", id="no such config"),
    pytest.param([*MIRA, "-c", "bad.toml"], "bad.toml: rollouts.taks: unknown key", id="unknown key in a file"),
    pytest.param([*MIRA, "--set", "targets.alfa=1"], "targets.alfa: unknown key", id="unknown key"),
    pytest.param([*MIRA, "--set", "alpha"], "'alpha' is no key=value", id="no value"),
    pytest.param([*MIRA, "--set", "arm=ppo"], "unknown arm 'ppo'", id="unknown arm"),
    pytest.param([*MIRA, "--set", "start=nowhere"], "'nowhere' is no checkpoint", id="no start"),
    pytest.param([*MIRA, "--set", 'pool.names=["click-tset"]'], "no task 'click-tset'", id="unknown task"),
    pytest.param([*MIRA, "--set", "pool.suite=webarena"], "never trained on", id="a benchmark as pool"),
    pytest.param([*MIRA, "--set", "pool.split=test"], "pool.split", id="a split as pool"),
    pytest.param([*MIRA, "--set", "evaluation.seeds=[1000000]"], "may be trained on", id="evaluated on training"),
    pytest.param([*MIRA, "--set", 'demonstrations=["nowhere"]'], "'nowhere' holds no traces", id="no demonstrations"),
    pytest.param(["train", "mira", "-o", "full"], "'full' is not empty", id="a folder of something else"),
    pytest.param([*SFT, "nowhere"], "'nowhere' holds no traces", id="no traces"),
    pytest.param([*SFT, "lost", "--start", "nowhere"], "'nowhere' is no checkpoint", id="no start of sft"),
    pytest.param([*SFT, "lost"], "nothing to learn from in 2 episodes (1 broken, 1 failed)", id="only failures"),
    pytest.param([*SFT, "lost", "--set", "epochs=3"], "epochs: unknown key", id="unknown key of sft"),
    pytest.param(["train", "sft", "-o", "full", "lost"], "'full' is not empty", id="sft over something else"),
    pytest.param(["train", "show", "full"], "'full' holds no training run", id="nothing to show"),
]


@pytest.mark.parametrize(("words", "told"), WRONG)
def test_wrong_input_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], told: str
) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert mira(monkeypatch, *words) == 2
    said = capsys.readouterr()
    lines = [line for line in said.err.splitlines() if line.startswith("mira: ")]
    assert said.out == "" and len(lines) == 1 and said.err.rstrip().endswith(lines[0])
    assert told in lines[0]
    assert sorted(tmp_path.rglob("*")) == before, "nothing may be half-written"


def test_a_run_goes_on_with_its_settings_or_more_phases_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    Loop.open(tmp_path / "out", LoopSettings(phases=2))
    Loop.open(tmp_path / "out", LoopSettings(phases=3))
    assert mira(monkeypatch, *MIRA, "--set", "phases=3", "--set", "targets.mix=1.0") == 2
    assert "holds a run with other settings of targets" in capsys.readouterr().err


def test_a_run_of_before_a_setting_existed_goes_on(tmp_path: Path) -> None:
    Loop.open(tmp_path / "out", LoopSettings())
    config = tmp_path / "out" / "config.json"
    values = json.loads(config.read_text(encoding="utf-8"))
    del values["report_to"], values["compute"]["lean"]
    config.write_text(json.dumps(values), encoding="utf-8")
    Loop.open(tmp_path / "out", LoopSettings())


def test_a_fine_tuning_is_never_taken_for_another(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_run(tmp_path / "won", [Play()])
    write_record(tmp_path / "out" / BEGUN, Begun(start="0" * 16, rows="0" * 16, settings=SupervisedSettings()))
    assert mira(monkeypatch, *SFT, "won") == 2
    assert "holds a fine-tuning of another start, other rows or other settings" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == [BEGUN]
