"""Real model servers as child processes: transformers' own `serve`, and vLLM."""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

READY = "Application startup complete"
"""Log line of uvicorn, used by both servers, when the server is ready."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def server(words: Sequence[str], *, ready_s: float, environ: Mapping[str, str] | None = None) -> Generator[None]:
    """Runs the command *words* during the body. Fails with the end of its output if it does not start."""
    offline = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "VLLM_NO_USAGE_STATS": "1"}
    process = subprocess.Popen(
        list(words),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, **offline, **(environ or {})},
    )
    answer: queue.Queue[str | None] = queue.Queue()
    reader = Thread(target=_read, args=(process, answer), daemon=True)
    reader.start()
    try:
        _await_ready(answer, ready_s)
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)
        reader.join(10)


@contextmanager
def transformers_serve(folder: Path) -> Generator[str]:
    """The base URL of `transformers serve` on *folder*; the model's name is the folder's path."""
    port = free_port()
    command = Path(sys.executable).parent / "transformers"
    words = [str(command), "serve", str(folder), "--device", "cpu", "--dtype", "float32"]
    with server([*words, "--host", "127.0.0.1", "--port", str(port)], ready_s=110):
        yield f"http://127.0.0.1:{port}/v1"


def _read(process: subprocess.Popen[str], answer: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        answer.put(line)
    answer.put(None)


def _await_ready(answer: queue.Queue[str | None], seconds: float) -> None:
    lines: list[str] = []
    ends_at = time.monotonic() + seconds
    while READY not in "".join(lines[-1:]):
        try:
            line = answer.get(timeout=max(0.0, ends_at - time.monotonic()))
        except queue.Empty:
            line = None
        assert line is not None, "the server did not come up: " + "".join(lines[-20:])
        lines.append(line)
