"""Serves the policy of a phase on vLLM: loads its adapter into a running server, or starts a server for it.

A policy's name on the server contains the hash of its weights. A server therefore never answers from the cache of other
weights, several training runs can share a server, and a trace's header identifies the weights.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from errno import ENOENT
from pathlib import Path
from shutil import which
from typing import Final
from urllib.parse import urlsplit

from envs.core.errors import BadInput
from models.base import ModelError
from models.local.safe_loading import ADAPTER_CONFIG
from models.optional import install_command
from models.providers.vllm import VLLM_KEY, VllmSpec
from models.transport import RetryPolicy
from training.engine.checkpoints import base_of, is_adapter, load_tokenizer, weights_digest
from training.engine.launcher import bound_to_us, release_gpu
from training.serving.adapters import server_rank
from training.serving.export import served_template
from training.serving.reload import AdapterServer
from training.serving.settings import ServerSettings

LOG: Final = "server.log"
POLL_S: Final = 0.5
PROBE_TIMEOUT_S: Final = 5.0
"""Timeout of one readiness check in seconds."""
_ERROR: Final = re.compile(r"\b\w+(Error|Exception): \S.*")
STOP_TIMEOUT_S: Final = 30.0
"""Seconds between SIGTERM and SIGKILL."""


def served_name(policy: Path) -> str:
    """Returns the server name of the checkpoint in *policy*. Equal names mean equal weights."""
    return f"mira-{weights_digest(policy)}"


def check_command(settings: ServerSettings) -> None:
    """Raises BadInput where the program of the server's command is not on this machine."""
    if settings.command and which(settings.command[0]) is None:
        raise _cannot_start(settings.command[0], os.strerror(ENOENT))


@asynccontextmanager
async def serving(
    settings: ServerSettings, policy: Path, folder: Path, log: Callable[[str], None] = print
) -> AsyncGenerator[str]:
    """Serves the checkpoint in *policy* during the body and yields its model spec.

    *log* receives a line before a server is started. The output of a started server is written to `server.log` in
    *folder*. An adapter stays loaded on a running server. Raises BadInput if the server cannot be started, ModelError
    if it rejects the adapter or cannot be reached.
    """
    if settings.command:
        log(f"starting {' '.join(settings.command)} at {settings.url}, its log is {str(folder / LOG)!r}")
        name = served_name(policy)
        async with _started(settings, policy, name, folder / LOG):
            yield _spec(settings, name)
    else:
        async with AdapterServer(settings.url, api_key=os.environ.get(VLLM_KEY)) as server:
            yield _spec(settings, await _name_on_running_server(server, policy))


def _spec(settings: ServerSettings, name: str) -> str:
    return str(VllmSpec(f"{settings.url}/v1", name))


async def _name_on_running_server(server: AdapterServer, policy: Path) -> str:
    """Returns the name of *policy* on a running server, after loading its adapter if necessary."""
    known = {model.id: model for model in await server.models()}
    base = next((model for model in known.values() if model.parent is None), None)
    if base is None:
        raise BadInput(f"{server.url} serves no base model")
    if base.root is not None and await asyncio.to_thread(_has_other_weights, Path(base.root), base_of(policy)):
        raise BadInput(f"{server.url} serves {base.root!r}, whose weights are not those of {str(base_of(policy))!r}")
    if not is_adapter(policy):
        return base.id
    name = served_name(policy)
    if name not in known:
        await server.put(name, policy)
    return name


def _has_other_weights(served: Path, base: Path) -> bool:
    """Whether the server's weights come from a local folder with other weights than *base*."""
    return served.is_dir() and served.resolve() != base and weights_digest(served) != weights_digest(base)


@asynccontextmanager
async def _started(settings: ServerSettings, policy: Path, name: str, log: Path) -> AsyncGenerator[None]:
    single_attempt = RetryPolicy(max_attempts=1)
    async with AdapterServer(
        settings.url, api_key=os.environ.get(VLLM_KEY), deadline_s=PROBE_TIMEOUT_S, policy=single_attempt
    ) as server:
        await _await_leftover_server(server, name)
        log.parent.mkdir(parents=True, exist_ok=True)
        process = await _start_process([*settings.command, *_server_arguments(settings, policy, name, log.parent)], log)
        try:
            await _wait_until_ready(process, server, settings, name, log)
            async with _cancel_if_server_ends(process, log):
                yield
        finally:
            await _stop(process)


