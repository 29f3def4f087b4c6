"""Where LangGraph keeps its checkpoints: SQLite in the run's folder, or Postgres by URL."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiosqlite
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.episode.state import serializer
from envs.core.disk_errors import writing
from envs.core.errors import BadInput


@asynccontextmanager
async def open_checkpoints(path: Path, url: str | None) -> AsyncGenerator[BaseCheckpointSaver[Any]]:
    """One saver for all episodes of a run, with a pinned serializer. Raises BadInput for an unusable *url*, NotWritten
    where the disk does not take the file."""
    if url is not None:
        async with _postgres(url) as saver:
            yield saver
        return
    async with AsyncExitStack() as stack:
        with writing(path):
            await asyncio.to_thread(_set_damaged_aside, path)
            await asyncio.to_thread(path.touch, 0o600)
            connection = await stack.enter_async_context(aiosqlite.connect(path))
            await connection.execute("PRAGMA journal_mode=WAL")
            # The trace is the truth and is synced by itself; a checkpoint lost to a power cut is rebuilt from it.
            await connection.execute("PRAGMA synchronous=NORMAL")
            saver = AsyncSqliteSaver(connection, serde=serializer())
            await saver.setup()
        yield saver


def _set_damaged_aside(path: Path) -> None:
    """A file that is no sound database decides nothing, see :mod:`agent.run.resume`: it gets the suffix `.damaged`.

    One that cannot be opened just now (locked, no permission) is left for its own error.
    """
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(path, timeout=1.0)) as connection:
            sound = connection.execute("PRAGMA quick_check").fetchone() == ("ok",)
    except sqlite3.OperationalError:
        return
    except sqlite3.DatabaseError:
        sound = False
    if not sound:
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        path.replace(path.with_name(path.name + ".damaged"))


def check_url(url: str | None) -> None:
    """Raises BadInput for an address that is not Postgres's or holds a password; it is not opened."""
    if url is None:
        return
    if not url.startswith(("postgresql://", "postgres://")):
        raise BadInput(f"checkpoint_url must begin with postgresql://, got {url.partition(':')[0]!r}")
    parts = urlsplit(url)
    if parts.password or "password" in parse_qs(parts.query):
        raise BadInput("checkpoint_url holds a password, which the run's folder would keep: leave it to PGPASSWORD")


@asynccontextmanager
async def _postgres(url: str) -> AsyncGenerator[BaseCheckpointSaver[Any]]:
    check_url(url)
    try:
        from langgraph.checkpoint.postgres.aio import (  # pyright: ignore[reportMissingImports]
            AsyncPostgresSaver,
        )
        from psycopg import OperationalError  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise BadInput("checkpoint_url needs the extra: pip install 'mira-web[postgres]'") from None
    async with AsyncExitStack() as stack:
        try:
            saver = await stack.enter_async_context(AsyncPostgresSaver.from_conn_string(url, serde=serializer()))
            await saver.setup()
        except OperationalError as error:
            why = " ".join(str(error).split())[:300]
            raise BadInput(f"the database of checkpoint_url cannot be opened: {why}") from None
        yield saver
