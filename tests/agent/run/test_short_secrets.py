"""A short secret that occurs by chance in what Mira writes itself does not damage a run."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.run.runner import run_open, run_suite
from envs.core.errors import BadInput
from envs.core.tasks import TaskSelection
from envs.core.trace_store import BlobStore, read_trace
from tests.agent.run.killable import ORDER
from tests.agent.shop import Shop, config, scripted

PIN = "4711"


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_a_date_as_a_secret_does_not_change_times_and_the_run_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shop: Shop
) -> None:
    """Symptom: `at` read `<secret>DAY</secret>T…`, and the id of the trace was not that of its run."""
    monkeypatch.setenv("DAY", f"{datetime.now(UTC):%Y%m%d}")
    settings = config(secrets=("DAY=env:DAY",))
    run = await run_open(settings, "Order", shop.url, tmp_path, policy=scripted(ORDER))
    trace = read_trace(run.folder / run.episodes[0].trace)
    assert run.run_id.startswith(os.environ["DAY"])
    assert (trace.header.run_id, trace.header.episode_id) == (run.run_id, run.episodes[0].episode_id)
    assert trace.footer is not None and trace.steps
    for written in (trace.header.started_at, trace.footer.at, *(step.intent.at for step in trace.steps)):
        datetime.fromisoformat(written)
    blobs = BlobStore(run.folder / "blobs")
    assert all(blobs.text(step.intent.seen.text_blob) for step in trace.steps)


async def test_an_id_that_holds_a_secret_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIN", PIN)
    settings = config(secrets=("PIN=env:PIN@shop.example",))
    with pytest.raises(BadInput, match="the run id holds the value of a secret") as error:
        await run_open(settings, "Order", "https://shop.example", tmp_path, run_id=f"order-{PIN}")
    assert PIN not in str(error.value)
    with pytest.raises(BadInput, match="'order-<secret>PIN</secret>' holds the value of a secret") as error:
        await run_suite(settings, TaskSelection("sites", (f"order-{PIN}",), (0,)), tmp_path)
    assert PIN not in str(error.value)
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - iterdir is not for async functions
