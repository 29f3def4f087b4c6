"""Every documented command exists and accepts the documented options and arguments."""

from __future__ import annotations

import importlib
import importlib.util
import re
import tomllib
from typing import Any

import pytest
import typer

from agent.cli.app import application
from tests.docs.documented import (
    PACKAGES,
    ROOT,
    Command,
    block_commands,
    imported_names,
    inline_commands,
    pages,
    python_programs,
)

MIN_MIRA = 90
"""Fewer `mira` commands in blocks than this means that the extraction is broken."""


@pytest.fixture(scope="module")
def mira() -> Any:
    return typer.main.get_command(application())


def _leaf(group: Any, words: tuple[str, ...]) -> tuple[Any, list[str]]:
    """The command that *words* (without `mira`) name, and the rest."""
    rest = list(words)
    while hasattr(group, "commands") and (rest or hasattr(group, "default_command")):
        if hasattr(group, "default_command") and (not rest or rest[0] not in group.commands):
            group = group.commands[group.default_command]
            break
        if rest[0].startswith("-"):
            break
        assert rest[0] in group.commands, f"there is no command {rest[0]!r}"
        group = group.commands[rest.pop(0)]
    return group, rest


def _ids(command: Command) -> str:
    return f"{command.place} {' '.join(command.words)[:60]}"


@pytest.mark.parametrize("command", block_commands("mira"), ids=_ids)
def test_a_documented_command_parses(command: Command, mira: Any) -> None:
    leaf, rest = _leaf(mira, command.words[1:])
    if rest in ([], ["--help"], ["--version"], ["--install-completion"]) and leaf is mira:
        return
    leaf.make_context(command.words[-1], rest)


@pytest.mark.parametrize("command", inline_commands("mira"), ids=_ids)
def test_a_command_in_a_sentence_has_these_options(command: Command, mira: Any) -> None:
    leaf, rest = _leaf(mira, tuple(word for word in command.words[1:] if word != "mira"))
    known = {option for parameter in leaf.params for option in (*parameter.opts, *parameter.secondary_opts)}
    used = {word.partition("=")[0] for word in rest if word.startswith("--")}
    assert used <= known | {"--help", "--install-completion", "--show-completion"}


def test_enough_commands_are_extracted() -> None:
    assert len(block_commands("mira")) >= MIN_MIRA
    assert len(inline_commands("mira")) >= 30


@pytest.mark.parametrize("command", block_commands("make") + inline_commands("make"), ids=_ids)
def test_a_documented_make_target_exists(command: Command) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {word for word in command.words[1:] if not word.startswith("-") and "=" not in word} <= targets


PYTHON = [*block_commands("python"), *block_commands("python3"), *inline_commands("python")]


@pytest.mark.parametrize("command", PYTHON, ids=_ids)
def test_a_documented_program_exists(command: Command) -> None:
    words = command.words[1:]
    if words[0] == "-m":
        assert words[1] in {"venv", "pip", "http.server"} or importlib.util.find_spec(words[1]) is not None
    elif words[0] == "-c":
        compile(words[1], command.place, "exec")
    elif words[0] != "peers_observe.py":  # docs/results/observation.md says that it is not part of this repository
        assert (ROOT / words[0]).is_file()


@pytest.mark.parametrize("command", block_commands("pytest") + inline_commands("pytest"), ids=_ids)
def test_a_documented_test_exists(command: Command) -> None:
    markers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    known = {marker.partition(":")[0] for marker in markers["markers"]}
    words = list(command.words[1:])
    while words:
        word = words.pop(0)
        if word == "-m":
            assert set(re.findall(r"\w+", words.pop(0))) <= known | {"not", "and", "or"}
        elif word in ("-n", "--dist", "-k"):
            words.pop(0)
        elif not word.startswith("-"):
            assert (ROOT / word.partition("::")[0]).exists()


def test_documented_extras_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for path in pages():
        for group in re.findall(r"(?:mira-web|'\.|\"\.)\[([\w,]+)\]", path.read_text(encoding="utf-8")):
            assert set(group.split(",")) <= set(extras), path


def test_no_page_and_no_message_installs_from_an_index() -> None:
    """No version is published, so an extra is installed from the clone."""
    code = [path for room in PACKAGES for path in (ROOT / room).rglob("*.py")]
    found = [path for path in (*pages(), *code) if "mira-web[" in path.read_text(encoding="utf-8")]
    assert found == []


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/tutorials/first-run.md"])
def test_a_quick_start_begins_with_the_clone(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert 0 < text.find("git clone ADDRESS mira && cd mira") < text.find("make demo")


def test_ci_runs_the_targets_that_contributors_run() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    runs = re.findall(r"^\s*- run: (.+)$", workflow, re.MULTILINE)
    assert {"make check", "make test", "make docs"} <= set(runs)
    assert {run.removeprefix("make ") for run in runs} <= targets


ROOMS = "|".join(PACKAGES)
_PATH = re.compile(rf"`((?:{ROOMS}|benchmarks|docs|examples|scripts|tests)/[\w/.-]*\w/?)`")
_NAME = re.compile(rf"`((?:{ROOMS})(?:\.\w+)+)(?:\(|`)")
_OTHERS = {"docs/comparison.md"}
"""Names files of other projects."""
_REMOVED = {"training/embedded/hindsight.py"}
"""docs/results/embedded.md says that it is in the history only."""


def test_files_that_pages_name_exist() -> None:
    missing = {
        f"{page.relative_to(ROOT)}: {path}"
        for page in pages()
        if str(page.relative_to(ROOT)) not in _OTHERS
        for path in _PATH.findall(page.read_text(encoding="utf-8"))
        if path not in _REMOVED and not (ROOT / path).exists()
    }
    assert missing == set()


def test_python_names_that_pages_name_exist() -> None:
    names = {name for page in pages() for name in _NAME.findall(page.read_text(encoding="utf-8"))}
    assert len(names) > 10
    assert {name for name in names if not _is_known(name)} == set()


def _is_known(name: str) -> bool:
    """Whether *name* is a module, or a module followed by existing attributes."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            value = getattr(value, part, None)
        return value is not None
    return False


def test_python_programs_compile_and_import_what_exists() -> None:
    programs = list(python_programs())
    assert len([path for path, _ in programs if path.suffix == ".md"]) >= 5
    names = [(path, *name.rpartition(".")[::2]) for path, name in imported_names()]
    missing = {
        (path, module, name) for path, module, name in names if not hasattr(importlib.import_module(module), name)
    }
    assert missing == set()
