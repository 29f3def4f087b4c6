"""The command line: wrong input gives one line and exit code 2, `--json` prints JSON, no partial file is written."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli import app
from agent.cli.options import parse_seeds, select
from envs.core.errors import BadInput
from tests.agent.episodes import Play, write_run
from tests.mira_command import mira
from tests.timing import HANG_S

ROOT = Path(__file__).parents[3]
KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", "MIRA_CHROMIUM")

MINIWOB = ["run", "--suite", "miniwob", "--tasks", "click-test"]
OPEN = ["run", "Find it", "--url", "http://127.0.0.1:9/"]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    monkeypatch.chdir(tmp_path)


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    write_run(tmp_path / "r", [Play()])
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "agent.cli", "show", str(tmp_path / "r"), "--json"]
        ended = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=HANG_S, check=False, cwd=ROOT
        )
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1 and "No space left on device; make room" in ended.stderr


WRONG = [
    pytest.param(["run"], "a task and a URL are needed", id="no task"),
    pytest.param(["run", "Find it"], "--url", id="no address"),
    pytest.param([*MINIWOB, "--url", "http://x.test"], "not both", id="suite and address"),
    pytest.param([*OPEN, "--tasks", "click-test"], "--tasks selects tasks of a suite", id="tasks without a suite"),
    pytest.param([*OPEN, "--seeds", "3-7"], "--seeds selects tasks of a suite", id="seeds without a suite"),
    pytest.param(["run", "--suite", "minibob"], "'minibob'", id="unknown suite"),
    pytest.param(
        ["run", "--suite", "miniwob", "--tasks", "click-buton"], "did you mean click-button", id="unknown task"
    ),
    pytest.param(
        ["run", "--suite", "sites", "--tasks", "shop-compare", "--split", "train"],
        "shop-compare is in split test, not in train: use --split test, or omit --split",
        id="task of another split",
    ),
    pytest.param(
        ["run", "--suite", "sites", "--tasks", "shop-compair", "--split", "train"],
        "has no task 'shop-compair'",
        id="unknown task with a split",
    ),
    pytest.param([*MINIWOB, "--seeds", "4-0"], "4-0", id="seeds downwards"),
    pytest.param([*MINIWOB, "--seeds", "many"], "'many'", id="seeds in words"),
    pytest.param(
        [*MINIWOB, "--policy", "oracle:x"],
        "policies for demonstrations are oracle and oracle:detours",
        id="unknown model",
    ),
    pytest.param(
        [*MINIWOB, "--policy", "gpt-4o"],
        "unknown model 'gpt-4o': did you mean openai:gpt-4o? Else use one of embedded, ",
        id="a model without its provider",
    ),
    pytest.param([*MINIWOB, "--policy", "openai:gpt-4o"], "OPENAI_API_KEY", id="missing OpenAI key"),
    pytest.param([*MINIWOB, "--policy", "gemini:gemini-2.5-pro"], "GEMINI_API_KEY", id="missing Gemini key"),
    pytest.param([*MINIWOB, "--policy", "local:nowhere"], "nowhere", id="missing checkpoint"),
    pytest.param([*MINIWOB, "--policy", "scripted:nowhere.json"], "nowhere.json", id="missing script"),
    pytest.param([*MINIWOB, "--thinking", "lots"], "'lots'", id="thinking in words"),
    pytest.param([*OPEN, "--planner", "same", "--thinking", "300"], "300", id="thinking beyond the budgets"),
    pytest.param([*MINIWOB, "--workers", "0"], "workers", id="no workers"),
    pytest.param([*MINIWOB, "--wrokers", "2"], "--wrokers", id="unknown option"),
    pytest.param(
        [*MINIWOB, "--approve", "submit,send"],
        "--approve: unknown action 'send': use submit, navigation, download, upload, tool, all; did you mean submit?",
        id="unknown approval",
    ),
    pytest.param([*MINIWOB, "--approve", "navigate"], "; did you mean navigation?", id="misspelt approval"),
    pytest.param(
        [*MINIWOB, "--approve", "x"], "'x': use submit, navigation, download, upload, tool, all\n", id="no approval"
    ),
    pytest.param([*OPEN, "--planner", ""], "'planner': this names nothing", id="empty planner"),
    pytest.param([*OPEN, "--rater", ""], "'rater': this names nothing", id="empty rater"),
    pytest.param([*OPEN, "--judge", ""], "'judge': this names nothing", id="empty judge"),
    pytest.param([*OPEN, "--base-url", ""], "'base_url': this names nothing", id="empty base URL"),
    pytest.param(
        [*MINIWOB, "--policy", "embedded", "--base-url", "http://127.0.0.1:9/v1"],
        "--base-url http://127.0.0.1:9/v1: no model of this run uses it (policy embedded, planner reference, judge",
        id="base URL of no model",
    ),
    pytest.param(
        [*OPEN, "--policy", "openai:m", "--planner", "none", "--base-url", "planner=http://127.0.0.1:9/v1"],
        "planner without a model uses no base URL, here http://127.0.0.1:9/v1: leave out --base-url planner=…",
        id="base URL of a role without a model",
    ),
    pytest.param([*OPEN, "--approve", ""], "--approve '' names nothing", id="approval of an empty variable"),
    pytest.param(["run", "--suite", "miniwob", "--tasks", ","], "--tasks ',' names nothing", id="no task named"),
    pytest.param([*MINIWOB, "--config", "nowhere.toml"], "nowhere.toml", id="missing config"),
    pytest.param([*OPEN, "--secret", "PASSWORD=hunter22"], "env:", id="secret in the open"),
    pytest.param([*OPEN, "--secret", "PASSWORD=env:NOT_SET_HERE"], "NOT_SET_HERE", id="secret not set"),
    pytest.param(
        ["run", f"Find {sys.executable}", "--url", "http://127.0.0.1:9", "--secret", "PW=env:HELD"],
        "the task holds the value of a secret",
        id="secret in the task",
    ),
    pytest.param(
        [*OPEN, "--schema", f'{{"const": "{sys.executable}"}}', "--secret", "PW=env:HELD"],
        "the answer schema holds the value of a secret",
        id="secret in the schema",
    ),
    pytest.param(
        [*OPEN, "--schema", '{"type": "lots"}'], "the answer schema is not a JSON Schema: 'lots'", id="schema"
    ),
    pytest.param([*OPEN, "--schema", '{"type": '], "'answer_schema': this is no JSON Schema", id="broken schema"),
    pytest.param([*OPEN, "--schema", ""], "'answer_schema': this names nothing", id="empty schema"),
    pytest.param([*OPEN, "--schema", "no.json"], "answer schema 'no.json' cannot be read", id="missing schema"),
    pytest.param(
        [*OPEN, "--policy", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--max-cost", "1"],
        "the price of openai:m is not known at that server",
        id="a limit of unknown cost",
    ),
    pytest.param([*OPEN, "--allow", "ftp://x"], "ftp://x", id="bad origin"),
    pytest.param([*OPEN, "--upload-folder", ""], "'session.upload_folder': this names no", id="empty upload folder"),
    pytest.param([*OPEN, "--upload-folder", "nowhere"], "'nowhere' is not a folder", id="missing upload folder"),
    pytest.param(
        [*OPEN, "--storage-state", "nowhere.json"],
        "storage state 'nowhere.json' does not exist: write one with `mira login URL`",
        id="missing storage state",
    ),
    pytest.param([*OPEN, "--storage-state", "/"], "storage state '/' cannot be read: Is a directory", id="a folder"),
    pytest.param(
        [*OPEN, "--storage-state", "/etc/hostname"],
        "'/etc/hostname' is not a storage state of a browser: Invalid JSON",
        id="storage state of no browser",
    ),
    pytest.param(
        ["run", "Find it", "--url", "shop.example"],
        "'shop.example' is no http or https address: write https://shop.example",
        id="an address without a scheme",
    ),
    pytest.param(["run", "Find it", "--url", "file:///etc/passwd"], "file:///etc/passwd", id="a file"),
    pytest.param(["resume", "nowhere"], "nowhere", id="resume nothing"),
    pytest.param(["show", "nowhere"], "nowhere", id="show nothing"),
    pytest.param(["report", "nowhere"], "nowhere", id="report nothing"),
]


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_wrong_input_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], message: str
) -> None:
    monkeypatch.setenv("HELD", sys.executable)
    assert mira(monkeypatch, *words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("mira: ") and captured.err.count("\n") == 1
    assert message in captured.err
    assert list(tmp_path.iterdir()) == [], "no partial file is written"


def test_cookies_of_a_browser_extension_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Symptom: the browser refused the file, and the message did not name it."""
    file = tmp_path / "cookies.json"
    cookie = {"name": "sid", "value": "ann", "domain": "127.0.0.1", "path": "/", "sameSite": "no_restriction"}
    file.write_text(json.dumps({"cookies": [cookie]}))
    assert mira(monkeypatch, *OPEN, "--storage-state", file) == 2
    refused = capsys.readouterr().err
    assert refused.count("\n") == 1 and "cookies.json' is not a storage state" in refused
    assert "cookies.0.sameSite: Input should be 'Strict', 'Lax' or 'None'" in refused


