"""Exports in a real vLLM, with token ids and log-probabilities, and adapters that are exchanged while it runs.

By hand: `scripts/vllm_cpu.sh ~/vllm && MIRA_VLLM=~/vllm pytest -m heavy tests/training/serving`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.config import RunConfig
from agent.run.discover_traces import discover_traces
from agent.run.run_store import RunFolder
from agent.run.runner import run_suite
from envs.core.errors import BadInput
from envs.core.tasks import TaskSelection
from models.base import ChatReply, ChatRequest, Message, ModelRejected, ModelUnavailable
from models.embedded import embedded_dir
from models.specs import make_model
from tests.models.local.adapters import save_adapter
from tests.training.serving.servers import free_port, server
from training.data.trajectories import select
from training.loop.loop import Loop
from training.loop.parts import run_location
from training.loop.settings import LoopSettings
from training.serving.export import export
from training.serving.reload import AdapterServer
from training.serving.rollout_server import served_name

HOME = os.environ.get("MIRA_VLLM")
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(HOME is None, reason="MIRA_VLLM names no folder of scripts/vllm_cpu.sh"),
]
PROMPT = Message("user", 'Goal: Click on the "Save" button.\nPage:\n[1] button "Save"\n[2] button "Delete"')
OPTIONS = ("--dtype", "float32", "--enforce-eager", "--gpu-memory-utilization", "0.3")
"""The last is a share of the machine's memory, on a CPU too."""
ROUNDING = 1e-4
"""Two float32 programs for the same numbers; the adapters here move log-probabilities by far more than this."""


