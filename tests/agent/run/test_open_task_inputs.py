"""An open task whose text or URL is missing is refused from Python as on the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agent.config import RunConfig
from agent.run.runner import run_open, run_task
from envs.core.errors import BadInput

URL = "https://shop.example"


@pytest.mark.parametrize(
    ("instruction", "url", "says"),
    [
        pytest.param("Buy tea", None, "an open task needs a URL: give the address of its first page", id="no URL"),
        pytest.param("Buy tea", "", "an open task needs a URL", id="empty URL"),
        pytest.param("Buy tea", Path("/tmp"), "open task: key 'url': Input should be a valid string", id="a path"),
        pytest.param(None, URL, "open task: key 'instruction': Input should be a valid string", id="no text"),
    ],
)
async def test_a_missing_text_or_url_is_refused_in_one_line(
    tmp_path: Path, instruction: Any, url: Any, says: str
) -> None:
    with pytest.raises(BadInput) as error:
        await run_task(instruction, url, out=tmp_path)
    assert says in str(error.value) and "\n" not in str(error.value)
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - iterdir is not for async functions


async def test_a_refused_run_keeps_what_its_folder_held_before(tmp_path: Path) -> None:
    """A caller may name a folder that exists. The start page cannot be opened, so the run is discarded."""
    kept = tmp_path / "r" / "chapter.tex"
    kept.parent.mkdir()
    kept.write_text("text")
    config = RunConfig(policy="embedded", planner="none", judge="none")
    with pytest.raises(BadInput, match="could not be opened"):
        await run_open(config, "Buy tea", "http://127.0.0.1:9/", tmp_path, run_id="r")
    assert sorted(os.listdir(kept.parent)) == ["chapter.tex", "lease"]  # noqa: PTH208 - a lock file is never removed