def test_a_wrong_config_key_names_file_and_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "mira.toml"
    file.write_text("[limits]\nmax_stepz = 3\n")
    assert mira(monkeypatch, *MINIWOB, "--config", str(file)) == 2
    assert "mira.toml" in (captured := capsys.readouterr().err) and "'limits.max_stepz'" in captured
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("text", "seeds"), [("0", (0,)), ("0-2", (0, 1, 2)), ("3,1", (3, 1)), ("1,1-2", (1, 2)), (" 7 ", (7,))]
)
def test_seeds(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "-1", "1-", "1-2-3", "0-99999999", "x"])
def test_no_seeds(text: str) -> None:
    with pytest.raises(BadInput):
        parse_seeds(text)


def test_a_selection_is_every_task_on_every_seed() -> None:
    refs = select("miniwob", ["click-test", "login-user"], (0, 7)).refs()
    assert [ref.id for ref in refs] == [
        "miniwob/click-test/0",
        "miniwob/click-test/7",
        "miniwob/login-user/0",
        "miniwob/login-user/7",
    ]


def test_tasks_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert mira(monkeypatch, "tasks", "--json") == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert len(rows) >= 125
    assert rows["login-user"]["milestones"] == 3
    assert sum(row["milestones"] > 0 for row in rows.values()) >= 30


