"""Checkpoints in a real Postgres: the server of the machine's packages, a cluster of its own, on loopback."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.episode.policy import Turn
from agent.run.runner import resume, run_open
from envs.core.actions import Action, Click, Stop
from envs.core.errors import BadInput
from tests.agent.shop import Shop, config, scripted

pytestmark = pytest.mark.heavy


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def _tool(name: str) -> str:
    found = shutil.which(name) or next(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), None)
    return found or pytest.skip(f"{name} is not installed: apt-get install postgresql")


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The address of an empty database."""
    pytest.importorskip("psycopg", reason="needs the extra `postgres`")
    owner = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name  # it refuses to run as root
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        shutil.chown(folder, owner)
        data, log = f"{folder}/data", f"{folder}/log"
        listening = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder}"

        def call(*command: str) -> None:
            subprocess.run(command, user=owner, cwd=folder, check=True, capture_output=True)

        call(_tool("initdb"), "-D", data, "-U", "mira", "--auth=trust")
        call(_tool("pg_ctl"), "-D", data, "-l", log, "-o", listening, "-w", "start")
        try:
            yield f"postgresql://mira@127.0.0.1:{port}/postgres"
        finally:
            call(_tool("pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop")


def threads_in(database: str) -> set[str]:
    """The episodes that have a checkpoint."""
    import psycopg  # pyright: ignore[reportMissingImports]

    with psycopg.connect(database) as connection:
        rows: Any = connection.execute("SELECT DISTINCT thread_id FROM checkpoints").fetchall()
        return {str(row[0]) for row in rows}


@pytest.mark.browser
async def test_a_cut_off_episode_goes_on_from_the_database(shop: Shop, tmp_path: Path, database: str) -> None:
    def cut_off(turn: Turn) -> Action:
        if turn.step == 2:
            running.cancel()
        return Click(ref=1)

    settings = config(checkpoint_url=database)
    running = asyncio.ensure_future(
        run_open(settings, "Order", shop.url, tmp_path, run_id="r", policy=scripted(cut_off))
    )
    with pytest.raises(asyncio.CancelledError):
        await running
    (thread,) = threads_in(database)
    assert "r" in thread and not list((tmp_path / "r").glob("checkpoints.sqlite*"))
    result = await resume(tmp_path / "r", policy=scripted(lambda turn: Stop(answer=str(turn.step))))
    assert (result.complete, result.episodes[0].answer) == (True, "2")
    assert threads_in(database) == set()


async def test_a_database_that_cannot_be_reached_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="needs the extra `postgres`")
    url = f"postgresql://mira@127.0.0.1:{_free_port()}/postgres"
    with pytest.raises(BadInput, match=r"checkpoint_url cannot be opened: .*refused"):
        await run_open(
            config(checkpoint_url=url), "Order", "http://127.0.0.1:9/", tmp_path, run_id="r", policy=scripted(())
        )
    assert not (tmp_path / "r").exists()
