"""A command shows what it waits for: a spinner on a terminal, plain lines on stderr elsewhere."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from agent.cli.display import RunDisplay
from agent.cli.wait_notices import Notices
from agent.progress import RunStarted
from envs.core.wait_notices import waiting_for
from models.embedded import embedded_dir
from tests.agent.mira_process import run_mira
from tests.agent.shop import Shop
from tests.timing import HANG_S

ROOT = Path(__file__).parents[3]
STOP = 'exit(message="done")'
LOCAL = f"local:{embedded_dir()}"


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=80)


def written(to: Console) -> str:
    assert isinstance(to.file, io.StringIO)
    return to.file.getvalue()


def test_without_a_listener_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    waiting_for("starting Chromium")
    with Notices(None):
        waiting_for("starting Chromium")
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_each_notice_is_a_line() -> None:
    shown = console(terminal=False)
    with Notices(shown):
        waiting_for("importing torch")
        waiting_for("loading the model local:a\x1b[2J%s")
    waiting_for("too late")
    assert written(shown) == "importing torch\nloading the model local:a\\x1b[2J%s\n"


def test_on_a_terminal_a_spinner_is_shown_and_erased() -> None:
    shown = console(terminal=True)
    with Notices(shown) as notices:
        assert notices.text == "starting"
        waiting_for("starting Chromium")
        assert notices.text == "starting Chromium"
        notices.clear()
        assert notices.text == ""
    assert "starting Chromium" in written(shown)
    assert written(shown).rstrip("\n").endswith("\x1b[1A\x1b[2K"), "its line is erased"


def test_the_display_shows_a_notice_until_the_next_event() -> None:
    elsewhere = console(terminal=True)
    with RunDisplay(console(terminal=True), elsewhere) as display:

        def board() -> str:
            other = console(terminal=False)
            other.print(display.board())
            return written(other)

        waiting_for("starting the site shop\x1b[2J")
        assert "starting the site shop\\x1b[2J" in board()
        display(RunStarted("r", Path("r"), planned=2, finished=0))
        assert "starting" not in board() and "0/2" in board()
    assert written(elsewhere) == "", "one spinner is enough"


def test_a_display_with_json_shows_no_notice() -> None:
    shown = console(terminal=True)
    with RunDisplay(shown):
        waiting_for("starting Chromium")
    assert "starting" not in written(shown)


def command(folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "agent.cli", "run", *words, "--out", str(folder / "runs")]


def open_task(shop: Shop, folder: Path, *words: str) -> list[str]:
    script = folder / "answers.json"
    script.write_text(json.dumps([STOP]), encoding="utf-8")
    return command(folder, "Order", "--url", shop.url, "--policy", f"scripted:{script}", *words)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("policy", "lines"),
    [
        pytest.param("embedded", ["loading the model embedded"], id="embedded"),
        pytest.param(
            f"local:{embedded_dir()}",
            ["importing torch", f"loading the model local:{embedded_dir()}"],
            marks=pytest.mark.heavy,
            id="local",
        ),
    ],
)
def test_a_run_prints_its_notices_and_no_warnings_of_libraries(tmp_path: Path, policy: str, lines: list[str]) -> None:
    """Symptom: 12 to 36 seconds without output, then two deprecation warnings."""
    words = command(tmp_path, "--suite", "miniwob", "--tasks", "click-test", "--policy", policy)
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANG_S, check=True, cwd=ROOT)
    assert done.stderr.splitlines() == [*lines, "starting Chromium"]
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, timeout=HANG_S, check=True, cwd=ROOT)
    assert json.loads(done.stdout)["complete"]
    assert [line.split()[0] for line in done.stderr.splitlines()] == ["step", "success"]


@pytest.mark.browser
def test_a_terminal_has_a_spinner_before_the_first_line(shop: Shop, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(open_task(shop, tmp_path), stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT) as process:
        os.close(theirs)
        output = b""
        while True:
            try:
                output += os.read(ours, 65_536)
            except OSError:  # the other end is closed: the command has ended
                break
        process.wait(60)
    os.close(ours)
    text = output.decode("utf-8", "replace")
    assert process.returncode == 0 and "unjudged" in text
    assert text.index(" starting") < text.index(" starting Chromium") < text.index("unjudged")


@pytest.mark.parametrize(
    "words",
    [["--upload-folder", "nowhere"], ["--allow", "ftp://x"], ["--approve", "submit", "--url", "file:///etc/passwd"]],
    ids=" ".join,
)
def test_wrong_input_is_reported_before_anything_is_loaded(tmp_path: Path, words: list[str]) -> None:
    """Symptom: a mistyped origin was reported only after a model and a browser were loaded."""
    done = run_mira("run", "Find it", "--url", "http://127.0.0.1:9/", *words, "--out", tmp_path / "runs")
    assert done.returncode == 2 and done.stderr.startswith("mira: ") and done.stderr.count("\n") == 1


def test_a_command_ends_without_a_last_garbage_collection() -> None:
    """Symptom: a command took a second or more after its last line, to collect all of torch's modules."""
    code = (
        "import atexit, gc, sys; from agent.cli import main; sys.argv = ['mira', 'models'];"
        "atexit.register(lambda: print(gc.get_freeze_count() > 10_000)); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S, check=True, cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == "True"


def test_settings_of_training_are_read_without_torch() -> None:
    """Symptom: a bad key was reported after seconds of imports."""
    code = "import sys, training.loop.settings, training.grpo.settings; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S, check=True, cwd=ROOT
    )
    assert done.stdout == "False\n"


@pytest.mark.slow
def test_a_plan_says_that_it_imports_torch() -> None:
    """Symptom: `mira train plan` was silent for ten seconds and more."""
    done = run_mira("train", "plan", "tiny")
    assert done.returncode == 0 and done.stderr == "importing torch and transformers\n"
    assert run_mira("train", "plan", "tiny", "--json").stderr == ""


def test_a_folder_without_training_is_refused_before_torch_is_imported(tmp_path: Path) -> None:
    """Symptom: `mira train show` took ten seconds, without a word, to say that there is no run."""
    code = "import atexit, sys; sys.argv = ['mira', 'train', 'show', 'nothing']; "
    code += "atexit.register(lambda: print('torch' in sys.modules)); from agent.cli import main; main()"
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        cwd=tmp_path,
        env=environ,
    )
    assert (done.returncode, done.stdout) == (2, "False\n")
    assert done.stderr == "mira: 'nothing' holds no training run with an evaluation of its start\n"
