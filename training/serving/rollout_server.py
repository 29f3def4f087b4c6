"""A vLLM that plays the policy of a phase: one that runs already and takes its adapter, or one started for it.

A policy's name on the server is made of the hash of its weights. So nothing that the server remembers of other weights
is ever the answer, several training runs may share a server, and a trace's header says which weights played.
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
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from envs.core.errors import BadInput
from models.base import ModelError
from models.local.safe_loading import ADAPTER_CONFIG
from models.optional import install_command
from models.provider_specs.vllm import VLLM_KEY, VllmSpec
from models.transport import RetryPolicy
from training.engine.checkpoints import base_of, is_adapter, load_tokenizer, weights_digest
from training.engine.launcher import bound_to_us, release_gpu
from training.serving.adapters import server_rank
from training.serving.export import PLAIN_TEMPLATE
from training.serving.reload import AdapterServer
from training.serving.settings import ServerSettings

LOG: Final = "server.log"
POLL_S: Final = 0.5
ASK_S: Final = 5.0
"""For one look at whether the server answers."""
_ERROR: Final = re.compile(r"\b\w+(Error|Exception): \S.*")
END_S: Final = 30.0
"""A server that was told to end is killed after it."""


def served_name(policy: Path) -> str:
    """What servers call the checkpoint in *policy*: equal names, equal weights."""
    return f"mira-{weights_digest(policy)}"


@asynccontextmanager
async def serving(
    settings: ServerSettings, policy: Path, folder: Path, log: Callable[[str], None] = print
) -> AsyncGenerator[str]:
    """The model spec of the checkpoint in *policy* on the server, which has it until the body ends.

    *tell* is told where it takes long. What a started server says is written to `server.log` in *folder*. An adapter
    that a running server was given stays there. Raises BadInput where the server cannot be started, ModelError where it
    refuses the adapter or cannot be reached.
    """
    if settings.command:
        log(f"starting {' '.join(settings.command)} at {settings.url}, its log is {str(folder / LOG)!r}")
        name = served_name(policy)
        async with _started(settings, policy, name, folder / LOG):
            yield _spec(settings, name)
    else:
        async with AdapterServer(settings.url, api_key=os.environ.get(VLLM_KEY)) as server:
            yield _spec(settings, await _given(server, policy))


def _spec(settings: ServerSettings, name: str) -> str:
    return str(VllmSpec(f"{settings.url}/v1", name))


async def _given(server: AdapterServer, policy: Path) -> str:
    """The name by which a running server has *policy*: it is given an adapter that it does not know yet."""
    known = {model.id: model for model in await server.models()}
    base = next((model for model in known.values() if model.parent is None), None)
    if base is None:
        raise BadInput(f"{server.url} serves no base model")
    if base.root is not None and await asyncio.to_thread(_is_another, Path(base.root), base_of(policy)):
        raise BadInput(f"{server.url} serves {base.root!r}, whose weights are not those of {str(base_of(policy))!r}")
    if not is_adapter(policy):
        return base.id
    name = served_name(policy)
    if name not in known:
        await server.put(name, policy)
    return name


def _is_another(served: Path, base: Path) -> bool:
    """Whether what the server has was read from a folder of this machine that holds other weights than *base*."""
    return served.is_dir() and served.resolve() != base and weights_digest(served) != weights_digest(base)


@asynccontextmanager
async def _started(settings: ServerSettings, policy: Path, name: str, log: Path) -> AsyncGenerator[None]:
    once = RetryPolicy(max_attempts=1)
    async with AdapterServer(settings.url, api_key=os.environ.get(VLLM_KEY), deadline_s=ASK_S, policy=once) as server:
        await _left(server, name)
        log.parent.mkdir(parents=True, exist_ok=True)
        process = await _process([*settings.command, *_what_and_where(settings, policy, name, log.parent)], log)
        try:
            await _ready(process, server, settings, name, log)
            async with _watched(process, log):
                yield
        finally:
            await _end(process)


@asynccontextmanager
async def _watched(process: asyncio.subprocess.Process, log: Path) -> AsyncGenerator[None]:
    """Breaks the body off, and raises BadInput, when the server ends: what is played then is not the policy's doing."""
    body = asyncio.current_task()
    assert body is not None

    async def cut() -> None:
        await process.wait()
        body.cancel()

    watch = asyncio.create_task(cut())
    try:
        yield
    except asyncio.CancelledError:
        if process.returncode is None:
            raise
        body.uncancel()
        raise _failed(f"ended with exit code {process.returncode} while it was needed", log) from None
    finally:
        watch.cancel()


