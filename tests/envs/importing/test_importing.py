"""Logs of other harnesses become valid traces, and nothing in them is executed."""

from __future__ import annotations

import gzip
import io
import os
import pickle
from pathlib import Path

import pytest

from envs.core.actions import (
    Action,
    Back,
    Click,
    FocusTab,
    Goto,
    Hover,
    Press,
    Scroll,
    Select,
    Status,
    Stop,
    Type,
    Wait,
)
from envs.core.errors import BadInput
from envs.core.trace_store import read_trace
from envs.importing import read_agentlab, read_webarena, write_episodes
from envs.importing.episodes import Nodes
from envs.importing.inert_pickle import Blank, read_pickle
from envs.importing.webarena import parse_action
from tests.envs.importing.rendered import HOME, Page, write_result

AGENTLAB = Path(__file__).parents[2] / "data" / "importing" / "agentlab"
LOG = """2023-10-01 10:00:00,000 - INFO - [Config file]: config_files/7.json
2023-10-01 10:01:00,000 - INFO - [Result] (PASS) config_files/7.json
2023-10-01 10:02:00,000 - INFO - [Config file]: config_files/8.json
2023-10-01 10:03:00,000 - INFO - [Result] (FAIL) config_files/8.json
2023-10-01 10:04:00,000 - INFO - [Config file]: config_files/9.json
2023-10-01 10:05:00,000 - INFO - [Unhandled Error] TimeoutError('page')
"""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Four tasks: passed, stopped by the harness, broken, and one without an entry in the log."""
    folder = tmp_path / "results"
    account = Page(HOME, "click [12] where [12] is link 'My Account'", "I look. ```click [12]```")
    search = Page(HOME, "type [15] [red chair ] where [15] is textbox 'Search'", "```type [15] [red chair] [1]```")
    write_result(folder, 7, [search, account, Page(HOME, "stop [$12.00]", "```stop [$12.00]```")])
    write_result(folder, 8, [account, account, Page(HOME, "stop [Early stop: Same action for 3 times]", "Early stop")])
    write_result(folder, 9, [account])
    write_result(folder, 10, [account, Page(HOME, "None", "I do not know")])
    (folder / "merge_log.txt").write_text(LOG, encoding="utf-8")
    return folder


def test_webarena_results_become_traces(results: Path, tmp_path: Path) -> None:
    paths = list(write_episodes(read_webarena(results), tmp_path / "out"))
    passed, stopped, broke, unknown = (read_trace(path) for path in paths)
    assert [t.footer.outcome for t in (passed, stopped, broke, unknown) if t.footer] == [
        "success",
        "failure",
        "broken",
        "unjudged",
    ]
    assert passed.header.instruction == "Find the red chair"
    assert (passed.header.category, passed.header.start_url) == ("shopping", "http://shop.example/")
    typed = passed.steps[0].intent
    assert typed.action == Type(ref=3, text="red chair", enter=True)
    assert typed.target is not None and (typed.target.role, typed.target.name) == ("textbox", "Search")
    assert typed.seen.title == "One Stop Market" and typed.seen.state
    assert passed.footer and (passed.footer.ended_by, passed.footer.answer) == ("stop", "$12.00")
    assert stopped.footer and stopped.footer.ended_by == "max_steps" and len(stopped.steps) == 2
    assert "same action for 3 times" in stopped.events[0].detail
    assert unknown.steps[1].intent.action == Wait() and "is not an action" in unknown.events[0].detail


ON_ACCOUNT, IN_SEARCH = "where [12] is link 'My Account'", "where [15] is textbox 'Search'"
ACTIONS: dict[str, tuple[str, str, Action]] = {
    "click": (f"click [12] {ON_ACCOUNT}", "```click [12]```", Click(ref=2)),
    "an element that was never shown": ("click [99] where [99] is ", "```click [99]```", Click(ref=0)),
    "hover": (f"hover [12] {ON_ACCOUNT}", "```hover [12]```", Hover(ref=2)),
    "type, enter": (f"type [15] [a b] {IN_SEARCH}", "```type [15] [a b] [1]```", Type(ref=3, text="a b", enter=True)),
    "type, no enter": (f"type [15] [a] {IN_SEARCH}", "```type [15] [a] [0]```", Type(ref=3, text="a")),
    "enter by default": (f"type [15] [a] {IN_SEARCH}", "```type [15] [a]```", Type(ref=3, text="a", enter=True)),
    "brackets": (f"type [15] [a [b] c] {IN_SEARCH}", "```type [15] [a [b] c] [0]```", Type(ref=3, text="a [b] c")),
    "scroll": ("scroll [down]", "```scroll [down]```", Scroll(direction="down")),
    "scroll up": ("scroll [up]", "```scroll [up]```", Scroll(direction="up")),
    "press": ("press [ctrl+a]", "```press [ctrl+a]```", Press(keys="ctrl+a")),
    "goto": ("goto [http://x/?a=1]", "```goto [http://x/?a=1]```", Goto(url="http://x/?a=1")),
    "back": ("go_back", "```go_back```", Back()),
    "tab": ("tab_focus [1]", "```tab_focus [1]```", FocusTab(index=1)),
    "stop without an answer": ("stop []", "```stop []```", Stop(answer=None)),
}


@pytest.mark.parametrize(("parsed", "raw", "action"), ACTIONS.values(), ids=ACTIONS.keys())
def test_webarena_actions(parsed: str, raw: str, action: Action) -> None:
    assert parse_action(parsed, raw, Nodes.of(HOME))[0] == action


def test_the_second_of_two_like_links_is_the_second() -> None:
    nodes = Nodes.of(HOME)
    assert [nodes.rows[key].ordinal for key in ("20", "21")] == [0, 1]


def test_an_experiment_that_browsergym_recorded(tmp_path: Path) -> None:
    """Recorded with browsergym-experiments 0.14.3: fill, select, an unknown bid, a click, a message."""
    (path,) = write_episodes(read_agentlab(AGENTLAB), tmp_path / "out")
    trace = read_trace(path)
    assert (trace.header.task.name, trace.header.task.seed) == ("openended", 7)
    assert trace.header.instruction == "Tell me how many orders I have."
    assert trace.header.config["policy"] == "scripted-agent"
    actions = [step.intent.action for step in trace.steps]
    assert actions == [
        Type(ref=3, text="bolts"),
        Select(ref=6, option="M"),
        Click(ref=0),
        Click(ref=4),
        Stop(answer="There are no orders."),
    ]
    names = [step.intent.target.name if step.intent.target else None for step in trace.steps]
    assert names == ["Search", "Size", None, "My orders", None]
    missed = trace.steps[2].commit
    assert missed is not None and missed.result.status is Status.FAILED and "zz9" in missed.result.message
    assert trace.steps[0].intent.seen.screenshot_blob is not None
    assert trace.steps[4].intent.seen.url.endswith("/orders")
    assert trace.footer and (trace.footer.outcome, trace.footer.ended_by) == ("failure", "stop")


class Evil:
    """Writes a file when it is unpickled with its class."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch pwned",)  # pyright: ignore[reportDeprecated]  # the payload


