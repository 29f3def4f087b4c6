"""Adapters loaded into a running server.

The server of the fast tests is a stand-in (:mod:`tests.training.serving.stand_in`);
:mod:`tests.training.serving.test_vllm` asks vLLM itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from envs.core.errors import BadInput
from models.base import ModelBusy, ModelError, ModelRejected, ModelTimeout, ModelUnavailable
from models.transport import RetryPolicy
from tests.training.serving.stand_in import StandIn, refusal
from training.serving.reload import AdapterServer


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    server = StandIn()
    yield server
    server.close()


@pytest.fixture
def phases(tmp_path: Path) -> list[Path]:
    folders = [tmp_path / f"phase-{i}" for i in range(2)]
    for folder in folders:
        folder.mkdir()
        (folder / "adapter_config.json").write_text("{}")
        save_file({"weight": torch.zeros(1)}, folder / "adapter_model.safetensors")
    return folders


def client(url: str, **settings: Any) -> AdapterServer:
    return AdapterServer(url, policy=RetryPolicy(max_attempts=3, base_s=0.01), **settings)


async def test_a_name_is_replaced_in_place_phase_after_phase(stand_in: StandIn, phases: list[Path]) -> None:
    async with client(stand_in.url + "/v1") as server:
        for folder in phases:
            served = await server.put("actor", folder)
            assert (served.root, served.parent) == (str(folder), "policy")
        assert [model.id for model in await server.models()] == ["policy", "actor"]
        assert await server.remove("actor")
        assert not await server.remove("actor"), "gone already"
    assert stand_in.adapters == {}


async def test_a_folder_that_is_loaded_is_rejected(stand_in: StandIn, phases: list[Path]) -> None:
    async with client(stand_in.url) as server:
        await server.put("actor", phases[0])
        with pytest.raises(BadInput, match="cache would keep old weights"):
            await server.put("actor", phases[0])
        with pytest.raises(BadInput, match="is the base model"):
            await server.put("policy", phases[1])
    assert stand_in.adapters == {"actor": str(phases[0])}


@pytest.mark.parametrize("name", ["", "a b", "../x", "a" * 101])
async def test_bad_names_never_reach_the_server(stand_in: StandIn, phases: list[Path], name: str) -> None:
    async with client(stand_in.url) as server:
        with pytest.raises(BadInput, match="adapter name"):
            await server.put(name, phases[0])
    assert stand_in.asked == []


async def test_a_folder_that_is_no_adapter(stand_in: StandIn, tmp_path: Path) -> None:
    async with client(stand_in.url) as server:
        with pytest.raises(BadInput, match="holds no adapter_config"):
            await server.put("actor", tmp_path)


async def test_a_server_without_adapters_is_named_as_such(phases: list[Path]) -> None:
    plain = StandIn(takes_adapters=False)
    async with client(plain.url) as server:
        with pytest.raises(ModelUnavailable, match="VLLM_ALLOW_RUNTIME_LORA_UPDATING=1"):
            await server.put("actor", phases[0])
    plain.close()


@pytest.mark.parametrize(
    ("status", "error", "asked"),
    [(500, ModelRejected, 1), (400, ModelRejected, 1), (503, ModelBusy, 3), (429, ModelBusy, 3)],
)
async def test_rejections_are_final_and_overload_is_retried(
    stand_in: StandIn, status: int, error: type[ModelError], asked: int
) -> None:
    stand_in.refused = [(status, refusal("no\nroom", "X", status))] * 3
    async with client(stand_in.url) as server:
        with pytest.raises(error, match="no room") as caught:
            await server.models()
    assert "\n" not in str(caught.value)
    assert len(stand_in.asked) == asked


async def test_overload_that_passes_is_not_seen(stand_in: StandIn, phases: list[Path]) -> None:
    stand_in.refused = [(503, refusal("starting", "X", 503))]
    async with client(stand_in.url) as server:
        assert (await server.put("actor", phases[0])).root == str(phases[0])


async def test_nobody_there_and_nobody_answering(stand_in: StandIn) -> None:
    stand_in.close()
    async with client(stand_in.url) as server:
        with pytest.raises(ModelUnavailable, match="is the server running"):
            await server.models()
    hung = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)  # listens, and nobody accepts
    async with client(f"http://127.0.0.1:{hung.server_port}", deadline_s=0.5) as server:
        with pytest.raises(ModelTimeout):
            await server.models()
    hung.server_close()
