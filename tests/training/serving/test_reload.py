"""Adapters put into a server while it runs.

The server of the fast tests is a *stand-in*: a real HTTP server that answers as vLLM 0.32 was seen to answer (statuses
and bodies copied from it) and computes nothing. :mod:`tests.training.serving.test_vllm` asks vLLM itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from envs.errors import BadInput
from models.base import ModelBusy, ModelError, ModelRejected, ModelTimeout, ModelUnavailable
from models.transport import RetryPolicy
from training.serving.reload import AdapterServer


class StandIn:
    """Speaks vLLM's `/v1/models` and `/v1/(un)load_lora_adapter`."""

    def __init__(self, *, takes_adapters: bool = True) -> None:
        self.adapters: dict[str, str] = {}
        self.refused: list[tuple[int, dict[str, Any]]] = []
        """Answers to give first, whatever is asked."""
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer({})

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _answer(self, body: dict[str, Any]) -> None:
                outer.asked.append(self.path)
                status, said = outer.refused.pop(0) if outer.refused else outer.answer(self.path, body, takes_adapters)
                data = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Keeps the test output quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def answer(self, path: str, body: dict[str, Any], takes_adapters: bool) -> tuple[int, Any]:
        if path == "/v1/models":
            base = {"id": "policy", "root": "/base", "parent": None, "max_model_len": 1024}
            loras = [{"id": name, "root": root, "parent": "policy"} for name, root in self.adapters.items()]
            return 200, {"object": "list", "data": [base, *loras]}
        if not takes_adapters:
            return 404, {"detail": "Not Found"}
        name = body["lora_name"]
        if path == "/v1/load_lora_adapter":
            if name in self.adapters and not body.get("load_inplace"):
                return 400, refusal(f"The lora adapter '{name}' has already been loaded.", "InvalidUserInput", 400)
            self.adapters[name] = body["lora_path"]
            return 200, f"Success: LoRA adapter '{name}' added successfully."
        if self.adapters.pop(name, None) is None:
            return 404, refusal(f"The lora adapter '{name}' cannot be found.", "NotFoundError", 404)
        return 200, f"Success: LoRA adapter '{name}' removed successfully."

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


def refusal(message: str, kind: str, code: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


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


async def test_what_would_serve_old_weights_is_refused(stand_in: StandIn, phases: list[Path]) -> None:
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
async def test_refusals_are_final_and_overload_is_asked_again(
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
