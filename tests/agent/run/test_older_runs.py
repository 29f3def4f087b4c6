"""Runs and configuration files of older versions: their keys are accepted, and a file of checkpoints is ignored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.cli.options import build_config
from agent.config import parse_config
from agent.run.run_mark import marked
from agent.run.run_store import RunFolder
from agent.run.runner import resume, run_open, run_task
from envs.core.errors import BadInput
from tests.agent.run.test_run_folder_damage import AGAIN, agrees, cut_run
from tests.agent.shop import Shop, config, scripted

OLD_KEYS: dict[str, Any] = {"durability": "async", "checkpoint_url": "postgresql://me@127.0.0.1:9/mira"}
HINTS = (
    "vain_temperature is now called retry_temperature",
    "checkpoint_url has no effect any more",
    "durability has no effect any more",
)


def make_older(run: RunFolder) -> None:
    """Gives `run.json` the keys of an older version, and the folder a damaged file of checkpoints."""
    values = json.loads(run.manifest.read_text(encoding="utf-8"))
    del values["mark"], values["config"]["retry_temperature"]
    values["config"] |= OLD_KEYS | {"vain_temperature": 0.25}
    run.manifest.write_text(json.dumps(marked(values)), encoding="utf-8")
    (run.path / "checkpoints.sqlite").write_bytes(b"no database")


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_an_older_run_resumes_from_its_trace(shop: Shop, tmp_path: Path) -> None:
    run = RunFolder(await cut_run(shop, tmp_path))
    make_older(run)
    manifest, own = run.read_marked()
    assert (manifest.config.retry_temperature, own) == (0.25, True)
    result = await resume(run.path, policy=scripted(AGAIN), approver=agrees)
    assert result.complete and result.episodes[0].ended_by == "stop"
    assert shop.orders == ["who=bob"]
    assert (run.path / "checkpoints.sqlite").read_bytes() == b"no database"


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_a_run_stores_the_present_keys_alone(shop: Shop, tmp_path: Path) -> None:
    settings = config(**OLD_KEYS, vain_temperature=0.25)
    run = await run_open(settings, "Order", shop.url, tmp_path, policy=scripted(()))
    stored = json.loads((run.folder / "run.json").read_text(encoding="utf-8"))["config"]
    assert stored["retry_temperature"] == 0.25
    assert not stored.keys() & {"vain_temperature", *OLD_KEYS}
    assert not list(run.folder.glob("checkpoints*"))


def test_a_file_with_old_keys_is_accepted_with_a_hint_for_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.toml"
    path.write_text('vain_temperature = 0.25\ndurability = "exit"\ncheckpoint_url = "x"\n', encoding="utf-8")
    assert build_config(path, {}).retry_temperature == 0.25
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in lines] == [f"mira: {path}: {hint}" for hint in HINTS]


def test_present_keys_bring_no_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.toml"
    path.write_text("retry_temperature = 0.25\n", encoding="utf-8")
    assert build_config(path, {}).retry_temperature == 0.25
    assert capsys.readouterr().err == ""


async def test_old_keys_from_python_are_warned_of() -> None:
    with pytest.warns(FutureWarning) as caught, pytest.raises(BadInput):
        await run_task("Order", "no address", vain_temperature=0.25, **OLD_KEYS)
    texts = [str(warning.message).partition(",")[0] for warning in caught if warning.category is FutureWarning]
    assert texts == [f"run_task: {hint}" for hint in HINTS]


def test_the_present_name_wins_over_the_old_one() -> None:
    assert parse_config({"vain_temperature": 0.25, "retry_temperature": 0.5}).retry_temperature == 0.5


def test_a_wrong_value_under_an_old_name_is_refused() -> None:
    with pytest.raises(BadInput, match="key 'retry_temperature'"):
        parse_config({"vain_temperature": 3})
