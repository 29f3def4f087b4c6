"""A run on a full disk ends with one line and without a footer, and resumes to the same result."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from envs.core.trace_store import has_header, read_trace
from tests.agent.mira_process import run_mira
from tests.full_disk import PAGE, SmallDisk, small_disk

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PARTS = [pytest.param(part, marks=() if part in (4, 7) else pytest.mark.heavy) for part in range(1, 10)]
"""Tenths of a run's size at which the disk is full. Two of them, with one and two workers, are part of `make test`."""

ROOM = 64 << 20
ORDERS = 5
SUITE = ("--suite", "miniwob", "--tasks", "click-checkboxes,login-user", "--seeds", "0-1", "--planner", "reference")


class Counter:
    """A page that says how many orders came; each is a POST, which leads back to it. `/file` is a download."""

    def __init__(self) -> None:
        self.orders = 0
        self.file = b""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/file":
                    self._answer(outer.file, "attachment; filename=prices.csv")
                    return
                link = "<a href=/file>Prices</a>" if outer.file else ""
                page = f"<title>Shop</title><p>Orders: {outer.orders}</p>{link}"
                self._answer(f"{page}<form method=post action=/buy><button>Buy</button></form>".encode())

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"] or 0))
                outer.orders += 1
                self.send_response(303)
                self.send_header("Location", "/")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def _answer(self, body: bytes, disposition: str = "inline") -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Disposition", disposition)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Keeps the test output quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def shop() -> Iterator[Counter]:
    counter = Counter()
    yield counter
    counter.close()


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def mira(*words: object, limit: int | None = None) -> Ended:
    """Runs the command in its own process; *limit* is the maximum file size in bytes."""
    done = run_mira(*words, env={**os.environ, "COLUMNS": "200"}, max_file_bytes=limit)
    return Ended(done.returncode, done.stdout, done.stderr)


def order_script(folder: Path, *first: str) -> Path:
    """Buys until the page shows enough orders. It depends on the page alone, so that it can be resumed."""
    rules = [{"when": f"Orders: {ORDERS}", "answer": 'exit(message="five are ordered")'}]
    rules += [{"when": "Orders: ", "answer": 'do(action="Click", element="1")'}]
    (folder / "script.json").write_text(json.dumps(rules))
    return folder / "script.json"


def one_line_about(ended: Ended, place: Path) -> str:
    """The last line of stderr, which must be the only one about an error."""
    assert "Traceback" not in ended.err + ended.out
    lines = [line for line in ended.err.splitlines() if line.startswith("mira: ")]
    assert len(lines) == 1 and ended.err.splitlines()[-1] == lines[0], ended.err
    assert str(place) in lines[0] and re.search(r"\((\S+) (bytes|KB|MB) free\)", lines[0]), lines[0]
    return lines[0]


def run_of(folder: Path) -> Path | None:
    return next((path.parent for path in folder.glob("*/run.json")), None)


def finish(disk: SmallDisk, words: tuple[object, ...]) -> Path:
    """Frees space, runs the command of the error message, and returns the run's folder."""
    disk.resize(ROOM)
    run = run_of(disk.path)
    ended = mira("resume", run) if run else mira(*words)
    assert ended.code == 0, ended.err
    run = run or run_of(disk.path)
    assert run is not None
    return run


def footers(run: Path) -> list[str]:
    traces = [read_trace(path) for path in sorted((run / "episodes").glob("*.jsonl"))]
    return [f"{trace.header.episode_id} {trace.footer and trace.footer.outcome}" for trace in traces]


@pytest.fixture(scope="module")
def whole_suite() -> Iterator[tuple[int, list[str]]]:
    """(size of the run in bytes, its outcomes) on a large disk."""
    with small_disk(ROOM) as disk:
        assert mira("run", *SUITE, "--policy", "oracle", "--out", disk.path).code == 0
        run = run_of(disk.path)
        assert run is not None
        yield disk.used(), footers(run)


