"""Copies of a real site: exact resets, isolation, and detection of crashed, hanging and unwritable copies."""

from __future__ import annotations

import asyncio
import http.client
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from envs.core.errors import ResetFailed
from envs.suites.sites import farm
from envs.suites.sites.copies import SiteCopy, database_digest, memory_bytes, start_copy
from envs.suites.sites.fleet import Fleet
from envs.suites.sites.golden import golden_folder, missing_packages, sites_home
from tests.timing import HANG_S, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing_packages("code")), reason="the extra `sites` is not installed"),
]
SITE = "code"


@pytest.fixture
async def copy(tmp_path: Path) -> AsyncIterator[SiteCopy]:
    started = await start_copy(SITE, tmp_path / "copy")
    yield started
    await started.close()


def get(copy: SiteCopy, path: str) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{copy.info.port}{path}", timeout=HANG_S) as answer:
        return answer.status


def write(copy: SiteCopy) -> None:
    """Changes rows, deletes rows and adds a file."""
    with closing(sqlite3.connect(copy.database, timeout=HANG_S)) as database:
        database.execute("UPDATE ticket SET summary = summary || '!'")
        database.execute("DELETE FROM ticket WHERE id % 2")
        database.commit()
    files = copy.folder / "files"
    if files.exists():
        (files / "stray").write_text("x")


async def test_the_start_of_a_site_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="mira.waiting"):
        copy = await start_copy(SITE, tmp_path / "copy")
    await copy.close()
    assert f"starting the site {SITE}" in caplog.messages


async def test_a_reset_leaves_nothing_behind(copy: SiteCopy) -> None:
    golden = database_digest(copy.golden_database)
    for _ in range(20):
        write(copy)
        await asyncio.to_thread(get, copy, "/ticket/2")
        assert database_digest(copy.database) != golden
        await copy.reset()
        assert database_digest(copy.database) == golden
        assert copy.requests() == ()
        assert not (copy.folder / "files" / "stray").exists()
    assert await asyncio.to_thread(get, copy, "/ticket/1") == 200, "the server sees rows that came back below it"


async def test_requests_are_logged_as_they_arrive(copy: SiteCopy) -> None:
    await asyncio.to_thread(get, copy, "/ticket/2?format=csv")
    (request,) = copy.requests()
    assert (request.method, request.path, request.argument("format"), request.status) == (
        "GET",
        "/ticket/2",
        "csv",
        200,
    )


def status_for_host(copy: SiteCopy, host: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", copy.info.port, timeout=HANG_S)
    try:
        connection.request("GET", "/ticket/2", headers={"Host": host})
        return connection.getresponse().status
    finally:
        connection.close()


async def test_a_request_for_another_host_is_refused(copy: SiteCopy) -> None:
    """A page whose name resolves to loopback (DNS rebinding) would send such a Host header."""
    port = copy.info.port
    refused = [
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        f"127.0.0.1:{port}.evil",
        "",
    ]
    for host in refused:
        assert await asyncio.to_thread(status_for_host, copy, host) in (400, 421), host
    assert copy.requests() == ()
    for host in (f"127.0.0.1:{port}", f"LOCALHOST:{port}", "code.test"):
        assert await asyncio.to_thread(status_for_host, copy, host) == 200, host


async def test_copies_do_not_see_each_other(copy: SiteCopy, tmp_path: Path) -> None:
    other = await start_copy(SITE, tmp_path / "other")
    try:
        write(other)
        await asyncio.to_thread(get, other, "/wiki")
        assert database_digest(copy.database) == database_digest(copy.golden_database)
        assert copy.requests() == ()
    finally:
        await other.close()


async def test_a_killed_server_is_reported(copy: SiteCopy) -> None:
    assert await copy.problem() == ""
    os.kill(copy.info.pid, signal.SIGKILL)
    assert copy.process is not None
    await copy.process.wait()
    assert "ended" in await copy.problem()
    with pytest.raises(ResetFailed):
        await copy.reset()


async def test_a_hanging_server_is_reported(copy: SiteCopy) -> None:
    os.kill(copy.info.pid, signal.SIGSTOP)
    assert "does not answer" in await copy.problem()


async def test_a_server_that_cannot_write_is_reported(copy: SiteCopy) -> None:
    """The limit makes every write fail as a full disk does."""
    resource.prlimit(copy.info.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    await asyncio.to_thread(get, copy, "/wiki")
    assert "too large" in await copy.problem()
    with pytest.raises(ResetFailed, match="could not be reset"):
        await copy.reset()


async def test_a_fleet_replaces_a_broken_copy(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    try:
        await fleet.ready([SITE])
        first = fleet[SITE].info.pid
        await fleet.ready([SITE])
        assert fleet[SITE].info.pid == first, "a copy that is well is used again"
        os.kill(first, signal.SIGSTOP)
        assert await fleet.problem([SITE]) != ""
        await fleet.ready([SITE])
        assert fleet[SITE].info.pid != first
        assert await fleet.problem([SITE]) == ""
    finally:
        await fleet.close()


OWNER = """
import asyncio, pathlib, sys
from envs.suites.sites.copies import start_copy

async def main():
    copy = await start_copy("code", pathlib.Path(sys.argv[1]))
    print(copy.info.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_a_copy_ends_with_a_killed_owner(tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path / "copy")], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    assert memory_bytes(pid) > 0
    owner.kill()
    owner.wait()
    assert until(lambda: memory_bytes(pid) == 0)


async def test_detached_copies_are_borrowed_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    golden = golden_folder(SITE).parent
    assert golden.exists()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sites_home().mkdir(parents=True)
    (sites_home() / "golden").symlink_to(golden)
    rows = await farm.up([SITE], 1, lambda line: None)
    assert [row.state for row in rows] == ["free"]
    first, second = Fleet(tmp_path / "one"), Fleet(tmp_path / "two")
    try:
        await first.ready([SITE])
        assert first[SITE].info.pid == rows[0].pid, "a free copy is borrowed, not started again"
        assert [row.state for row in await farm.status()] == ["held"]
        await second.ready([SITE])
        assert second[SITE].info.pid != rows[0].pid, "a copy has one holder"
        await first.close()
        assert [row.state for row in await farm.status()] == ["free"]
        assert [row.pid for row in await farm.up([SITE], 1, lambda line: None)] == [rows[0].pid]
    finally:
        await first.close()
        await second.close()
        assert await farm.down() == 1
    assert memory_bytes(rows[0].pid) == 0
    assert await farm.status() == ()
