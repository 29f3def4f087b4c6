"""A run connects only to its pages and models, also if the environment holds vendors' telemetry variables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent.run.langsmith_tracing import langsmith_tracing
from envs.core.errors import BadInput
from tests.agent.shop import Shop

pytestmark = pytest.mark.browser

VENDORS = (
    *("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT", "LANGFUSE_HOST", "LANGFUSE_BASE_URL", "MLFLOW_TRACKING_URI"),
    *("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "PHOENIX_COLLECTOR_ENDPOINT"),
    *("DD_TRACE_AGENT_URL", "SENTRY_DSN", "WANDB_BASE_URL", "COMET_URL_OVERRIDE", "TRACELOOP_BASE_URL", "POSTHOG_HOST"),
)
"""Variables that name a vendor's server; the test sets each to the collector."""
SWITCHES = {
    **dict.fromkeys(("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2"), "true"),
    **dict.fromkeys(("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY", "LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"), "key"),
    **dict.fromkeys(("WANDB_API_KEY", "COMET_API_KEY", "NEPTUNE_API_TOKEN", "HF_TOKEN"), "key"),
    "OTEL_TRACES_EXPORTER": "otlp",
    "LANGSMITH_OTEL_ENABLED": "true",
}

RUN = """
import asyncio, json, sys
from pathlib import Path

connected = set()

def audit(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        connected.add(arguments[1][:2])

sys.addaudithook(audit)
from agent.run.runner import run_open
from envs.core.actions import Click, Stop, Type
from tests.agent.shop import config, scripted
from langchain_core.tracers.langchain import wait_for_all_tracers

url, out, langsmith = sys.argv[1:]
script = scripted((Type(ref=1, text="bob"), Click(ref=2), Stop(answer="ordered")))
run = asyncio.run(run_open(config(langsmith=langsmith == "on"), "Order for bob", url, Path(out), policy=script))
wait_for_all_tracers()
print(json.dumps({"outcome": run.episodes[0].ended_by, "connected": sorted(connected)}))
"""


class Collector:
    """A server on loopback in place of every vendor's; `bodies` are the requests that it received."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.bodies.append(b"")
                self._answer()

            def do_POST(self) -> None:
                outer.bodies.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
                self._answer()

            do_PATCH = do_POST  # noqa: N815 - the name that http.server looks for

            def _answer(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, format: str, *args: object) -> None:
                """Keeps the test output quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.port = self._server.server_port

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    served = Collector()
    yield served
    served.close()


def play(collector: Collector, shop: Shop, out: Path, langsmith: str) -> dict[str, object]:
    environment = {**os.environ, **SWITCHES, **dict.fromkeys(VENDORS, collector.url)}
    done = subprocess.run(
        [sys.executable, "-c", RUN, shop.url, str(out), langsmith],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_vendor_variables_upload_nothing(collector: Collector, shop: Shop, tmp_path: Path) -> None:
    played = play(collector, shop, tmp_path, "off")
    assert (played["outcome"], shop.orders) == ("stop", ["who=bob"])
    assert collector.bodies == []
    hosts = {host for host, _ in played["connected"]}  # pyright: ignore[reportGeneralTypeIssues]
    assert hosts <= {"127.0.0.1", "::1"}, "a connection left the machine"
    assert collector.port not in {port for _, port in played["connected"]}  # pyright: ignore[reportGeneralTypeIssues]


def test_the_flag_uploads_the_page_text(collector: Collector, shop: Shop, tmp_path: Path) -> None:
    """The negative control of the test above: the collector would have seen an upload."""
    assert play(collector, shop, tmp_path, "on")["outcome"] == "stop"
    assert sum(map(len, collector.bodies)) > 1_000


@pytest.mark.parametrize("name", ["LANGCHAIN_TRACING", "LANGCHAIN_HANDLER"])
def test_a_variable_of_the_removed_tracer_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "true")
    with pytest.raises(BadInput, match=f"unset {name}"), langsmith_tracing(False):
        pass


def test_langsmith_without_a_key_is_refused() -> None:
    with pytest.raises(BadInput, match="LANGSMITH_API_KEY"), langsmith_tracing(True):
        pytest.fail("nothing is run")
