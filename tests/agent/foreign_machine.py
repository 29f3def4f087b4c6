"""A foreign run folder and trace that use every sensitive setting, and the machine that opens them.

:class:`ForeignServer` serves a page with a form and a model that follows a script, and records all requests.
:class:`Machine` has a canary in every place that a configuration can name. The same folder can be written under either
key. As this machine's own run it sends everything, which is the control of every test that expects no request.
"""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from agent.config import RunConfig, parse_config
from agent.run.run_store import Manifest, OpenTask, RunFolder
from envs.core.action_languages import PROGRAM
from envs.core.actions import Action, ActionResult, Click, Goto, Status, Stop, Type, Upload
from envs.core.tasks import TaskRef
from envs.core.trace import Commit, ElementKeyRecord, Header, Intent, ObservationRecord, Rating, Timings
from envs.core.trace_store import BlobStore, TraceWriter
from tests.models.providers.servers import Reply, answer_body

AT: Final = "2026-01-01T00:00:00Z"
PAGE: Final = """<!doctype html><title>Form</title><form method=post action=/take enctype=multipart/form-data>
<input name=pin aria-label=Pin><input name=file type=file aria-label=File><button>Send</button></form>"""
ENV, FILE, PRIVATE, COOKIE, SCHEMA = (
    "canary-env-01",
    "canary-file-02",
    "canary-upload-03",
    "canary-cookie-04",
    "canary-schema-05",
)
BASIC, API_KEY, TRACING_KEY = "user:canary-basic-06", "canary-api-key-07", "canary-tracing-key-08"


@dataclass
class Arrived:
    """One request that a server received."""

    method: str
    path: str
    headers: str
    body: str


class ForeignServer:
    """A server on loopback: `/` is the form, `/v1/chat/completions` the model. `arrived` lists all requests."""

    def __init__(self) -> None:
        self.arrived: list[Arrived] = []
        self.answers: list[str] = []
        """Answers of the policy's model, in order."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.arrived.append(Arrived("GET", self.path, str(self.headers), ""))
                knows = "Basic" in (self.headers.get("Authorization") or "")
                self._answer(200 if knows else 401, "text/html", PAGE)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace")
                outer.arrived.append(Arrived("POST", self.path, str(self.headers), body))
                if self.path.startswith("/v1/"):
                    self._answer(200, "application/json", outer.says(json.loads(body)))
                else:
                    self._answer(200, "text/html", "<title>Thanks</title><p>Thanks</p>")

            def _answer(self, status: int, kind: str, text: str) -> None:
                try:
                    self.send_response(status)
                    if status == 401:
                        self.send_header("WWW-Authenticate", 'Basic realm="form"')
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(text.encode())))
                    self.end_headers()
                    self.wfile.write(text.encode())
                except OSError:
                    self.close_connection = True  # whoever asked is gone

            def log_message(self, format: str, *args: object) -> None:
                """Keeps the test output quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def says(self, request: dict[str, Any]) -> str:
        """Answers a model call: useless text for planner and judge, the next of `answers` for the policy."""
        text = "no idea"
        if request.get("model") == "policy-m":
            text = self.answers.pop(0) if self.answers else PROGRAM.show(Stop(answer="{}"))
        return json.dumps(answer_body(Reply(text), "openai"))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass
class Machine:
    """The machine that opens a foreign run: its canaries, the servers, and the settings that such a run names."""

    home: Path
    server: ForeignServer = field(default_factory=ForeignServer)
    elsewhere: ForeignServer = field(default_factory=ForeignServer)
    """Another origin, which only an `allow` rule permits."""
    tracing: ForeignServer = field(default_factory=ForeignServer)
    """Server that this machine's environment names for tracing."""

    def __post_init__(self) -> None:
        (self.home / "uploads").mkdir(parents=True)
        (self.home / "uploads" / "private.txt").write_text(PRIVATE)
        (self.home / "secret").write_text(FILE)
        (self.home / "schema.json").write_text(json.dumps({"type": "object", "description": SCHEMA}))
        cookie = {"name": "session", "value": COOKIE, "domain": "127.0.0.1", "path": "/", "expires": -1}
        cookie |= {"httpOnly": False, "secure": False, "sameSite": "Lax"}
        (self.home / "login.json").write_text(json.dumps({"cookies": [cookie], "origins": []}))

    def close(self) -> None:
        for server in (self.server, self.elsewhere, self.tracing):
            server.close()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "MIRA_TEST_PIN": ENV,
            "MIRA_TEST_BASIC": BASIC,
            "OPENAI_API_KEY": API_KEY,
            "LANGSMITH_API_KEY": TRACING_KEY,
            "LANGSMITH_ENDPOINT": self.tracing.url.rstrip("/"),
        }

    @property
    def values(self) -> dict[str, Any]:
        """A configuration that uses every sensitive setting."""
        home = self.home
        return {
            "policy": "openai:policy-m",
            "planner": "openai:planner-m",
            "judge": "openai:judge-m",
            "base_url": f"{self.server.url}v1",
            "secrets": ["PIN=env:MIRA_TEST_PIN", f"KEY=file:{home / 'secret'}"],
            "answer_schema": str(home / "schema.json"),
            "langsmith": True,
            "fsync": False,
            "retry_window_s": 0,
            "limits": {"max_steps": 12, "max_seconds": 60},
            "session": {
                "allow": [self.elsewhere.url.rstrip("/")],
                "storage_state": str(home / "login.json"),
                "upload_folder": str(home / "uploads"),
                "http_credentials": {"origin": self.server.url.rstrip("/"), "value": "env:MIRA_TEST_BASIC"},
                "ignore_https_errors": True,
            },
        }

    def config(self, **changes: Any) -> RunConfig:
        return parse_config(self.values | changes)

    @property
    def actions(self) -> tuple[Action, ...]:
        return (
            Type(ref=1, text="<secret>PIN</secret> <secret>KEY</secret>"),
            Upload(ref=2, path="private.txt"),
            Click(ref=3),
            Goto(url=self.elsewhere.url),
            Stop(answer="{}"),
        )

    def listen(self) -> None:
        """Clears the recorded requests and resets the model."""
        for server in (self.server, self.elsewhere, self.tracing):
            server.arrived.clear()
        self.server.answers = [PROGRAM.show(action) for action in self.actions]

    def taken(self) -> set[str]:
        """Settings through which data of this machine arrived at a server."""
        names: set[str] = set()
        for arrived in self.server.arrived:
            request = json.loads(arrived.body) if arrived.path.startswith("/v1/") else {}
            names |= {"url"} if arrived.method == "GET" else set[str]()
            names |= {"base_url"} if request else set[str]()
            if API_KEY in arrived.headers:
                names.add(str(request["model"]).removesuffix("-m"))
            where = {"secrets (env)": ENV, "secrets (file)": FILE, "session.upload_folder": PRIVATE}
            names |= {name for name, canary in where.items() if canary in arrived.body and not request}
            names |= {"answer_schema"} if SCHEMA in arrived.body else set[str]()
            names |= {"session.storage_state"} if COOKIE in arrived.headers else set[str]()
            basic = base64.b64encode(BASIC.encode()).decode()
            names |= {"session.http_credentials"} if basic in arrived.headers else set[str]()
        names |= {"session.allow"} if self.elsewhere.arrived else set[str]()
        names |= (
            {"langsmith"} if any(TRACING_KEY in arrived.headers for arrived in self.tracing.arrived) else set[str]()
        )
        return names

    def nothing_came(self) -> bool:
        return not (self.server.arrived or self.elsewhere.arrived or self.tracing.arrived)


@contextmanager
def keyed(state: Path) -> Generator[None]:
    """Uses the key below *state* in this context: the key of another machine, or an old key of this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(state))
        yield


def write_shared_run(machine: Machine, folder: Path, config: RunConfig | None = None) -> RunFolder:
    """Writes the folder of a run that was killed before its first step."""
    config = config or machine.config()
    run = RunFolder(folder)
    task = OpenTask(instruction="Fill in the form", url=machine.server.url)
    run.create(
        Manifest(
            run_id=folder.name,
            created_at=AT,
            config=config,
            suite="open",
            open_task=task,
            names=("task",),
            seeds=(0,),
            versions={},
        )
    )
    path = run.trace("task-0-a1")
    with TraceWriter(path, BlobStore(run.blobs)) as trace:
        trace.append(header_of(machine, folder.name, config))
    return run


def header_of(machine: Machine, run_id: str, config: RunConfig) -> Header:
    return Header(
        run_id=run_id,
        episode_id="task-0-a1",
        task=TaskRef(suite="open", name="task"),
        instruction="Fill in the form",
        category="open",
        start_url=machine.server.url,
        config=config.resolved(),
        versions={},
        started_at=AT,
    )


def write_shared_trace(
    machine: Machine, path: Path, actions: Sequence[Action] | None = None, config: RunConfig | None = None
) -> Path:
    """Writes a trace that fills in and sends the form, then opens a page of another origin."""
    seen = ObservationRecord(
        url=machine.server.url, title="Form", digest="d", text_blob="", keys_blob="", controls_total=3
    )
    names = {1: ("textbox", "Pin"), 2: ("file", "File"), 3: ("button", "Send")}
    with TraceWriter(path, BlobStore(path.parent / "blobs")) as trace:
        trace.append(header_of(machine, "shared", config or machine.config()))
        for step, action in enumerate(machine.actions if actions is None else actions, 1):
            ref = getattr(action, "ref", None)
            role, name = names.get(ref or 0, ("", ""))
            target = (
                ElementKeyRecord(ref=ref, frame="", role=role, name=name, ordinal=0, digest="0" * 8) if ref else None
            )
            intent = Intent(step=step, seen=seen, rating=Rating(z=()), action=action, raw="", target=target, at=AT)
            trace.append(intent)
            result = ActionResult(status=Status.STOPPED if isinstance(action, Stop) else Status.OK)
            trace.append(Commit(step=step, result=result, timings=Timings(), at=AT))
    return path


def environment_of(machine: Machine) -> dict[str, str]:
    return {**os.environ, **machine.environment}
