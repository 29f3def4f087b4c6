"""Policies on a server: a running one that loads adapters, or one started for each policy.

The server is a stand-in (:mod:`tests.training.serving.stand_in`); :mod:`tests.training.serving.test_vllm` plays a whole
phase on vLLM itself.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import psutil
import pytest
from pydantic import ValidationError
from safetensors.torch import load_file, save_file

from agent.run.discover_traces import discover_traces
from agent.run.run_store import RunFolder
from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from models.embedded import embedded_dir
from models.local.declarations import Thoughts, declare_thoughts
from models.prompting.thought_request import THOUGHT_REQUEST
from tests.models.local.adapters import save_adapter
from tests.timing import HANG_S, until
from tests.training.serving.servers import free_port
from tests.training.serving.stand_in import StandIn
from training.data.trajectories import select
from training.engine.checkpoints import load_tokenizer
from training.loop.data import read_runs
from training.loop.loop import Loop
from training.loop.rollouts import play_run, rollout_config
from training.loop.settings import LoopSettings, RolloutSettings
from training.serving.export import PLAIN_TEMPLATE
from training.serving.reload import AdapterServer
from training.serving.rollout_server import LOG, ServerSettings, served_name, serving

COMMAND = (sys.executable, "-m", "tests.training.serving.stand_in", "serve")
TASKS = tuple(TaskRef(suite="miniwob", name="click-test", seed=seed) for seed in (3, 4))


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_adapter(embedded_dir(), tmp_path_factory.mktemp("lora"), seed=1, size=0.001)


@pytest.fixture
def running() -> Iterator[StandIn]:
    server = StandIn(embedded_dir())
    yield server
    server.close()


def started(**changes: Any) -> ServerSettings:
    return ServerSettings.model_validate(
        {"url": f"http://127.0.0.1:{free_port()}", "command": COMMAND, "ready_s": 30, **changes}
    )


def is_gone(url: str) -> bool:
    """Nothing listens any more. A client would ask until its own deadline, and could not tell this from a hang."""
    try:
        socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=HANG_S).close()
    except ConnectionRefusedError:
        return True
    return False


async def listed(url: str) -> list[str]:
    async with AdapterServer(url, deadline_s=5) as server:
        return [model.id for model in await server.models()]


async def test_a_running_server_is_given_an_adapter_once(running: StandIn, adapter: Path, tmp_path: Path) -> None:
    settings, name = ServerSettings(url=running.url), served_name(adapter)
    for _ in range(2):
        async with serving(settings, adapter, tmp_path) as spec:
            assert spec == f"vllm:{running.url}/v1#{name}"
            assert running.adapters == {name: str(adapter)}
    assert running.asked.count("/v1/load_lora_adapter") == 1
    other = save_adapter(embedded_dir(), tmp_path / "other", seed=2)
    assert served_name(other) != name, "weights that differ have names that do"


async def test_a_policy_without_an_adapter_is_the_base_of_a_running_server(running: StandIn, tmp_path: Path) -> None:
    async with serving(ServerSettings(url=running.url), embedded_dir(), tmp_path) as spec:
        assert spec == f"vllm:{running.url}/v1#policy"
    assert not running.adapters


@pytest.mark.parametrize("lora", [False, True], ids=["whole", "adapter"])
async def test_a_server_is_started_and_ended(tmp_path: Path, adapter: Path, lora: bool) -> None:
    settings, policy = started(), adapter if lora else embedded_dir()
    answer: list[str] = []
    async with serving(settings, policy, tmp_path, answer.append) as spec:
        assert spec == f"vllm:{settings.url}/v1#{served_name(policy)}"
        assert served_name(policy) in await listed(settings.url)
    assert is_gone(settings.url)
    assert answer == [f"starting {' '.join(COMMAND)} at {settings.url}, its log is {str(tmp_path / LOG)!r}"]
    output = (tmp_path / LOG).read_text(encoding="utf-8")
    assert ("--max-lora-rank 8 --lora-modules" in output) == lora
    assert "--generation-config vllm" in output, "or the base's own top_p would be sampled with"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"options": ["--fail", "no room"]}, "ended with exit code 1: RuntimeError: no room"),
        ({"command": ["no-such-vllm", "serve"]}, "'no-such-vllm' cannot be started: No such file"),
        ({"command": ["no/such/vllm", "serve"]}, r"No such file or directory: pip install '\.\[vllm\]'"),
        ({"command": [sys.executable, "-c", "import time; time.sleep(60)"], "ready_s": 0.5}, "did not answer in time"),
    ],
    ids=["fails", "is not there", "vLLM is not there", "hangs"],
)
async def test_a_server_that_does_not_come_up_is_one_line(tmp_path: Path, changes: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message) as error:
        async with serving(started(**changes), embedded_dir(), tmp_path):
            pytest.fail("nothing is played")
    assert "\n" not in str(error.value)


async def test_child_processes_of_a_server_end_with_it(tmp_path: Path) -> None:
    noted = tmp_path / "child"
    async with serving(started(options=["--child", str(noted)]), embedded_dir(), tmp_path):
        child = psutil.Process(int(noted.read_text()))
        assert child.is_running()
    psutil.wait_procs([child], timeout=HANG_S)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


async def test_a_server_gets_the_plain_template_for_a_policy_without_a_chat_template(tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    shutil.copytree(embedded_dir(), policy)
    tokenizer = load_tokenizer(policy)
    tokenizer.chat_template = None
    tokenizer.save_pretrained(policy)
    (policy / "chat_template.jinja").unlink(missing_ok=True)
    async with serving(started(), policy, tmp_path):
        output = (tmp_path / LOG).read_text(encoding="utf-8")
    assert f"--chat-template {tmp_path / 'chat_template.jinja'}" in output
    assert (tmp_path / "chat_template.jinja").read_text(encoding="utf-8") == PLAIN_TEMPLATE


async def test_a_running_server_on_other_weights_is_refused(adapter: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(embedded_dir(), other)
    weights = load_file(other / "model.safetensors")
    name = min(weights)
    save_file(weights | {name: weights[name] + 1}, other / "model.safetensors", {"format": "pt"})
    server = StandIn(other)
    with pytest.raises(BadInput, match="whose weights are not those of"):
        async with serving(ServerSettings(url=server.url), adapter, tmp_path):
            pytest.fail("nothing is played")
    assert not server.adapters
    server.close()


async def test_no_server_is_started_where_one_answers(running: StandIn, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"a server answers at .* already"):
        async with serving(started(url=running.url), embedded_dir(), tmp_path):
            pytest.fail("nothing is played")


async def test_a_leftover_server_is_awaited(tmp_path: Path) -> None:
    settings = started()
    left = StandIn(embedded_dir(), name=served_name(embedded_dir()), port=int(settings.url.rpartition(":")[2]))
    ending = Timer(1.0, left.close)
    ending.start()
    async with serving(settings, embedded_dir(), tmp_path):
        assert not ending.is_alive()
        assert await listed(settings.url) == [served_name(embedded_dir())]


def test_a_server_does_not_outlive_a_killed_run(tmp_path: Path) -> None:
    settings = started()
    words = f"""