async def _process(words: Sequence[str], log: Path) -> asyncio.subprocess.Process:
    release_gpu()
    with log.open("wb") as said:
        try:
            return await asyncio.create_subprocess_exec(
                *bound_to_us(words), stdin=asyncio.subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )
        except OSError as error:
            how = f": {install_command('vllm')}" if Path(words[0]).name == "vllm" else ""
            raise BadInput(f"rollouts.server.command {words[0]!r} cannot be started: {error.strerror}{how}") from error


def _what_and_where(settings: ServerSettings, policy: Path, name: str, folder: Path) -> list[str]:
    url = urlsplit(settings.url)
    words = [str(policy.absolute()), "--served-model-name", name]
    if is_adapter(policy):
        rank = int(json.loads((policy / ADAPTER_CONFIG).read_text(encoding="utf-8"))["r"])
        words = [str(base_of(policy)), "--served-model-name", f"{name}-base", "--enable-lora"]
        words += ["--max-lora-rank", str(server_rank(rank)), "--lora-modules", f"{name}={policy.absolute()}"]
    if load_tokenizer(policy).chat_template is None:  # as it is asked here, and as `mira export` has it
        template = (folder / "chat_template.jinja").absolute()
        template.write_text(PLAIN_TEMPLATE, encoding="utf-8")
        words += ["--chat-template", str(template)]
    # a generation config beside the weights would add its top_p to what is sampled
    words += ["--generation-config", "vllm", "--host", str(url.hostname), "--port", str(url.port)]
    return [*words, *settings.options]


async def _ready(
    process: asyncio.subprocess.Process, server: AdapterServer, settings: ServerSettings, name: str, log: Path
) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(settings.ready_s):
            while process.returncode is None:
                if name in (await _names(server) or ()):
                    return
                await asyncio.sleep(POLL_S)
    raise _failed(
        "did not answer in time" if process.returncode is None else f"ended with exit code {process.returncode}", log
    )


def _failed(how: str, log: Path) -> BadInput:
    return BadInput(f"the server of rollouts.server.command {how}: {_cause(log)} ({str(log)!r})")


def _cause(log: Path) -> str:
    """The first error that it told of, which the later ones follow from; else its last line."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [found[0] for line in lines if (found := _ERROR.search(line))]
    return [*errors[:1], *lines[-1:], "it said nothing"][0][:400]


async def _left(server: AdapterServer, name: str) -> None:
    """Waits for the end of what a killed run has started, which serves *name*. Raises BadInput where it stays, and for
    any other server."""
    ends_at = time.monotonic() + END_S
    while (names := await _names(server)) is not None:
        if name not in names or time.monotonic() > ends_at:
            raise BadInput(
                f"a server answers at {server.url} already: end it, or play on it, without rollouts.server.command"
            )
        await asyncio.sleep(POLL_S)


async def _names(server: AdapterServer) -> frozenset[str] | None:
    """What it serves; None where nothing answers as a model server does."""
    try:
        return frozenset(model.id for model in await server.models())
    except ModelError:
        return None


async def _end(process: asyncio.subprocess.Process) -> None:
    """Of the server and of whatever it has started."""
    with suppress(ProcessLookupError):
        if process.returncode is None:
            process.terminate()
    with suppress(TimeoutError):
        async with asyncio.timeout(END_S):
            await process.wait()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # the session is its own
    await process.wait()
