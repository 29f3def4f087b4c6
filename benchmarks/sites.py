"""The sites in numbers: start, memory, reset without drift, and a full episode reset in Chromium.

    python -m benchmarks.sites [--resets 200] [--json]

Starts copies of its own and ends them. Golden states that are missing are built first and timed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from envs.browser.chromium import Chromium
from envs.core.tasks import TaskRef
from envs.suites.sites.catalog import templates
from envs.suites.sites.copies import SiteCopy, database_digest, start_copy
from envs.suites.sites.golden import build_golden, golden_folder
from envs.suites.sites.kinds import KINDS, SiteName
from envs.suites.sites.suite import SitesSuite


@dataclass(frozen=True)
class SiteFigures:
    site: SiteName
    build_s: float | None
    """None where the golden state was there already."""
    start_s: float
    megabytes_started: float
    megabytes_used: float
    """After the resets and a page after each."""
    database_megabytes: float
    reset_ms: float
    """Median over the resets, seen from outside."""
    drifted: int
    """Resets after which the database was not equal to the golden one."""
    episode_reset_s: float | None = None
    """Median: every site of the task put back, a fresh logged-in context, the first page settled."""
    episode_reset_max_s: float | None = None


async def measure(name: SiteName, resets: int, folder: Path) -> SiteFigures:
    there = golden_folder(name).exists()
    began = time.perf_counter()
    await build_golden(name)
    built = time.perf_counter() - began
    began = time.perf_counter()
    copy = await start_copy(name, folder / name)
    started = time.perf_counter() - began
    try:
        memory = copy.memory_bytes() / 1e6
        seconds, drifted = await _resets(copy, resets)
        size = copy.database.stat().st_size / 1e6 if KINDS[name].has_database else 0.0
        return SiteFigures(
            site=name,
            build_s=None if there else round(built, 1),
            start_s=round(started, 2),
            megabytes_started=round(memory, 1),
            megabytes_used=round(copy.memory_bytes() / 1e6, 1),
            database_megabytes=round(size, 1),
            reset_ms=round(1000 * statistics.median(seconds), 1),
            drifted=drifted,
        )
    finally:
        await copy.close()


async def _resets(copy: SiteCopy, count: int) -> tuple[list[float], int]:
    """Spoils the database, opens a page, resets, compares: *count* times."""
    has = KINDS[copy.info.name].has_database  # type: ignore[index]
    golden = await asyncio.to_thread(database_digest, copy.golden_database) if has else ""
    seconds: list[float] = []
    drifted = 0
    for _ in range(count):
        if has:
            await asyncio.to_thread(_spoil, copy.database)
        await _get(copy, "/")
        seconds.append(await copy.reset())
        if has and await asyncio.to_thread(database_digest, copy.database) != golden:
            drifted += 1
    return seconds, drifted


def _spoil(path: Path) -> None:
    """Takes a row from every table and doubles a text in every one that has any."""
    with closing(sqlite3.connect(path, timeout=5)) as database:
        tables = database.execute(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        for (table,) in tables:
            try:
                database.execute(f'DELETE FROM "{table}" WHERE rowid = (SELECT max(rowid) FROM "{table}")')
            except sqlite3.Error:
                continue  # a table without row numbers
        database.commit()


async def _get(copy: SiteCopy, path: str) -> None:
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection(*copy.address)
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {KINDS[copy.info.name].host}\r\n\r\n".encode())  # type: ignore[index]
        await reader.read()
        writer.close()


async def episode_resets(count: int) -> dict[SiteName, list[float]]:
    """Seconds of a whole episode reset, the first one (which starts the server) left out."""
    found: dict[SiteName, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with Chromium.launch() as chromium, SitesSuite(chromium, Path(folder)) as suite:
            environment = await suite.environment()
            for name in KINDS:
                chosen = next((one for one in templates().values() if one.sites == (name,)), None)
                if chosen is None:
                    continue
                await environment.reset(TaskRef(suite="sites", name=chosen.name))
                found[name] = []
                for seed in range(count):
                    began = time.perf_counter()
                    await environment.reset(TaskRef(suite="sites", name=chosen.name, seed=seed))
                    found[name].append(time.perf_counter() - began)
            await environment.close()
    return found


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resets", type=int, default=200)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mira-bench-") as folder:
        rows = [await measure(name, given.resets, Path(folder)) for name in KINDS]
    episodes = await episode_resets(given.episodes)
    rows = [
        replace(
            row,
            episode_reset_s=round(statistics.median(episodes[row.site]), 2) if row.site in episodes else None,
            episode_reset_max_s=round(max(episodes[row.site]), 2) if row.site in episodes else None,
        )
        for row in rows
    ]
    if given.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    for row in rows:
        print("  ".join(f"{key}={value}" for key, value in asdict(row).items()))


if __name__ == "__main__":
    asyncio.run(main())
