"""`mira data import` and `mira eval planning` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from envs.core.action_languages import PROGRAM
from tests.mira_command import mira
from tests.training.data_sets.published import BUILDERS, write_parquet
from training.grpo.examples import read_examples
from training.grpo.rewards import StepTarget


@pytest.fixture(autouse=True)
def published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("aitz", "folder", "mind2web"):
        Path(name).mkdir()
        BUILDERS[name](Path(name))


def write_predictions(examples: str, answers: dict[int, str]) -> None:
    """The right answer to each step, but for those of *answers*."""
    lines: list[str] = []
    for number, example in enumerate(read_examples(Path(examples))):
        assert isinstance(example.target, StepTarget)
        answer = answers.get(number, PROGRAM.show(example.target.action))
        lines.append(json.dumps({"name": example.name, "answer": answer}))
    Path("predictions.jsonl").write_text("\n".join(lines))


def test_a_data_set_is_imported_and_predictions_are_scored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mira(monkeypatch, "data", "import", "aitz", "aitz", "--out", "steps.jsonl", "--split", "test", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"file": "steps.jsonl", "examples": 2, "left_out": {}}
    write_predictions("steps.jsonl", {0: 'do(action="Click At", x=36, y=40)', 1: "no action"})
    assert mira(monkeypatch, "eval", "planning", "steps.jsonl", "--predictions", "predictions.jsonl", "--json") == 0
    score: dict[str, Any] = json.loads(capsys.readouterr().out)
    overall = score["overall"]
    assert [overall[name]["wilson"]["value"] for name in ("type", "grounding", "success")] == [0.5, 1, 0.5]
    assert overall["success"]["wilson"]["low"] == pytest.approx(0.0945, abs=1e-4)
    assert overall["success"]["by_episode"]["why_not"] == "one task alone"
    assert score["by_platform"]["android"] == overall
    assert (score["episodes"], score["unreadable"]) == (1, 1)
    assert score["by_type"]["type"]["success"]["wilson"]["value"] == 0
    assert mira(monkeypatch, "eval", "planning", "steps.jsonl", "--predictions", "predictions.jsonl", "-o", "out") == 0
    shown = capsys.readouterr().out
    assert "50.0%" in shown and "1 episodes · 1 answers without an action" in shown
    assert json.loads(Path("out/score.json").read_text())["overall"] == overall


def test_coordinates_are_read_in_the_units_of_the_prompt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mira(monkeypatch, "data", "import", "aitz", "aitz", "-o", "t.jsonl", "--coordinates", "thousand") == 0
    write_predictions("t.jsonl", {0: 'do(action="Click At", x=250, y=200)'})
    evaluate = ["eval", "planning", "t.jsonl", "--predictions", "predictions.jsonl", "--json"]
    assert mira(monkeypatch, *evaluate, "--coordinates", "thousand") == 0
    assert json.loads(capsys.readouterr().out.partition("\n")[2])["overall"]["exact_match"]["wilson"]["value"] == 1
    assert mira(monkeypatch, *evaluate) == 2
    assert "does not ask for coordinates in pixels" in capsys.readouterr().err


def _mind2web_split(folder: str, part: str, episode: str) -> None:
    """Writes *part* with two steps of *episode*, as the published parquet has them."""
    rows = parquet.read_table(next(Path("mind2web/data").glob("test_task-*"))).to_pylist()
    for row in rows:
        row |= {"annotation_id": episode, "action_uid": f"{row['action_uid']}-{episode}"}
    write_parquet(Path(folder) / f"{part}-00000-of-00001.parquet", rows)


def test_mind2web_is_scored_by_its_own_metrics_and_split(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _mind2web_split("many", "test_task", "ann-1")
    _mind2web_split("many", "test_website", "ann-2")
    assert mira(monkeypatch, "data", "import", "mind2web", "many", "-o", "steps.jsonl") == 0
    typed = 'do(action="Type", argument="Rome", element="0")'
    answers = {
        0: 'do(action="Click At", x=60, y=30)',  # in the corner of the element
        1: f"# Element: 40, 20\n{typed}",
        2: 'do(action="Click At", x=61, y=20)',  # outside of it
        3: typed,  # without a place
    }
    write_predictions("steps.jsonl", answers)
    assert mira(monkeypatch, "eval", "planning", "steps.jsonl", "--predictions", "predictions.jsonl", "--json") == 0
    score: dict[str, Any] = json.loads(capsys.readouterr().out.partition("\n")[2])
    shares = {
        part: [metrics[name]["value"] for name in ("macro_element", "macro_operation_f1", "macro_success")]
        for part, metrics in score["mind2web"].items()
    }
    assert shares == {"all": [0.5, 1, 0.5], "test_task": [1, 1, 1], "test_website": [0, 1, 0]}
    assert score["mind2web"]["all"]["task_success"]["value"] == 0.5
    assert score["mind2web"]["all"]["element"]["wilson"]["value"] == 0.5
    assert score["by_group"]["test_website"]["success"]["wilson"]["value"] == 1, "14 % of the screen, by OS-Atlas"
    assert score["full_tasks"]["success"]["value"] == 1 and score["full_tasks"]["exact_match"]["value"] == 0.5
    assert mira(monkeypatch, "eval", "planning", "steps.jsonl", "--predictions", "predictions.jsonl") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Ele.Acc" in shown and "full task success: 100.0% (34-100) by SR, 50.0% (9-91) by EM of 2 episodes" in shown


def test_the_report_draws_both_actions(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert mira(monkeypatch, "data", "import", "mind2web", "mind2web", "-o", "steps.jsonl") == 0
    answers = {
        0: 'do(action="Click At", x=150, y=80)',
        1: '# Element: 50, 25\ndo(action="Type", argument="<b>Rome", element="0")',
    }
    write_predictions("steps.jsonl", answers)
    evaluate = ["eval", "planning", "steps.jsonl", "--predictions", "predictions.jsonl"]
    assert mira(monkeypatch, *evaluate, "-o", "out") == 0
    assert "report: out/report.html" in " ".join(capsys.readouterr().out.split())
    page = Path("out/report.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 2 and page.count('class="wrong"') == 2
    assert page.count('class="box"') == 2, "the element of the step that types, too"
    right, wrong = ("do(action=&#34;Click At&#34;, x=40.5, y=20)", "do(action=&#34;Click At&#34;, x=150, y=80)")
    assert f'class="label reference" text-anchor="start">right: {right}</text>' in page
    assert f'class="label wrong" text-anchor="start">answered: {wrong}</text>' in page
    assert '<circle cx="150" cy="80"' in page and '<circle cx="50" cy="25"' in page
    assert '<line x1="150" y1="80" x2="40.5" y2="20" class="way">' in page
    assert '<ellipse cx="40.5" cy="20" rx="28" ry="14" class="tier">' in page, "14 % of 200 x 100 pixels"
    assert "Type right · SR wrong · TM right · EM wrong · Ele.Acc wrong · Step SR wrong" in page
    assert "Mind2Web, means over episodes" in page and "&lt;b&gt;Rome" in page and "<b>" not in page
    assert mira(monkeypatch, *evaluate, "-o", "out", "--shown", "1") == 0
    shorter = Path("out/report.html").read_text()
    assert shorter.count("<svg") == 1 and "1 more steps are not shown" in shorter


def test_the_report_has_steps_without_a_screenshot(monkeypatch: pytest.MonkeyPatch) -> None:
    target = {"kind": "step", "action": {"kind": "click", "ref": 3}}
    Path("text.jsonl").write_text(
        json.dumps({"name": "a", "messages": [["user", "Save it.\n[3] Save"]], "target": target})
    )
    write_predictions("text.jsonl", {0: "no idea"})
    assert mira(monkeypatch, "eval", "planning", "text.jsonl", "--predictions", "predictions.jsonl", "-o", "out") == 0
    page = Path("out/report.html").read_text()
    assert "<svg" not in page and "<h2>Save it. " in page and "<p>answered: no action</p>" in page


def test_the_macro_mean_weighs_episodes_equally(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mind2Web, §4.1: three steps, two of one episode."""
    _mind2web_split("many", "test_task", "ann-1")
    _mind2web_split("many", "test_website", "ann-2")
    assert mira(monkeypatch, "data", "import", "mind2web", "many", "-o", "steps.jsonl", "--limit", "3") == 0
    write_predictions("steps.jsonl", {1: "no action", 2: "no action"})
    assert mira(monkeypatch, "eval", "planning", "steps.jsonl", "--predictions", "predictions.jsonl", "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.partition("\n")[2])["mind2web"]["all"]
    assert found["element"]["wilson"]["value"] == found["operation_f1"]["value"] == pytest.approx(1 / 3)
    assert found["macro_element"]["value"] == found["macro_operation_f1"]["value"] == pytest.approx(1 / 4)


def test_steps_without_an_episode_are_no_full_tasks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    BUILDERS["gui-r1-3k"](Path("mixed"))
    assert mira(monkeypatch, "data", "import", "gui-r1-3k", "mixed", "-o", "steps.jsonl") == 0
    write_predictions("steps.jsonl", {})
    assert mira(monkeypatch, "eval", "planning", "steps.jsonl", "--predictions", "predictions.jsonl", "--json") == 0
    score: dict[str, Any] = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert score["full_tasks"]["episodes"] == 0 and score["full_tasks"]["success"]["value"] is None
    assert score["episodes"] == 2 and score["mind2web"] == {}


def test_a_scripted_model_is_asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert mira(monkeypatch, "data", "import", "aitz", "aitz", "-o", "steps.jsonl") == 0
    capsys.readouterr()
    answers = ['I see it. do(action="Click At", x=25, y=40)', 'do(action="Type", argument="hotel", element="0")']
    thought = f"<think>{'x' * len(answers[1])}</think>"
    Path("script.json").write_text(json.dumps([answers[0].replace(". ", ".\n"), thought + answers[1]]))
    assert mira(monkeypatch, "eval", "planning", "steps.jsonl", "--policy", "scripted:script.json", "--json") == 0
    score = json.loads(capsys.readouterr().out)
    assert score["overall"]["success"]["wilson"]["value"] == 0.5, "the F1 of hotel and hotels is 0"
    assert score["overall"]["exact_match"]["wilson"]["value"] == 1
    assert score["by_type"]["type"]["thought_tokens"]["value"] is not None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing", "aitz"], "unknown mira.data_sets entry 'nothing': known are screenspot, "),
        (["aitz", "absent"], "'absent' does not exist: aitz is train/ and test/"),
        (["aitz", "aitz", "--split", "dev"], "--split 'dev': this data set has train, test"),
        (["aitz", "aitz", "--ask", "element"], "--ask element: aitz has no such question: use step or goal"),
        (["aitz", "aitz", "--ask", "all"], "--ask 'all': use element, goal, step"),
        (["screenspot-pro", "aitz"], "holds no annotations/*.json"),
        (["android-control", "aitz"], "holds no TFRecord files android_control*"),
        (["folder", "folder/labels.csv", "--coordinates", "mm"], "--coordinates 'mm': use pixels,"),
    ],
)
def test_bad_input_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert mira(monkeypatch, "data", "import", *words, "-o", "x.jsonl") == 2
    problem = " ".join(capsys.readouterr().err.split())
    assert says in problem
    assert not Path("x.jsonl").exists()


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("shots/none.png,x,0,0,9,9,,", "row 2: the image 'shots/none.png' is not in folder"),
        ("shots/cart.png,x,9,0,0,9,,", "row 2: the box 9, 0, 0, 9 must be left, top, right, bottom in pixels"),
        ("shots/cart.png,x,0,0,900,9,,", "row 2: the box 0, 0, 900, 9 is outside of the image, 200 x 100"),
        ("shots/cart.png,x,a,0,9,9,,", "row 2: 'left' must be a number of pixels, not 'a'"),
        ("shots/cart.png,x,nan,0,9,9,,", "row 2: 'left' must be a number, not nan"),
        ("shots/cart.png,,0,0,9,9,,", "row 2: 'instruction' must be a text, not nothing"),
        ("shots/cart.png,x,0,0,9,9,image,", "row 2: 'role' must be text or icon, not 'image'"),
        ("shots/cart.png,x,0,0", "row 2: 8 values are expected, as in the first line"),
    ],
)
def test_a_bad_row_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], row: str, says: str
) -> None:
    table = Path("folder/labels.csv")
    lines = table.read_text().split("\n")
    table.write_text("\n".join((*lines[:2], row)))
    assert mira(monkeypatch, "data", "import", "folder", "folder", "-o", "x.jsonl") == 2
    assert f"labels.csv {says}" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"no record at all, but long enough", "does not begin with its length and checksum"),
        (b"\x1f\x8bnot gzip", "is not a readable TFRecord file"),
        (b"\x01", "does not begin with its length and checksum"),
    ],
)
def test_a_damaged_tfrecord(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], data: bytes, says: str
) -> None:
    Path("android_control-0").write_bytes(data)
    assert mira(monkeypatch, "data", "import", "android-control", "android_control-0", "-o", "x.jsonl") == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mira(monkeypatch, "data", "import", "mind2web", "mind2web", "-o", "one.jsonl", "--limit", "1") == 0
    assert len(read_examples(Path("one.jsonl"))) == 1