@pytest.mark.parametrize("part", PARTS)
def test_a_suite_on_a_full_disk_resumes_to_the_same_result(whole_suite: tuple[int, list[str]], part: int) -> None:
    """Nine disk sizes, from one tenth to nine tenths of the run's size."""
    size, outcomes = whole_suite
    words = ("run", *SUITE, "--policy", "oracle", "--workers", 1 + part % 2)
    with small_disk(max(2 * PAGE, size * part // 10)) as disk:
        ended = mira(*words, "--out", disk.path)
        assert ended.code == 1, ended.err
        line = one_line_about(ended, disk.path)
        run = run_of(disk.path)
        assert line.endswith(f"continue with: mira resume {run}" if run else "continue with: the same command")
        if run is not None:
            again = mira("resume", run)
            assert again.code == 1 and one_line_about(again, disk.path), "while it is full, nothing changes"
            done = [path for path in (run / "episodes").glob("*.jsonl") if has_header(path)]
            assert "broken" not in {read_trace(p).footer.outcome for p in done if read_trace(p).footer}  # type: ignore[union-attr]
        assert footers(finish(disk, (*words, "--out", disk.path))) == outcomes


def order_words(shop: Counter, folder: Path) -> tuple[object, ...]:
    roles = ("--planner", "none", "--judge", "none", "--max-steps", 20)
    policy = f"scripted:{order_script(folder)}"
    return "run", "Buy five", "--url", shop.url, "--policy", policy, *roles, "--out"


@pytest.fixture(scope="module")
def size_of_orders(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Bytes of a run that orders, on a large disk."""
    shop = Counter()
    with small_disk(ROOM) as disk:
        assert mira(*order_words(shop, tmp_path_factory.mktemp("script")), disk.path).code == 0
        shop.close()
        assert shop.orders == ORDERS
        return disk.used()


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=() if part == 4 else pytest.mark.heavy) for part in range(1, 10)]
)
def test_orders_are_sent_once_where_the_disk_fills(
    shop: Counter, tmp_path: Path, size_of_orders: int, part: int
) -> None:
    """The same with a server that counts orders; nine sizes, from the first steps to the last ones."""
    words, size = order_words(shop, tmp_path), size_of_orders
    with small_disk(size * (50 + 5 * part) // 100) as disk:
        ended = mira(*words, disk.path)
        assert ended.code == 1, ended.err
        one_line_about(ended, disk.path)
        finish(disk, (*words, disk.path))
    assert shop.orders == ORDERS, "nothing is sent twice, and nothing is left out"


def test_a_download_that_does_not_fit_ends_the_run_and_comes_after_it(shop: Counter, tmp_path: Path) -> None:
    shop.file = os.urandom(3_000_000)
    rules = [{"when": "Prices", "answer": 'do(action="Click", element="1")'}]
    script = tmp_path / "script.json"
    script.write_text(json.dumps(rules))
    with small_disk(1_500_000) as disk:
        words = ("run", "Fetch it", "--url", shop.url, "--policy", f"scripted:{script}", "--max-steps", 6)
        words = (*words, "--planner", "none", "--judge", "none", "--out", disk.path)
        ended = mira(*words)
        assert ended.code == 1, ended.err
        assert "/downloads/prices.csv: No space left on device" in one_line_about(ended, disk.path)
        run = run_of(disk.path)
        assert run is not None and not list((run / "downloads").iterdir())
        disk.resize(ROOM)
        mira("resume", run)  # it clicks until its steps are used up: how it ends says nothing here
        kept = [path.read_bytes() for path in (run / "downloads").glob("prices*")]
        assert kept and all(data == shop.file for data in kept)


@pytest.mark.parametrize(
    "limit",
    [3_000, *(pytest.param(more, marks=pytest.mark.heavy) for more in (9_000, 20_000, 50_000))],
)
def test_files_that_must_not_grow_end_a_run_the_same_way(tmp_path: Path, limit: int) -> None:
    """Needs no root: uses the process limit on file sizes, which child processes inherit."""
    out = tmp_path / "runs"
    ended = mira("run", *SUITE, "--policy", "oracle", "--out", out, limit=limit)
    assert ended.code in (1, 2), ended.err
    assert "Traceback" not in ended.err and ended.err.splitlines()[-1].startswith("mira: ")
    run = run_of(out)
    again = mira("resume", run) if run else mira("run", *SUITE, "--policy", "oracle", "--out", out)
    assert again.code == 0, again.err
    done = run or run_of(out)
    assert done is not None and all(line.endswith(" success") for line in footers(done))


def test_a_report_that_does_not_fit_is_one_line() -> None:
    with small_disk(ROOM) as disk:
        assert mira("run", *SUITE, "--policy", "oracle", "--out", disk.path).code == 0
        run = run_of(disk.path)
        assert run is not None
        (run / "report.html").unlink()
        disk.leave(8_000)
        assert str(run / "report.html") in one_line_about(mira("report", run), disk.path)
        disk.resize(ROOM)
        assert mira("report", run).code == 0
