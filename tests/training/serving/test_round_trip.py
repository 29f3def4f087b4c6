"""Round trip: a checkpoint with an adapter is exported, served by transformers' server, and runs tasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.config import RunConfig
from agent.run.discover_traces import discover_traces
from agent.run.runner import run_suite
from envs.core.tasks import TaskSelection
from models.base import ChatRequest
from models.embedded import embedded_dir
from models.specs import make_model
from tests.models.local.adapters import save_adapter
from tests.training.serving.servers import transformers_serve
from training.data.trajectories import prompt_of, select
from training.serving.export import export

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """(exported folder, base URL of its server)"""
    pytest.importorskip("fastapi", reason="needs the extra `serving`")
    work = tmp_path_factory.mktemp("served")
    export(embedded_dir(), save_adapter(embedded_dir(), work / "lora", size=0.005), work / "policy", dtype="float32")
    with transformers_serve(work / "policy") as url:
        yield work / "policy", url


async def test_a_served_export_answers_like_the_checkpoint(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, url = served
    config = RunConfig(policy=f"openai:{folder}", base_url=url, workers=1)
    played = await run_suite(config, TaskSelection("miniwob", ("click-button", "enter-text"), (0,)), tmp_path)
    assert [episode.outcome for episode in played.episodes] == ["success"] * 2
    traces = ((file.read(), file.blobs) for file in discover_traces([played.folder]))
    recorded = [decision for episode in select(traces).kept for decision in episode.decisions]
    assert len(recorded) >= 3
    local = make_model(f"local:{folder}")
    for decision in recorded:
        reply = await local.complete(ChatRequest(prompt_of(decision), max_tokens=120))
        assert reply.text == decision.completion
    await local.aclose()
