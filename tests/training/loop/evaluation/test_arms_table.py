"""The table of `benchmarks.arms`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.arms import main, table
from envs.core.errors import BadInput
from envs.core.trace import Outcome
from tests.agent.episodes import Play, write_run
from training.loop.loop import Progress
from training.loop.metrics import PhaseMetrics, PlayedRun
from training.loop.parts import RunLocation, write_record

TASKS = ["click-link/0", "click-link/1", "click-tab/0", "click-tab/1"]
EPISODES = {
    "mira seed 0 phase 0": ["0", "1", "0", "0"],
    "mira seed 0 phase 6": ["1", "1", "1", "0"],
    "mira seed 1 phase 0": ["0", "1", "0", "0"],
    "mira seed 1 phase 6": ["1", "1", "1", "1"],
    "awr seed 0 phase 0": ["0", "1", "0", "0"],
    "awr seed 0 phase 6": ["0", "1", "1", "?"],
}
ONE_OF_FOUR = PlayedRun(episodes=4, successes=1, broken=0, steps=3.0, progress=None, failures={"other": 3})


def curve(arm: str, seed: int) -> dict[str, Any]:
    return {"arm": arm, "seed": seed, "phases": [PhaseMetrics(phase=0, evaluation=ONE_OF_FOUR).model_dump(mode="json")]}


def written(folder: Path, episodes: dict[str, list[str]] = EPISODES) -> Path:
    """A table of *episodes*, as `--write` writes it."""
    arms = sorted({(name.split()[0], int(name.split()[2])) for name in episodes})
    file = folder / "before.json"
    file.write_text(json.dumps({"curves": [curve(*item) for item in arms], "tasks": TASKS, "episodes": episodes}))
    return file


def build_table(folder: Path, *, last: int | None = None, rival: str = "awr", **more: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"added": [written(folder)], **more}
    table(folder / "runs", folder / "after", last, rival, **options)
    return json.loads((folder / "after.json").read_text())


def test_success_is_of_the_last_phase_and_the_start_counts_once_for_each_seed(tmp_path: Path) -> None:
    result = build_table(tmp_path)
    assert result["phase"] == 6
    rates = {arm["arm"]: arm["success"]["value"] for arm in result["table"]["arms"]}
    assert rates == pytest.approx({"start": 1 / 3, "mira": 1.0, "awr": 2 / 3}), "the three common tasks"
    starts = next(arm for arm in result["table"]["arms"] if arm["arm"] == "start")
    assert [item["seed"] for item in starts["seeds"]] == [0, 1]


def test_a_table_recomputed_from_its_file_is_equal(tmp_path: Path) -> None:
    result = build_table(tmp_path)
    assert result["episodes"] == EPISODES
    text = (tmp_path / "after.md").read_text()
    table(tmp_path / "runs", tmp_path / "again", None, "awr", added=[tmp_path / "after.json"])
    assert json.loads((tmp_path / "again.json").read_text()) == result
    assert (tmp_path / "again.md").read_text() == text
    assert "| click-tab | 0.0% | 100.0% | 75.0% |" in text, "by task: start, awr, mira"


def test_a_run_in_two_files_counts_once(tmp_path: Path) -> None:
    first = written(tmp_path)
    result = build_table(tmp_path, added=[first, first])
    assert {arm["arm"]: arm["episodes"] for arm in result["table"]["arms"]} == {"start": 8, "mira": 8, "awr": 4}
    assert len(result["curves"]) == 3


def test_short_phases_of_an_arm_count_together(tmp_path: Path) -> None:
    out = tmp_path / "runs" / "mgrpo" / "seed-0"
    outcomes: tuple[tuple[int, Outcome], ...] = ((0, "failure"), (12, "failure"), (24, "success"))
    for phase, outcome in outcomes:
        write_run(out / f"phase-{phase}" / "run", [Play(task="click-link", outcome=outcome)])
        write_record(out / f"phase-{phase}" / "evaluation.json", RunLocation(run=Path("run")))
    phases = tuple(PhaseMetrics(phase=phase, rollouts=ONE_OF_FOUR) for phase in range(1, 25))
    write_record(out / "progress.json", Progress(arm="mgrpo", seed=0, phases=phases))
    result = build_table(tmp_path, added=[], rival="mgrpo", strides=["mgrpo=4"])
    assert result["phase"] == 6
    assert result["episodes"] == {
        f"mgrpo seed 0 phase {phase}": [cell] for phase, cell in ((0, "0"), (3, "0"), (6, "1"))
    }
    note = "`mgrpo` plays 24 phases of 4 rollouts; 4 of them count as one phase of the other arms.\n\nSuccess on"
    assert (tmp_path / "after.md").read_text().startswith(note)
    (curve,) = result["curves"]
    assert [phase["phase"] for phase in curve["phases"]] == [1, 2, 3, 4, 5, 6]
    variant = f"b={tmp_path / 'runs'}"
    both = build_table(tmp_path, added=[], rival="mgrpo", strides=["mgrpo=4", "mgrpo b=4"], variants=[variant])
    assert sorted({name.partition(" seed")[0] for name in both["episodes"]}) == ["mgrpo", "mgrpo b"]
    assert both["phase"] == 6


def test_the_page_begins_with_its_title_date_and_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--out", str(tmp_path / "runs"), "--add", str(written(tmp_path)), "--rival", "awr"]
    words += ["--write", str(tmp_path / "after"), "--title", "Short tasks"]
    monkeypatch.setattr("sys.argv", ["arms.py", "table", *words])
    assert main() == 0
    title, empty, date, *_ = (tmp_path / "after.md").read_text().splitlines()
    assert (title, empty) == ("# Short tasks", "") and date.startswith("Written on 2")
    assert (
        f"python -m benchmarks.arms table {' '.join(words[:-1])} 'Short tasks'" in (tmp_path / "after.md").read_text()
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rival": "digirl"}, "no seed of --rival digirl was measured after phase 6, those of awr, mira were"),
        ({"last": 3}, "after phase 3"),
        ({"variants": ["a=x", "a=y"]}, "--variant names a twice"),
        ({"variants": ["a"]}, "is no NAME=FOLDER"),
        ({"strides": ["mgrpo"]}, "is no ARM=N"),
        ({"strides": ["mgrpo=0"]}, "is no ARM=N"),
        ({"added": []}, "holds no evaluation of any arm"),
    ],
)
def test_incomparable_arms_are_one_line(tmp_path: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        build_table(tmp_path, **options)
    assert not (tmp_path / "after.json").exists(), "no partial file"


@pytest.mark.parametrize("text", ["", "[]", '{"curves": []}', '{"curves": [], "tasks": [], "episodes": {"mira": []}}'])
def test_a_file_that_is_no_table_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd.json").write_text(text)
    with pytest.raises(BadInput, match=r"odd\.json' is no table"):
        build_table(tmp_path, added=[tmp_path / "odd.json"])