@asynccontextmanager
async def _cancel_if_server_ends(process: asyncio.subprocess.Process, log: Path) -> AsyncGenerator[None]:
    """Cancels the body and raises BadInput if the server ends, since failures would then not be the policy's."""
    body = asyncio.current_task()
    assert body is not None

    async def cancel_body() -> None:
        await process.wait()
        body.cancel()

    watch = asyncio.create_task(cancel_body())
    try:
        yield
    except asyncio.CancelledError:
        if process.returncode is None:
            raise
        body.uncancel()
        raise _server_error(f"ended with exit code {process.returncode} while it was needed", log) from None
    finally:
        watch.cancel()


async def _start_process(words: Sequence[str], log: Path) -> asyncio.subprocess.Process:
    release_gpu()
    with log.open("wb") as output:
        try:
            return await asyncio.create_subprocess_exec(
                *bound_to_us(words),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            raise _cannot_start(words[0], str(error.strerror)) from error


def _cannot_start(program: str, reason: str) -> BadInput:
    hint = f": {install_command('vllm')}" if Path(program).name == "vllm" else ""
    return BadInput(f"rollouts.server.command {program!r} cannot be started: {reason}{hint}")


def _server_arguments(settings: ServerSettings, policy: Path, name: str, folder: Path) -> list[str]:
    url = urlsplit(settings.url)
    words = [str(policy.absolute()), "--served-model-name", name]
    if is_adapter(policy):
        rank = int(json.loads((policy / ADAPTER_CONFIG).read_text(encoding="utf-8"))["r"])
        words = [str(base_of(policy)), "--served-model-name", f"{name}-base", "--enable-lora"]
        words += ["--max-lora-rank", str(server_rank(rank)), "--lora-modules", f"{name}={policy.absolute()}"]
    tokenizer = load_tokenizer(policy)
    served = served_template(tokenizer)
    if served != tokenizer.chat_template:  # the same format as in training and `mira export`
        template = (folder / "chat_template.jinja").absolute()
        template.write_text(served, encoding="utf-8")
        words += ["--chat-template", str(template)]
    # a generation config beside the weights would change the sampling, e.g. by its top_p
    words += ["--generation-config", "vllm", "--host", str(url.hostname), "--port", str(url.port)]
    return [*words, *settings.options]


async def _wait_until_ready(
    process: asyncio.subprocess.Process, server: AdapterServer, settings: ServerSettings, name: str, log: Path
) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(settings.ready_s):
            while process.returncode is None:
                if name in (await _names(server) or ()):
                    return
                await asyncio.sleep(POLL_S)
    raise _server_error(
        "did not answer in time" if process.returncode is None else f"ended with exit code {process.returncode}", log
    )


def _server_error(reason: str, log: Path) -> BadInput:
    return BadInput(f"the server of rollouts.server.command {reason}: {_cause(log)} ({str(log)!r})")


def _cause(log: Path) -> str:
    """Returns the first error in the log, which usually causes the later ones, otherwise the last line."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [match[0] for line in lines if (match := _ERROR.search(line))]
    return [*errors[:1], *lines[-1:], "it printed nothing"][0][:400]


async def _await_leftover_server(server: AdapterServer, name: str) -> None:
    """Waits until a server that a killed run left behind, serving *name*, has ended. Raises BadInput if it does not
    end, and for any other server."""
    ends_at = time.monotonic() + STOP_TIMEOUT_S
    while (names := await _names(server)) is not None:
        if name not in names or time.monotonic() > ends_at:
            raise BadInput(
                f"a server answers at {server.url} already: end it, or play on it, without rollouts.server.command"
            )
        await asyncio.sleep(POLL_S)


async def _names(server: AdapterServer) -> frozenset[str] | None:
    """Returns the names that the server lists; None if no model server answers."""
    try:
        return frozenset(model.id for model in await server.models())
    except ModelError:
        return None


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Stops the server and its child processes."""
    with suppress(ProcessLookupError):
        if process.returncode is None:
            process.terminate()
    with suppress(TimeoutError):
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await process.wait()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # the server has its own session
    await process.wait()
