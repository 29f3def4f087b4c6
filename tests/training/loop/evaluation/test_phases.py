"""Phases found in folders, and the sheet of their heat maps."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent.run.discover_traces import discover_traces
from envs.core.errors import BadInput
from judges.subgoal_quality import HeatMap
from tests.agent.episodes import Play, write_run
from training.loop.evaluation.drawing import Phase, over_steps, sheet, write_phases
from training.loop.evaluation.phases import parse_arm, parse_arms, parse_phases
from training.loop.evaluation.reading import read_played
from training.loop.evaluation.summary import evaluate
from training.loop.parts import RunLocation, write_record

HALF = ((False, False), (True, False), (True, False))
SVG = "{http://www.w3.org/2000/svg}"


def phase(name: str, folder: Path) -> Phase:
    return Phase(name, evaluate(read_played(discover_traces([folder]))))


@pytest.fixture
def two(tmp_path: Path) -> list[Phase]:
    write_run(tmp_path / "a", [Play(seed=0, z=HALF, outcome="failure"), Play(seed=1)])
    write_run(tmp_path / "b", [Play(seed=0), Play(seed=1)])
    return [phase("first <b>", tmp_path / "a"), phase("last", tmp_path / "b")]


def test_phases_of_a_training_run_are_its_evaluations_by_number(tmp_path: Path) -> None:
    """The last phase has no evaluation yet; its rollouts are of other tasks and are not used."""
    for name in ("phase-10", "phase-2", "phase-11"):
        write_run(tmp_path / name / "rollouts", [Play(seed=0), Play(seed=1)])
    for name in ("phase-10", "phase-2"):
        write_run(tmp_path / name / "evaluation", [Play(seed=5)])
    (tmp_path / "tensorboard").mkdir()
    groups = parse_phases([str(tmp_path)])
    assert [(group.name, len(group.files)) for group in groups] == [("phase-2", 1), ("phase-10", 1)]
    arm = parse_arm(f"mira={tmp_path}")
    assert (arm.name, arm.phase) == ("mira", 10) and [file.folder for file in arm.files] == [
        tmp_path / "phase-10" / "evaluation"
    ]


def test_a_shared_evaluation_is_found_by_its_location_file(tmp_path: Path) -> None:
    write_run(tmp_path / "shared" / "run", [Play(seed=5)])
    write_run(tmp_path / "train" / "phase-1" / "rollouts", [Play(seed=0)])
    write_record(tmp_path / "train" / "phase-1" / "evaluation.json", RunLocation(run=tmp_path / "shared" / "run"))
    (group,) = parse_phases([str(tmp_path / "train")])
    assert [file.folder for file in group.files] == [tmp_path / "shared" / "run"]


def test_without_evaluations_rollouts_or_runs_are_used(tmp_path: Path) -> None:
    write_run(tmp_path / "train" / "phase-1" / "rollouts", [Play(seed=0), Play(seed=1)])
    write_run(tmp_path / "runs" / "0", [Play()])
    groups = parse_phases([str(tmp_path / "train"), str(tmp_path / "runs")])
    assert [(group.name, len(group.files)) for group in groups] == [("phase-1", 2), ("0", 1)]


def test_phases_and_arms_are_named(tmp_path: Path) -> None:
    write_run(tmp_path / "sft", [Play()])
    word = f"sft={tmp_path / 'sft'}"
    assert [group.name for group in parse_phases([word])] == ["sft"] and parse_phases([word]) == (parse_arm(word),)


def trained(folder: Path, *phases: int, unfinished: int | None = None) -> None:
    """A folder of `mira train` with evaluations after *phases*; that of *unfinished* is not finished."""
    for number in phases:
        write_run(folder / f"phase-{number}" / "rollouts", [Play(seed=9)])
        write_run(
            folder / f"phase-{number}" / "evaluation", [Play(outcome=None if number == unfinished else "success")]
        )


def test_arms_of_different_phases_are_refused(tmp_path: Path) -> None:
    trained(tmp_path / "one", 0, 1)
    trained(tmp_path / "two", 0, 1, 2)
    trained(tmp_path / "again", 0, 1, 2, unfinished=2)
    first, two, again = (f"{name}={tmp_path / name}" for name in ("one", "two", "again"))
    assert [group.phase for group in parse_arms([first, again])] == [1, 1]
    assert [group.phase for group in parse_arms([first, f"{two}/phase-1"])] == [1, 1]
    with pytest.raises(BadInput, match=r"one' was evaluated after phase 1 and 'two=.*two' after phase 2.*two/phase-1$"):
        parse_arms([two, first])
    start = f"start={tmp_path / 'two' / 'phase-0'}"
    groups = parse_arms([start, two])
    assert [(group.phase, group.files[0].folder.parent.name) for group in groups] == [(0, "phase-0"), (2, "phase-2")]


def test_the_start_is_not_taken_for_a_result(tmp_path: Path) -> None:
    trained(tmp_path / "begun", 0, 1, unfinished=1)
    with pytest.raises(BadInput, match=r"only its start.*begun/phase-0"):
        parse_arms([f"mira={tmp_path / 'begun'}/"])
    with pytest.raises(BadInput, match="it has no finished evaluation"):
        parse_arms([f"mira={tmp_path / 'begun'}/phase-1"])
    trained(tmp_path / "new", 0, unfinished=0)
    with pytest.raises(BadInput, match="it has no finished evaluation"):
        parse_arms([f"mira={tmp_path / 'new'}"])


def test_one_arm_is_of_one_phase(tmp_path: Path) -> None:
    trained(tmp_path / "one", 0, 1)
    write_run(tmp_path / "run", [Play()])
    with pytest.raises(BadInput, match="'a' is of phase 0 and phase 1"):
        parse_arms([f"a={tmp_path / 'one' / 'phase-0'}", f"a={tmp_path / 'one'}"])
    with pytest.raises(BadInput, match="'a' is of an unknown phase and phase 1"):
        parse_arms([f"a={tmp_path / 'run'}", f"a={tmp_path / 'one'}"])
    assert [group.phase for group in parse_arms([f"b={tmp_path / 'run'}", f"a={tmp_path / 'one'}"])] == [None, 1]


def test_arms_are_paired_by_their_seeds_and_not_by_their_order(tmp_path: Path) -> None:
    for name, seed in (("a3", 3), ("a7", 7), ("b7", 7), ("b3", 3)):
        trained(tmp_path / name, 0, 1)
        (tmp_path / name / "config.json").write_text(f'{{"seed": {seed}}}')
    write_run(tmp_path / "run", [Play()])
    words = [f"{name[0]}={tmp_path / name}" for name in ("a3", "a7", "b7", "b3")]
    plain = [f"{name}={tmp_path / 'run'}" for name in ("c", "d", "d")]
    assert [group.seed for group in parse_arms([*words, *plain])] == [3, 7, 7, 3, 8, 8, 9]
    assert [group.seed for group in parse_arms(plain)] == [0, 0, 1]
    assert [group.seed for group in parse_arms([f"{words[1]}/phase-0"])] == [7]
    with pytest.raises(BadInput, match="two runs of 'a' have the seed 3"):
        parse_arms([words[0], words[0]])
    (tmp_path / "a3" / "config.json").write_text("{")
    with pytest.raises(BadInput, match="cannot be read"):
        parse_arms(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{0}/empty"], "holds no phase with runs"),
        (["nowhere"], "write NAME=RUN"),
        (["a="], "write NAME=RUN"),
        (["a={0}/nowhere"], "holds no traces"),
        (["a={0}/r", "a={0}/r"], "two groups have the name 'a'"),
    ],
)
def test_invalid_phases_are_refused(tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "empty").mkdir()
    write_run(tmp_path / "r", [Play()])
    with pytest.raises(BadInput, match=message):
        parse_phases([word.format(tmp_path) for word in words])


def test_maps_are_over_the_same_steps() -> None:
    map_ = HeatMap(group="all", rows=((0.0, 0.5), (0.0, 0.25)), traces=(4, 4))
    assert over_steps(map_, 4).rows == ((0.0, 0.5, 0.5, 0.5), (0.0, 0.25, 0.25, 0.25))
    assert over_steps(map_, 1).rows == ((0.0,), (0.0,))


def test_a_cells_shade_shows_its_share(two: list[Phase]) -> None:
    """Two milestones over steps 0 to 2 and one more without changes; the second is done at step 2 by one
    of two episodes, then by both."""
    root = ElementTree.fromstring(str(sheet(two, "svg {}")))
    cells = [cell for cell in root.iter(f"{SVG}rect") if cell.get("class") == "heat"]
    assert len(cells) == 2 * 2 * 4
    labels = {title.text for cell in cells if (title := cell.find(f"{SVG}title")) is not None}
    assert "milestone 2 within 2 steps: 50% of 2 traces" in labels
    assert "milestone 2 within 2 steps: 100% of 2 traces" in labels
    assert {float(cell.get("fill-opacity", "")) for cell in cells} == {0.05, 0.53, 1.0}
    assert "first <b>" in [text.text for text in root.iter(f"{SVG}text")]


def test_both_formats_are_written(two: list[Phase], tmp_path: Path) -> None:
    write_phases(two, tmp_path / "maps.svg")
    ElementTree.parse(tmp_path / "maps.svg")
    write_phases(two, tmp_path / "maps.html")
    page = (tmp_path / "maps.html").read_text()
    assert page.count("<svg") == 3 and "first &lt;b&gt;" in page and "first <b>" not in page
    assert "75% " in page and "100%" in page
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["maps.html", "maps.svg"]


@pytest.mark.parametrize("name", ["maps.png", "maps", "nowhere/maps.svg"])
def test_a_file_that_cannot_be_written(two: list[Phase], tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="--out"):
        write_phases(two, tmp_path / name)


def test_a_phase_without_milestones_has_a_message(tmp_path: Path) -> None:
    write_run(tmp_path / "r", [Play(z=((), (), ()))])
    assert "no episode has milestones" in sheet([phase("only", tmp_path / "r")])