import asyncio, pathlib
from models.embedded import embedded_dir
from models.local.declarations import Thoughts, declare_thoughts
from models.prompting.thought_request import THOUGHT_REQUEST
from training.serving.rollout_server import ServerSettings, serving
async def main():
    async with serving(ServerSettings(**{settings.model_dump()!r}), embedded_dir(), pathlib.Path({str(tmp_path)!r})):
        print("ready", flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""
    run = subprocess.Popen([sys.executable, "-c", words], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    assert run.stdout.readline().startswith("starting ")
    assert run.stdout.readline() == "ready\n"
    run.send_signal(signal.SIGKILL)
    run.wait(HANG_S)
    run.stdout.close()
    assert until(lambda: is_gone(settings.url)), "it still listens"


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "http://host", "ftp://host:1"])
def test_an_address_without_a_port_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="http://HOST:PORT"):
        ServerSettings(url=url)


def test_a_full_checkpoint_cannot_be_loaded_into_a_running_server(tmp_path: Path) -> None:
    rollouts = {"server": {"url": "http://127.0.0.1:8000"}}
    with pytest.raises(BadInput, match=r"set compute\.shared_base"):
        Loop.open(tmp_path / "loop", LoopSettings.model_validate({"rollouts": rollouts}))
    Loop.open(tmp_path / "loop", LoopSettings.model_validate({"rollouts": rollouts, "compute": {"shared_base": True}}))


def playing(home: Path, policy: Path, server: ServerSettings) -> Coroutine[Any, Any, Path]:
    config = rollout_config(policy, RolloutSettings(workers=1), 1)
    mark = home / "rollouts.json"
    return play_run(mark, config, policy, TASKS, shared=None, listeners=(), log=print, server=server)


def outcomes(run: Path) -> list[str]:
    folder = RunFolder(run)
    return [one.outcome for one in folder.finished(folder.read_manifest().jobs()).values()]


@pytest.mark.browser
async def test_a_server_that_dies_breaks_no_episode_and_another_plays_on(tmp_path: Path) -> None:
    dying = started(options=["--answers", "1"])
    with pytest.raises(BadInput, match="ended with exit code 1 while it was needed: RuntimeError: out of memory"):
        await playing(tmp_path, embedded_dir(), dying)
    run = tmp_path / "rollouts" / "run"
    assert outcomes(run) == ["success"], "one answer, one episode"
    elsewhere = started()
    assert await playing(tmp_path, embedded_dir(), elsewhere) == run
    assert outcomes(run) == ["success"] * 2
    assert RunFolder(run).read_manifest().config.policy.startswith(f"vllm:{elsewhere.url}")


@pytest.mark.browser
@pytest.mark.parametrize("thoughts", ["asked", None])
async def test_a_policy_on_a_server_is_asked_for_the_thoughts_that_it_declares(
    tmp_path: Path, thoughts: Thoughts | None
) -> None:
    """Its name on the server declares nothing: a policy that learned to think was asked for the action only."""
    policy = tmp_path / "policy"
    shutil.copytree(embedded_dir(), policy)
    declare_thoughts(policy, thoughts)
    running = StandIn(policy)
    run = await playing(tmp_path, policy, ServerSettings(url=running.url))
    running.close()
    prompts = [
        "\n".join(text for _, text in decision.messages)
        for episode in read_runs([run], texts=True).kept
        for decision in episode.decisions
    ]
    assert prompts and all((THOUGHT_REQUEST in prompt) == (thoughts == "asked") for prompt in prompts)


@pytest.mark.browser
async def test_episodes_are_played_on_it_and_a_finished_run_asks_nobody(adapter: Path, tmp_path: Path) -> None:
    running = StandIn(embedded_dir())
    run = await playing(tmp_path, adapter, ServerSettings(url=running.url))
    running.close()
    assert await playing(tmp_path, adapter, ServerSettings(url=running.url)) == run, "it is gone, and not missed"
    assert RunFolder(run).read_manifest().config.policy == f"vllm:{running.url}/v1#{served_name(adapter)}"
    kept = select((one.read(), one.blobs) for one in discover_traces([run])).kept
    tokens = [decision.tokens for episode in kept for decision in episode.decisions]
    assert len(kept) == 2 and all(one is not None and one.logprobs for one in tokens)
