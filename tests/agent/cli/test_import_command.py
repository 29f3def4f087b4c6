"""`mira import`: foreign logs become traces that `mira show` lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.cli.app import application
from agent.run.discover_traces import discover_traces

AGENTLAB = Path(__file__).parents[2] / "data" / "importing" / "agentlab"


def test_an_imported_folder_is_gathered_like_a_run(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        application(["import"]), ["import", "agentlab", str(AGENTLAB), "--out", str(tmp_path / "out"), "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["outcomes"] == {"failure": 1}
    (episode,) = discover_traces([tmp_path / "out"])
    trace = episode.read()
    assert episode.blobs.text(trace.steps[0].intent.seen.text_blob)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["selenium", "."], "unknown format 'selenium'"), (["webarena", "no/such"], "'no/such' is not a folder")],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(application(["import"]), ["import", *arguments, "--out", str(tmp_path / "out")])
    assert done.exit_code != 0 and message in str(done.exception)
    assert not (tmp_path / "out").exists()