def test_examples_without_an_action_are_not_planned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mira(monkeypatch, "data", "import", "folder", "folder", "-o", "x.jsonl") == 0
    assert mira(monkeypatch, "eval", "planning", "x.jsonl", "--predictions", "x.jsonl") == 2
    assert "asks for no action: make the file with --ask step" in " ".join(capsys.readouterr().err.split())


def test_an_interrupted_evaluation_continues(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mira(monkeypatch, "data", "import", "aitz", "aitz", "-o", "steps.jsonl") == 0
    Path("script.json").write_text(json.dumps(["exit()", "go_backward()"]))
    evaluate = ["eval", "planning", "steps.jsonl", "--policy", "scripted:script.json", "-o", "out"]
    assert mira(monkeypatch, *evaluate) == 0
    kept = Path("out/predictions.jsonl")
    whole = kept.read_text()
    first, second = whole.splitlines()
    kept.write_text(f"{first}\n{second[:-9]}")
    Path("script.json").write_text(json.dumps(["go_backward()"]))
    assert mira(monkeypatch, *evaluate) == 0
    assert kept.read_text() == whole
    Path("script.json").unlink()
    assert mira(monkeypatch, *evaluate) == 0, "nothing is left to ask"
    assert mira(monkeypatch, *evaluate, "--max-tokens", "9") == 2
    assert "holds an evaluation with other settings of max_tokens: restore" in " ".join(capsys.readouterr().err.split())
