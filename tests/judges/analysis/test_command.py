"""`mira analyze` on recorded failures: tables, JSON, damaged traces, wrong input."""

from __future__ import annotations

import json
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from agent.cli.analyze import NAMES
from agent.inspection.report.charts import CATEGORIES
from agent.inspection.report.episodes import loop_end
from judges.analysis import Analysis
from tests.mira_command import mira

SET = Path(__file__).parents[2] / "data" / "failures"
REFERENCES = SET / "references"


@pytest.fixture
def some(tmp_path: Path) -> Path:
    """Five recorded failures in a folder of their own."""
    (tmp_path / "some" / "episodes").mkdir(parents=True)
    for path in sorted((SET / "episodes").glob("*.jsonl"))[::20][:5]:
        shutil.copy(path, tmp_path / "some" / "episodes")
    (tmp_path / "some" / "blobs").symlink_to(SET / "blobs")
    return tmp_path / "some"


def as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    assert mira(monkeypatch, "analyze", *words, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_every_failure_is_a_record_and_counted(
    some: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    output = as_json(monkeypatch, capsys, some, "--references", REFERENCES)
    parsed = [Analysis.model_validate(one) for one in output["analyses"]]
    assert len(parsed) == 5 == sum(total["count"] for total in output["totals"])
    assert all(one.references for one in parsed) and output["problems"] == []
    assert sum(output["episodes"].values()) == 5


def test_tables_for_people(some: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert mira(monkeypatch, "analyze", some) == 0
    out = capsys.readouterr().out
    assert "5 episodes" in out and "key step" in out and "failures by kind of site and policy" in out


def test_the_tables_the_json_and_the_report_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """On the hard cases: loops, limits, equal links, and a case with two references."""
    words = (SET / "hard", "--references", SET / "hard" / "references")
    analyses = [Analysis.model_validate(one) for one in as_json(monkeypatch, capsys, *words)["analyses"]]
    assert mira(monkeypatch, "analyze", *words, "--wide") == 0
    table = capsys.readouterr().out.splitlines()
    assert mira(monkeypatch, "report", *words, "--out", tmp_path / "r.html") == 0
    articles = (tmp_path / "r.html").read_text(encoding="utf-8").split("<template id=")[1:]
    assert len(analyses) == len(articles) == 15
    for one, article in zip(analyses, articles, strict=True):
        failure, gone = one.failure, one.divergence
        cells = (one.episode_id, NAMES[failure.category], f"{failure.key_step} of {one.steps}", failure.reason)
        cells += (f"at {gone.step}", gone.reason) if gone else ("not",)
        assert any(all(cell in line for cell in cells) for line in table)
        shown_html = unescape(article)
        assert CATEGORIES[failure.category] in shown_html and failure.reason in shown_html
        assert f"Go to the key step, {failure.key_step}<" in shown_html
        assert ("Diverged from the reference at" in shown_html) == (gone is not None)
        assert gone is None or f"step {gone.step}</a>" in shown_html
        loop = failure.loop
        assert ('class="tag loop"' in shown_html) == (loop is not None)
        assert shown_html.count(" looped") == (loop_end(loop) - loop.entry if loop is not None else 0)


def test_a_loop_says_what_the_success_did_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Only wrong stops and other failures did."""
    trace = SET / "episodes" / "on_and_off--forum-move-topic.jsonl"
    (tmp_path / "one" / "episodes").mkdir(parents=True)
    shutil.copy(trace, tmp_path / "one" / "episodes")
    (tmp_path / "one" / "blobs").symlink_to(SET / "blobs")
    words = (tmp_path / "one", "--references", REFERENCES)
    (analysis,) = as_json(monkeypatch, capsys, *words)["analyses"]
    gone, success = analysis["divergence"], analysis["nearest"]
    instead = f"{success}, which did: click on link 'whitefly on my courgettes, what now?'"
    assert analysis["failure"]["category"] == "stuck_midway"
    assert (gone["step"], gone["reference_step"]) == (3, 3) and gone["reason"].endswith(instead)
    assert mira(monkeypatch, "analyze", *words, "--wide") == 0
    assert f"without progress; from step 3 on it did not follow {instead}" in capsys.readouterr().out


def test_an_error_is_named_once_and_not_blamed_on_the_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The text was "broke, not the policy: ModelUnavailable", and the key step of an episode without steps "- of 0"."""
    (tmp_path / "one" / "episodes").mkdir(parents=True)
    (tmp_path / "one" / "blobs").symlink_to(SET / "blobs")
    shutil.copy(SET / "episodes" / "model_breaks--shop-admin-readdress.jsonl", tmp_path / "one" / "episodes")
    assert mira(monkeypatch, "analyze", tmp_path / "one", "--references", REFERENCES, "--wide") == 0
    out = capsys.readouterr().out
    assert out.startswith("1 episode: 1 broken\n")
    failed = "the environment or a model failed (ModelUnavailable: the model server went away)"
    assert f"{failed}, which says nothing about the policy\n" in out and "Final check: NOT DONE.\n" in out


def test_the_report_pairs_the_steps_that_the_analysis_paired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Back by the logo where the reference takes Home: one row, and the wrong product is where it left."""
    trace = SET / "hard" / "episodes" / "logo_then_wrong_product--shop-compare.jsonl"
    (tmp_path / "one" / "episodes").mkdir(parents=True)
    (tmp_path / "one" / "blobs").symlink_to(SET / "hard" / "blobs")
    shutil.copy(trace, tmp_path / "one" / "episodes")
    assert (
        mira(
            monkeypatch,
            "report",
            tmp_path / "one",
            "--references",
            SET / "hard" / "references",
            "--out",
            tmp_path / "r.html",
        )
        == 0
    )
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    rows = [row.split("</summary>")[0] for row in text.split("<li class=")[1:] if "data-step" in row]
    same = [row.split('data-step="')[1].split('"')[0] for row in rows if row.startswith('"same')]
    gone = [row.split('data-step="')[1].split('"')[0] for row in rows if row.split(">")[0].endswith(' gone"')]
    assert (same, gone) == (["1", "2", "3", "4", "5", "6"], ["7"])


def test_one_trace_is_shown_with_its_summary(
    some: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert mira(monkeypatch, "analyze", next((some / "episodes").iterdir())) == 0
    assert "inal check" in " ".join(capsys.readouterr().out.split())


def test_successes_of_the_same_runs_are_references(
    tmp_path: Path, some: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "won").symlink_to(REFERENCES)
    output = as_json(monkeypatch, capsys, tmp_path)
    assert output["episodes"]["success"] > 0 and len(output["analyses"]) == 5
    assert all(one["references"] for one in output["analyses"])


def test_damaged_and_unfinished_traces_are_named_and_passed_over(
    some: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    first, second, third, *_ = sorted((some / "episodes").iterdir())
    first.write_text('{"kind": "header"\n')
    lines = second.read_bytes().splitlines(keepends=True)
    second.write_bytes(b"".join([*lines[:3], b'{"kind": "intent", "step": "x"}\n', *lines[3:]]))
    third.write_bytes(third.read_bytes()[:-40])
    assert mira(monkeypatch, "analyze", some, "--json") == 0
    captured = capsys.readouterr()
    output = json.loads(captured.out)
    assert (len(output["analyses"]), len(output["problems"]), output["episodes"]["unfinished"]) == (2, 2, 1)
    assert len(captured.err.strip().splitlines()) == 2 and first.name in captured.err


def test_nothing_that_can_be_read(some: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    for path in (some / "episodes").iterdir():
        path.write_text("{}\n")
    assert mira(monkeypatch, "analyze", some) == 2
    assert "skipped" in capsys.readouterr().err


def test_a_lost_page_text_is_no_reason_to_stop(
    some: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (some / "blobs").unlink()
    assert len(as_json(monkeypatch, capsys, some, "--references", REFERENCES)["analyses"]) == 5


def unjudged(path: Path, ended_by: str) -> None:
    """The episode as an open task's that nobody judged."""
    *lines, last = path.read_text().splitlines()
    footer = json.loads(last) | {"outcome": "unjudged", "judged_by": "none", "score": None, "ended_by": ended_by}
    path.write_text("\n".join([*lines, json.dumps(footer, separators=(",", ":"))]) + "\n")


def test_unjudged_episodes_are_explained_where_they_were_cut_off_and_counted_where_they_stopped(
    some: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    endings = dict(
        zip(sorted((some / "episodes").iterdir()), ("max_steps", "max_seconds", "error", "stop", "stop"), strict=True)
    )
    for path, ended_by in endings.items():
        unjudged(path, ended_by)
    output = as_json(monkeypatch, capsys, some)
    assert [one["ended_by"] for one in output["analyses"]] == ["max_steps", "max_seconds", "error"]
    assert {one["outcome"] for one in output["analyses"]} == {"unjudged"}
    assert all(one["failure"]["key_step"] for one in output["analyses"])
    assert all("Final check: not judged" in one["summary"] for one in output["analyses"])
    assert (output["episodes"], output["undecided"], output["totals"]) == ({"unjudged": 5}, 2, [])
    assert mira(monkeypatch, "analyze", some) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "2 episodes stopped by themselves and were not judged" in out and "failures by kind of site" not in out


WRONG = [
    pytest.param(["nowhere"], "holds no traces", id="no such folder"),
    pytest.param([SET, "--references", "nowhere"], "holds no traces", id="no such references"),
    pytest.param([SET, "--judge", "oracle:x"], "unknown model", id="unknown judge"),
]


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_wrong_input_is_one_line(
    words: list[object], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert mira(monkeypatch, "analyze", *words) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and message in captured.err and len(captured.err.splitlines()) == 1


def test_episodes_without_the_judges_verdict_are_named_and_the_others_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    script = tmp_path / "judge.json"
    script.write_text(json.dumps([{"when": "action one", "answer": "perhaps"}]))
    words = (SET, "--references", REFERENCES)
    alone = as_json(monkeypatch, capsys, *words)
    judged = as_json(monkeypatch, capsys, *words, "--judge", f"scripted:{script}")
    assert judged["problems"] and all("gave no verdict" in one["problem"] for one in judged["problems"])
    assert len(alone["analyses"]) - len(judged["problems"]) == len(judged["analyses"]) > 0
    assert all(one in alone["analyses"] for one in judged["analyses"])


def test_a_failure_that_cannot_be_explained_at_all_has_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    script = tmp_path / "judge.json"
    script.write_text(json.dumps([{"when": "action one", "answer": "perhaps"}]))
    words = (SET, "--references", REFERENCES, "--judge", f"scripted:{script}")
    skipped = Path(as_json(monkeypatch, capsys, *words)["problems"][0]["trace"])
    assert mira(monkeypatch, "analyze", skipped, *words[1:]) == 2
    assert "gave no verdict" in capsys.readouterr().err
