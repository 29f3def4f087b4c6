"""`mira data`: output and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from envs.suites.wheel_data import DATA
from tests.agent.mira_process import run_mira


def mira(*words: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """The command with a cache of its own and without a package index."""
    env = os.environ | {"XDG_CACHE_HOME": str(cache), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    return run_mira("data", *words, env=env)


def test_the_list_shows_what_is_cached(tmp_path: Path) -> None:
    done = mira("list", "--json", cache=tmp_path)
    rows = json.loads(done.stdout)
    assert [row["name"] for row in rows] == list(DATA)
    assert all(row["folder"] is None for row in rows)
    table = mira("list", cache=tmp_path).stdout
    assert "webarena-verified==1.2.3" in table and "ODbL-1.0" in table


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("get", "webarena-light"), "unknown data set 'webarena-light': known are webarena-lite, "),
        (("get", "webarena", "--path", "/nowhere"), "--path '/nowhere' does not exist: name the wheel of libwebarena"),
        (("get", "webarena"), "pip could not fetch libwebarena==0.0.5"),
    ],
)
def test_an_error_is_one_line_and_exit_code_2(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    done = mira(*words, cache=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_another_wheel_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "libwebarena-0.0.5-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("webarena/test.raw.json", "[]")
    done = mira("get", "webarena", "--path", str(wheel), cache=tmp_path)
    assert done.returncode == 2
    assert "expected 7b50386fd691…: not used" in done.stderr