def test_a_pickle_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "evil.pkl"
    path.write_bytes(pickle.dumps({"a": Evil(), "b": [1, "x"]}))
    value = read_pickle(path)
    assert value["b"] == [1, "x"] and isinstance(value["a"], Blank) and value["a"].args == ("touch pwned",)
    assert not (tmp_path / "pwned").exists()
    pickle.load(io.BytesIO(path.read_bytes()))  # the proof that it is a real one
    assert (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    "data", [b"", b"no pickle at all", pickle.dumps([1] * 100)[:-20]], ids=["empty", "text", "torn"]
)
def test_what_is_no_pickle_is_one_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "step_0.pkl.gz"
    path.write_bytes(gzip.compress(data))
    with pytest.raises(BadInput) as error:
        read_pickle(path)
    assert str(error.value).startswith(f"{path}: cannot be read as a pickle") and "\n" not in str(error.value)


def test_folders_without_logs_are_named(tmp_path: Path) -> None:
    for reader, file_name in ((read_webarena, "render_"), (read_agentlab, "step_0.pkl.gz")):
        with pytest.raises(BadInput, match=file_name):
            next(reader(tmp_path))


def test_a_folder_in_use_is_left_alone(results: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    with pytest.raises(BadInput, match="not empty"):
        next(write_episodes(read_webarena(results), tmp_path / "out"))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]