@dataclass(frozen=True)
class Served:
    url: str
    base: Path
    """Merged weights; the server calls them `policy`."""
    adapters: tuple[Path, ...]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    work = tmp_path_factory.mktemp("vllm")
    export(embedded_dir(), None, work / "base", dtype="float32")
    for seed in range(2):
        lora = save_adapter(work / "base", work / f"lora-{seed}", seed=seed, size=0.05)
        export(work / "base", lora, work / f"phase-{seed}", kind="adapter")
    port = free_port()
    words = [f"{HOME}/bin/vllm", "serve", str(work / "base"), "--served-model-name", "policy"]
    words += [*OPTIONS, "--enable-lora", "--max-lora-rank", "8"]
    settings = {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    with server([*words, "--host", "127.0.0.1", "--port", str(port)], ready_s=500, environ=settings):
        yield Served(f"http://127.0.0.1:{port}", work / "base", (work / "phase-0", work / "phase-1"))


async def answer(spec: str) -> ChatReply:
    """The answer, a few tokens of it where the adapter's noise makes it endless."""
    model = make_model(spec)
    reply = await model.complete(ChatRequest((PROMPT,), logprobs=True, max_tokens=100))
    await model.aclose()
    return reply


def same(ours: ChatReply, theirs: ChatReply) -> bool:
    ids = ours.prompt_token_ids == theirs.prompt_token_ids and ours.completion_token_ids == theirs.completion_token_ids
    pairs = zip(ours.logprobs or (), theirs.logprobs or (), strict=True)
    return ids and ours.prompt_token_ids is not None and all(abs(a - b) < ROUNDING for a, b in pairs)


async def test_adapters_are_exchanged_while_it_runs(served: Served) -> None:
    base = await answer(f"local:{served.base}")
    assert same(base, await answer(f"vllm:{served.url}#policy"))
    async with AdapterServer(served.url) as adapters:
        for folder in served.adapters:
            await adapters.put("actor", folder)
            local = await answer(f"local:{served.base}+{folder}")
            assert same(local, await answer(f"vllm:{served.url}#actor"))
            assert not same(local, base), "an adapter that changes nothing proves nothing"
        with pytest.raises(BadInput, match="old weights"):
            await adapters.put("actor", served.adapters[-1])
        assert await adapters.remove("actor")
        assert [model.id for model in await adapters.models()] == ["policy"]


async def test_an_adapter_that_vllm_rejects_changes_nothing(served: Served, tmp_path: Path) -> None:
    too_wide = save_adapter(served.base, tmp_path / "wide", r=16)
    async with AdapterServer(served.url) as adapters:
        with pytest.raises(ModelRejected, match="greater than max_lora_rank"):
            await adapters.put("actor", too_wide)
    assert same(await answer(f"local:{served.base}"), await answer(f"vllm:{served.url}#policy"))


@pytest.mark.browser
async def test_its_episodes_have_the_data_for_training(served: Served, tmp_path: Path) -> None:
    config = RunConfig(policy=f"vllm:{served.url}#policy", profile="compact", workers=2)
    played = await run_suite(config, TaskSelection("miniwob", ("click-button",), (0, 1)), tmp_path)
    assert [episode.outcome for episode in played.episodes] == ["success"] * 2
    kept = select((file.read(), file.blobs) for file in discover_traces([played.folder])).kept
    tokens = [decision.tokens for episode in kept for decision in episode.decisions]
    assert tokens
    assert all(one is not None and one.logprobs and len(one.logprobs) == len(one.completion) for one in tokens)


def phase_on(url: str, start: Path, **settings: Any) -> LoopSettings:
    """One phase of a loop that plays on the server at *url*."""
    rollouts = {"tasks": 4, "server": {"url": url, **settings.pop("server", {})}}
    tasks = {"names": ("click-button", "login-user")}
    server_settings = {
        "start": str(start),
        "phases": 1,
        "rollouts": rollouts,
        "pool": tasks,
        "evaluation": {**tasks, "seeds": (0,)},
    }
    return LoopSettings.model_validate(server_settings | settings)


def policies(loop: Loop) -> list[str]:
    """The policies of the start's evaluation, the rollouts and the actor's evaluation."""
    parts = [run_location(loop.folder(number) / f"{part}.json") for number, part in PARTS]
    return [RunFolder(part).read_manifest().config.policy for part in parts]


PARTS = ((0, "evaluation"), (1, "rollouts"), (1, "evaluation"))


@pytest.mark.browser
async def test_a_loop_puts_its_adapters_into_a_running_server(served: Served, tmp_path: Path) -> None:
    compute = {"shared_base": True, "lora": {"rank": 8, "alpha": 16}, "threads": 1}
    loop = Loop.open(tmp_path / "loop", phase_on(served.url, served.base, compute=compute))
    progress = await loop.run()
    actor = loop.folder(1) / "actor" / "model"
    url = f"vllm:{served.url}/v1#"
    assert policies(loop) == [f"{url}policy", f"{url}policy", f"{url}{served_name(actor)}"]
    assert [one.evaluation.broken for one in progress.phases if one.evaluation] == [0, 0]
    apart = progress.phases[1].logprob_difference
    assert apart is not None and apart < ROUNDING
    async with AdapterServer(served.url) as adapters:
        assert [one.root for one in await adapters.models() if one.id == served_name(actor)] == [str(actor)]


@pytest.mark.browser
@pytest.mark.parametrize("shared_base", [False, True], ids=["whole checkpoints", "adapters"])
async def test_a_loop_starts_a_server_for_each_policy(tmp_path: Path, shared_base: bool) -> None:
    export(embedded_dir(), None, tmp_path / "base", dtype="float32")
    url = f"http://127.0.0.1:{free_port()}"
    server = {"command": (f"{HOME}/bin/vllm", "serve"), "options": OPTIONS}
    compute = {"threads": 1} | ({"shared_base": True, "lora": {"rank": 4, "alpha": 8}} if shared_base else {})
    loop = Loop.open(tmp_path / "loop", phase_on(url, tmp_path / "base", server=server, compute=compute))
    progress = await loop.run()
    actor = loop.folder(1) / "actor" / "model"
    start = f"vllm:{url}/v1#{served_name(tmp_path / 'base')}"
    assert policies(loop) == [start, start, f"vllm:{url}/v1#{served_name(actor)}"]
    apart = progress.phases[1].logprob_difference
    assert apart is not None and apart < ROUNDING
    async with AdapterServer(url, deadline_s=5) as gone:
        with pytest.raises(ModelUnavailable):
            await gone.models()
