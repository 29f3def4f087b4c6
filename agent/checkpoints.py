"""Where LangGraph keeps its checkpoints: SQLite in the run's folder, or Postgres by URL."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.state import serializer
from envs.errors import BadInput


@asynccontextmanager
async def open_checkpoints(path: Path, url: str | None) -> AsyncGenerator[BaseCheckpointSaver[Any]]:
    """One saver for all episodes of a run, with a pinned serializer. Raises BadInput for an unusable *url*."""
    if url is not None:
        async with _postgres(url) as saver:
            yield saver
        return
    async with aiosqlite.connect(path) as connection:
        await connection.execute("PRAGMA journal_mode=WAL")
        # The trace is the truth and is synced by itself; a checkpoint lost to a power cut is rebuilt from it.
        await connection.execute("PRAGMA synchronous=NORMAL")
        saver = AsyncSqliteSaver(connection, serde=serializer())
        await saver.setup()
        yield saver


@asynccontextmanager
async def _postgres(url: str) -> AsyncGenerator[BaseCheckpointSaver[Any]]:
    if not url.startswith(("postgresql://", "postgres://")):
        raise BadInput(f"checkpoint_url must begin with postgresql://, got {url.partition(':')[0]!r}")
    try:
        from langgraph.checkpoint.postgres.aio import (  # pyright: ignore[reportMissingImports]
            AsyncPostgresSaver,
        )
    except ImportError:
        raise BadInput("checkpoint_url needs the extra: pip install 'mira-web[postgres]'") from None
    async with AsyncPostgresSaver.from_conn_string(url, serde=serializer()) as saver:
        await saver.setup()
        yield saver
