"""`mira eval --curves`: tiny critics on a written episode, values stored by training, and the report's drawing."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.inspection.critic_values import FILE, StateValues, read_critic_values, write_critic_values
from agent.inspection.report import write_report
from envs.core.actions import Click
from tests.agent.episodes import Play, write_run
from tests.mira_command import mira
from tests.training.engine.critics import save_critic
from tests.training.loop.evaluation.test_command import as_json
from tests.training.trajectories import acted, rows_of
from training.data.columns import Column
from training.loop.data import PhaseData, ReplayCounts
from training.loop.phase_context import PhaseContext
from training.loop.settings import LoopSettings, load_settings
from training.loop.stored_values import store_critic_values

WON = Play(
    actions=(Click(ref=1), Click(ref=2), Click(ref=3)), z=((False, False), (True, False), (True, False), (True, True))
)


def phase_of(folder: Path, changes: tuple[str, ...] = ()) -> Path:
    """A phase with two critics of random heads, and the configuration of its run."""
    folder.mkdir(exist_ok=True)
    settings = load_settings(None, ["value.folds=2", *changes])
    (folder / "config.json").write_text(settings.model_dump_json(), encoding="utf-8")
    phase = folder / "phase-1"
    for name in ("potential", "value-fold-1", "value-fold-2"):
        save_critic(phase / name / "model", std=0.5)
    return phase


def test_critics_score_the_states_of_one_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, phase = write_run(tmp_path / "r", [WON]).path, phase_of(tmp_path / "mira", ("value.milestones=true",))
    picture = tmp_path / "curves.svg"
    capsys.readouterr()
    words = ("--curves", run, "--critics", phase)
    shown = as_json(monkeypatch, capsys, *words, "--out", picture)
    points = shown["points"]
    assert [(point["step"], point["done"], point["progress"]) for point in points] == [
        (1, 0, 0.0),
        (2, 1, 0.5),
        (3, 1, 0.75),
    ]
    assert [point["gained"] for point in points] == [["words 1"], [], ["words 2"]]
    assert all(0 < point["value"] < 1 and 0 < point["potential"] < 1 for point in points)
    assert points[0]["potential"] == pytest.approx(points[1]["potential"]), "the page is the same at every step"
    assert points[0]["value"] != pytest.approx(points[1]["value"]), "V also sees how many milestones are done"
    assert shown["milestones"] == 2 and shown["outcome"] == "success"
    drawn = picture.read_text(encoding="utf-8")
    assert (
        drawn.count("<polyline") == 2
        and "value before step 2" in drawn
        and 'xmlns="http://www.w3.org/2000/svg"' in drawn
    )
    assert mira(monkeypatch, "eval", *words) == 0
    assert "2 of 2" not in (printed := capsys.readouterr().out) and "1 of 2" in printed and "words 1" in printed


def test_values_stored_with_the_run_need_no_critic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "r", [WON]).path
    write_critic_values(run, "phase 1", {WON.job.episode_id: [StateValues(step=2, value=0.25)]})
    shown = as_json(monkeypatch, capsys, "--curves", run)
    assert [(point["value"], point["potential"]) for point in shown["points"]] == [
        (None, None),
        (0.25, None),
        (None, None),
    ]
    report = write_report([run]).path.read_text(encoding="utf-8")
    assert (
        "value before step 2: 0.250" in report
        and report.count('class="curve value"') == 1
        and 'class="curve potential"' not in report
    )
    (run / FILE).write_text("{", encoding="utf-8")
    assert "before step 2:" not in write_report([run]).path.read_text(encoding="utf-8"), (
        "a damaged file is no report's end"
    )


def test_a_phase_stores_the_values_of_its_own_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / "phase-1" / "rollouts" / "run", [Play(task="a")]).path
    name = Play(task="a").job.episode_id
    episodes = [acted("a", ((1,), (2,)), success=True), acted("old", ((3,),), success=True)]
    episodes[0] = episodes[0].model_copy(update={"episode_id": name})
    rows = rows_of(episodes)
    data = PhaseData(tuple(episodes), 1, rows, (0.0,) * 3, (True,) * 3, ReplayCounts())
    columns = {Column.VALUE: (0.2, 0.3, 0.9), Column.POTENTIAL: (0.1, 0.5, 0.9)}

    def context(settings: LoopSettings, folder: Path) -> PhaseContext:
        return PhaseContext(settings, 1, folder, tmp_path, {}, tmp_path, ())

    settings = load_settings(None, [])
    store_critic_values(run, context(settings, tmp_path / "elsewhere"), data, columns)
    assert not read_critic_values(run).episodes, "arms share that run"
    store_critic_values(run, context(settings, tmp_path / "phase-1"), data, columns)
    states = read_critic_values(run).episodes[name]
    assert [(state.step, state.value, state.potential) for state in states] == [(1, 0.2, 0.1), (2, 0.3, 0.5)]
    store_critic_values(run, context(load_settings(None, ["arm=digirl"]), tmp_path / "phase-1"), data, columns)
    assert read_critic_values(run).episodes[name][0].potential is None, "the sparse reward has no potential critic"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--curves", "{0}/r"), "holds 2 episodes: name one file"),
        (("--curves", "{0}/r/episodes/{1}.jsonl"), "name the phase whose critics are to score it with --critics"),
        (("--curves", "{0}/r/episodes/{1}.jsonl", "--critics", "{0}"), "cannot be read"),
        (("--curves", "{0}/r", "{0}/r"), "--curves shows one episode"),
        (("{0}/r", "--critics", "{0}"), "--critics are those of --curves"),
        (("--curves", "{0}/r", "--out", "{0}/x.html"), "must end in .svg"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    problem: str,
) -> None:
    write_run(tmp_path / "r", [WON, Play(seed=1)])
    assert mira(monkeypatch, "eval", *(word.format(tmp_path, WON.job.episode_id) for word in words)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line
