"""Entries that an installed package adds, used end to end: `tests/data/acme` is one, as pip would leave it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.agent.mira_process import run_mira
from tests.timing import HANG_S

ROOT = Path(__file__).parents[3]
ACME = ROOT / "tests" / "data" / "acme"
USES_THE_REWARD = """
import json
from training.grpo.rewards import PointTarget, Rewarder
from training.grpo.settings import GrpoSettings, parse_settings
settings = parse_settings({"recipe": "acme", "reward": {"bonus": 0.25}, "optimization": {"batch_rows": 4}}, "here")
assert GrpoSettings.model_validate_json(settings.model_dump_json()) == settings
target = PointTarget(box=(100, 200, 160, 230), size=(1000, 500))
scores = Rewarder(settings.reward, len).of_group(target, ["130 215", "1 1"])
print(json.dumps([settings.group, settings.reward.max_reward, *(score.total for score in scores)]))
"""


def python(folder: Path, *words: str, packages: tuple[Path, ...] = (ACME,)) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, (ROOT, *packages)))
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )


def mira(folder: Path, *words: str, packages: tuple[Path, ...] = (ACME,)) -> subprocess.CompletedProcess[str]:
    return run_mira(*words, cwd=folder, env={**os.environ, "COLUMNS": "200"}, packages=packages)


def package(folder: Path, name: str, entry_points: str) -> Path:
    """A distribution *name* without code of its own."""
    info = folder / name / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    return folder / name


@pytest.mark.browser
def test_one_run_uses_provider_planner_judge_and_suite_of_a_package(tmp_path: Path) -> None:
    roles = ["--policy", "acme:clicker", "--planner", "acme", "--judge", "acme", "--out", "run", "--json"]
    done = mira(tmp_path, "run", "--suite", "acme", "--tasks", "click-test", *roles)
    assert done.returncode == 0, done.stderr
    (episode,) = json.loads(done.stdout)["episodes"]
    assert episode["outcome"] == "success"
    (trace,) = (tmp_path / "run").rglob("episodes/*.jsonl")
    text = trace.read_text()
    for part in ("A button is pressed.", "acme saw 1 actions", "acme:clicker", '"suite":"acme"'):
        assert part in text
    shown = json.loads(mira(tmp_path, "show", "run", "--json").stdout)
    assert shown[0]["z"] == [True]


def test_a_reward_of_a_package_is_a_recipe(tmp_path: Path) -> None:
    done = python(tmp_path, "-c", USES_THE_REWARD)
    assert done.returncode == 0, done.stderr
    group, most, right, wrong = json.loads(done.stdout)
    assert (group, most, wrong) == (4, 1.25, 0)
    assert 1 < right < 1.25


def test_a_data_set_of_a_package_is_imported(tmp_path: Path) -> None:
    Image.new("RGB", (40, 20)).save(tmp_path / "a.png")
    done = mira(tmp_path, "data", "import", "acme", ".", "-o", "out/acme.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    (line,) = (tmp_path / "out" / "acme.jsonl").read_text().splitlines()
    assert json.loads(line)["target"] == {"kind": "point", "box": [10, 5, 30, 15], "size": [40, 20]}


def test_added_tasks_and_models_are_listed(tmp_path: Path) -> None:
    assert [task["name"] for task in json.loads(mira(tmp_path, "tasks", "--suite", "acme", "--json").stdout)] == [
        "click-test",
        "click-test-2",
    ]
    rows = {row["spec"]: row for row in json.loads(mira(tmp_path, "models", "--json").stdout)}
    assert rows["acme:MODEL"]["usable"] and rows["acme:MODEL"]["detail"] == "clicks buttons"


@pytest.mark.browser
def test_doctor_lists_added_entries_and_their_problems(tmp_path: Path) -> None:
    broken = package(tmp_path, "broken", "[mira.judges]\nlost = no_such_module:ENTRY\n")
    done = mira(tmp_path, "doctor", "--json", packages=(ACME, broken))
    added = {(entry["group"], entry["name"]): entry for entry in json.loads(done.stdout)["added"]}
    kinds = ("providers", "planners", "judges", "suites", "tools", "rewards", "step_rewards", "data_sets")
    assert added.keys() == {*((f"mira.{kind}", "acme") for kind in kinds), ("mira.judges", "lost")}
    assert added["mira.suites", "acme"]["package"] == "package acme-mira"
    assert added["mira.suites", "acme"]["problem"] == ""
    assert "package broken" in added["mira.judges", "lost"]["problem"]


@pytest.mark.parametrize(
    ("entry_points", "words", "says"),
    [
        pytest.param(
            "[mira.suites]\nlost = no_such_module:ENTRY",
            ["tasks", "--suite", "lost"],
            "mira.suites entry 'lost' of package broken (no_such_module:ENTRY) cannot be loaded: ModuleNotFoundError",
            id="missing module",
        ),
        pytest.param(
            "[mira.suites]\nodd = json:dumps",
            ["tasks", "--suite", "odd"],
            "is of type function, not envs.suites.entry.SuiteEntry",
            id="wrong type",
        ),
        pytest.param(
            "[mira.suites]\nminiwob = acme.suite:ENTRY",
            ["tasks", "--suite", "miniwob"],
            "'miniwob' of package broken is also a name that Mira has",
            id="clash with a built-in entry",
        ),
        pytest.param(
            "[mira.suites]\nacme = acme.suite:ENTRY",
            ["tasks", "--suite", "acme"],
            "'acme' of package acme-mira and package broken is added more than once",
            id="clash of two packages",
        ),
        pytest.param(
            "[mira.planners]\nlost = no_such_module:ENTRY",
            ["run", "--suite", "miniwob", "--tasks", "click-test", "--planner", "lost"],
            "mira.planners entry 'lost' of package broken",
            id="planner",
        ),
        pytest.param(
            "[mira.providers]\nlost = no_such_module:PROVIDER",
            ["run", "--suite", "miniwob", "--tasks", "click-test", "--policy", "lost:x"],
            "mira.providers entry 'lost' of package broken",
            id="provider",
        ),
        pytest.param("", ["tasks", "--suite", "x"], "known are miniwob, sites, webarena-lite, webarena,", id="unknown"),
        pytest.param(
            "",
            ["run", "--suite", "miniwob", "--tasks", "click-test", "--planner", "x"],
            "openai-computer:MODEL, acme; or as planner none, reference, acme, same",
            id="unknown planner",
        ),
    ],
)
def test_a_broken_entry_is_one_line_and_stops_nothing_else(
    tmp_path: Path, entry_points: str, words: list[str], says: str
) -> None:
    broken = package(tmp_path, "broken", entry_points)
    done = mira(tmp_path, *words, packages=(ACME, broken))
    assert done.returncode == 2, done.stderr
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert mira(tmp_path, "tasks", "--suite", "sites", "--json", packages=(ACME, broken)).returncode == 0
