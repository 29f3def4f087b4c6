"""Hostile logs end with one line, within the limits, and no file of this machine is copied."""

from __future__ import annotations

import gzip
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envs.core.errors import BadInput
from envs.importing import Format, ImportBounds, import_folder
from envs.importing.inert_pickle import read_pickle
from tests.envs.importing.rendered import HOME, Page, write_result
from tests.timing import Bound

PNG = b"\x89PNG\r\n\x1a\n"
SECRET = PNG + b"a file of this machine"
QUICK = ImportBounds(episode_s=20.0, memory_bytes=2 * 1024**3)


def step(folder: Path, number: int = 0, **info: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step_{number}.pkl.gz"
    path.write_bytes(gzip.compress(pickle.dumps({"obs": {"goal": "Buy tea", "axtree_txt": "[1] link 'Tea'"}, **info})))
    return path


def outside(folder: Path) -> Path:
    """A file outside the log folder that no import may read."""
    path = folder.parent / "private.png"
    path.write_bytes(SECRET)
    return path


def linked_picture(folder: Path) -> None:
    step(folder, action="click('1')")
    (folder / "screenshot_step_0.png").symlink_to(outside(folder))


def linked_step(folder: Path) -> None:
    real = step(folder.parent / "elsewhere", action="click('1')")
    folder.mkdir()
    (folder / "step_0.pkl.gz").symlink_to(real)


def linked_page(folder: Path) -> None:
    folder.mkdir()
    (folder / "render_1.html").symlink_to(outside(folder))


def linked_log_folder(folder: Path) -> None:
    write_result(folder, 7, [Page(HOME, "stop [x]", "```stop [x]```")])
    (folder.parent / "logs").mkdir()
    (folder.parent / "logs" / "a.log").write_text("x")
    (folder / "log_files").symlink_to(folder.parent / "logs")


def pipe_as_step(folder: Path) -> None:
    step(folder, action="noop()")
    os.mkfifo(folder / "step_1.pkl.gz")


def pipe_as_page(folder: Path) -> None:
    folder.mkdir()
    os.mkfifo(folder / "render_1.html")


def folder_as_step(folder: Path) -> None:
    (folder / "step_0.pkl.gz").mkdir(parents=True)


def no_picture(folder: Path) -> None:
    step(folder, action="noop()")
    (folder / "screenshot_step_0.png").write_text("<html>")


def raw_pickle(data: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        folder.mkdir()
        (folder / "step_0.pkl.gz").write_bytes(gzip.compress(data))

    return write


def doubling(times: int) -> bytes:
    """A tuple that nests two copies of itself, *times* levels deep: a few bytes per level, 2^times leaves."""
    return b"\x80\x04)" + b"2\x86" * times + b"."


def summary(text: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        step(folder, action="noop()")
        (folder / "summary_info.json").write_text(text)

    return write


HUGE_MEMO = b"\x80\x02Nr\xff\xff\xff\x0f0N."
REFUSED: dict[str, tuple[Format, Callable[[Path], None]]] = {
    "picture_is_a_link": ("agentlab", linked_picture),
    "step_is_a_link": ("agentlab", linked_step),
    "page_is_a_link": ("webarena", linked_page),
    "log_folder_is_a_link": ("webarena", linked_log_folder),
    "step_is_a_pipe": ("agentlab", pipe_as_step),
    "page_is_a_pipe": ("webarena", pipe_as_page),
    "step_is_a_folder": ("agentlab", folder_as_step),
    "picture_is_no_png": ("agentlab", no_picture),
    "memo_of_a_gibibyte": ("agentlab", raw_pickle(HUGE_MEMO)),
    "long_string_that_is_not_there": ("agentlab", raw_pickle(b"\x80\x04\x8e\xff\xff\xff\xff\x00\x00\x00\x00.")),
    "stack_is_empty": ("agentlab", raw_pickle(b"\x80\x04.")),
    "not_zipped": ("agentlab", lambda folder: (folder.mkdir(), (folder / "step_0.pkl.gz").write_bytes(b"x"))[0]),
    "summary_is_cut": ("agentlab", summary('{"cum_reward": ')),
    "summary_is_deep": ("agentlab", summary("[" * 100_000)),
}
READ: dict[str, tuple[Format, Callable[[Path], None]]] = {
    "steps_numbered_beyond_integers": ("agentlab", lambda folder: (step(folder), step(folder, 10**30))[0] and None),
    "action_is_deep": ("agentlab", lambda folder: step(folder, action="click(" + "(" * 50_000 + ")") and None),
    "action_of_other_types": ("agentlab", lambda folder: step(folder, action="tab_focus(-3)") and None),
    "address_is_no_address": ("agentlab", lambda folder: step(folder, action="goto('ht!tp:// \\ud800')") and None),
    "huge_number": ("agentlab", lambda folder: step(folder, action="mouse_click(1e999, 2)") and None),
    "keys_of_other_types": ("agentlab", lambda folder: step(folder, action="press('1', None)") and None),
    "empty_select": ("agentlab", lambda folder: step(folder, action="select_option('1', [])") and None),
    "doubled_objects": ("agentlab", raw_pickle(doubling(60))),
    "reward_is_not_a_number": ("agentlab", summary('{"cum_reward": NaN}')),
    "surrogates_in_a_name": ("agentlab", lambda folder: step(folder, action="fill('1', '\\ud800')") and None),
}


def imported(kind: Format, folder: Path, out: Path) -> list[Path]:
    return list(import_folder(kind, folder, out, QUICK))


@pytest.mark.parametrize(("kind", "write"), REFUSED.values(), ids=REFUSED.keys())
def test_a_hostile_log_is_refused_in_one_line(tmp_path: Path, kind: Format, write: Callable[[Path], None]) -> None:
    write(tmp_path / "log")
    with pytest.raises(BadInput) as caught:
        imported(kind, tmp_path / "log", tmp_path / "out")
    assert "\n" not in str(caught.value) and "log" in str(caught.value)
    stored = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert b"of this machine" not in stored


@pytest.mark.parametrize(("kind", "write"), READ.values(), ids=READ.keys())
def test_an_odd_log_becomes_a_trace_or_one_line(tmp_path: Path, kind: Format, write: Callable[[Path], None]) -> None:
    write(tmp_path / "log")
    try:
        assert len(imported(kind, tmp_path / "log", tmp_path / "out")) == 1
    except BadInput as refused:
        assert "\n" not in str(refused)


def test_without_the_check_a_small_pickle_takes_memory(tmp_path: Path) -> None:
    """The negative control: the process limit alone refuses the same file."""
    path = tmp_path / "a.pkl"
    path.write_bytes(HUGE_MEMO)
    assert len(HUGE_MEMO) < 20
    with pytest.raises(BadInput, match="of the memo"):
        read_pickle(path)


def test_an_endless_import_is_ended(tmp_path: Path) -> None:
    """A page whose markers make the tree's pattern backtrack over the whole text, many times."""
    write_result(tmp_path / "log", 7, [Page(HOME, "stop [x]", "```stop [x]```")])
    page = tmp_path / "log" / "render_7.html"
    page.write_text(
        page.read_text() + ("<h2>New Page</h2>" + "<div class='state_obv'><pre>" * 200_000), encoding="utf-8"
    )
    with Bound(2.0, 98.0), pytest.raises(BadInput, match="took more than 2 s"):
        list(import_folder("webarena", tmp_path / "log", tmp_path / "out", ImportBounds(episode_s=2.0)))