def test_models_names_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert mira(monkeypatch, "models", "--json") == 0
    rows = {row["spec"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["embedded"]["usable"]
    assert not rows["openai:MODEL"]["usable"] and "OPENAI_API_KEY" in rows["openai:MODEL"]["detail"]
    assert not rows["gemini:MODEL"]["usable"] and "GEMINI_API_KEY" in rows["gemini:MODEL"]["detail"]


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agent.cli", "run"], capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 2 and done.stderr.startswith("mira: ")


def failing(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    """Makes `mira show` fail because *file* is missing."""

    def fails(words: list[str]) -> Callable[..., None]:
        def command(**_: object) -> None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))

        return command

    monkeypatch.setattr(app, "application", fails)


@pytest.mark.parametrize(
    "file",
    [
        ROOT / "agent" / "inspection" / "report" / "gone.css",
        ROOT / "planners" / "gone.json",
        Path(sysconfig.get_path("purelib")) / "jinja2" / "gone.py",
    ],
    ids=["own", "own of another package", "a library's"],
)
@pytest.mark.parametrize("words", [[], ["r", "--out=report.html"]], ids=["none", "others"])
def test_a_missing_file_of_a_package_is_a_bug_with_a_traceback(
    monkeypatch: pytest.MonkeyPatch, file: Path, words: list[str]
) -> None:
    """Symptom: one line that asked for another place, with exit code 2."""
    failing(monkeypatch, file)
    monkeypatch.setattr(sys, "argv", ["mira", "show", *words])
    with pytest.raises(FileNotFoundError):
        app.main()


@pytest.mark.parametrize("form", ["{}", "--out={}", "-o{}"])
@pytest.mark.parametrize("named", ["agent/runs", "agent/runs/r/blobs", "agent/runs/r/blobs/b"])
def test_a_file_that_the_user_named_is_one_line_also_in_a_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], named: str, form: str
) -> None:
    """The user may name the file, a folder above it, or a file below it, from the working directory too."""
    failing(monkeypatch, ROOT / "agent" / "runs" / "r" / "blobs")
    monkeypatch.chdir(ROOT)
    assert mira(monkeypatch, "show", form.format(named)) == 2
    assert "blobs: No such file or directory; name another place" in capsys.readouterr().err


def test_a_default_run_folder_is_the_users_also_in_a_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, ROOT / "agent" / "runs" / "r")
    monkeypatch.chdir(ROOT / "agent")
    assert mira(monkeypatch, "show") == 2
    assert "name another place" in capsys.readouterr().err
