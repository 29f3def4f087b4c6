"""Builds the project's git repository, with the same commits, dates and hashes in every build."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from envs.suites.sites.apps.code.people import DEVELOPERS
from envs.suites.sites.apps.code.project import (
    DARK_PLOTS,
    FIRST_FILES,
    NETCDF,
    RELEASES,
    STABLE,
    STEPS,
    Change,
    Feature,
    Note,
    Step,
)

START = datetime(2025, 1, 13, 9, 20, tzinfo=UTC)
END = datetime(2026, 3, 13, 17, 0, tzinfo=UTC)
SEED = 7
GIT_TIMEOUT_S = 60.0
NETCDF_AFTER = 33
"""Index of the step after which the netCDF branch begins."""
MASTER = "refs/heads/master"

_PEOPLE = {person.user: person for person in DEVELOPERS}


def build_repository(folder: Path) -> None:
    """Creates the bare repository *folder*. Raises RuntimeError if git is missing or fails."""
    _git("init", "--quiet", "--bare", "--template=", "--initial-branch=master", str(folder))
    _git("-C", str(folder), "fast-import", "--quiet", "--force", stream=Stream().build())


def write_sizes(repository: Path, file: Path) -> None:
    """Writes the file sizes of each release as JSON, {tag: {path: bytes}}, for the checkers."""
    tags = _git("-C", str(repository), "tag", "--list").split()
    sizes: dict[str, dict[str, int]] = {}
    for tag in tags:
        lines = _git("-C", str(repository), "ls-tree", "-r", "--long", tag).splitlines()
        sizes[tag] = {line.partition("\t")[2]: int(line.partition("\t")[0].split()[3]) for line in lines}
    file.write_text(json.dumps(sizes, indent=1), encoding="utf-8")


def git_environment() -> dict[str, str]:
    """The process's environment variables without the user's git settings."""
    return {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def _git(*arguments: str, stream: bytes = b"") -> str:
    try:
        done = subprocess.run(
            ["git", *arguments],
            input=stream,
            capture_output=True,
            env=git_environment(),
            timeout=GIT_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise RuntimeError("the code site needs git: install git and build again") from error
    if done.returncode:
        raise RuntimeError(f"git {arguments[0]} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode()


class Stream:
    """Builds the input of `git fast-import` and tracks the files of each branch."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._mark = 0
        self._random = random.Random(SEED)
        self._trees: dict[str, dict[str, str]] = {}
        self._tips: dict[str, int] = {}
        self._since_release: list[str] = []

    def build(self) -> bytes:
        """The input for all branches and tags."""
        slots = _working_times(self._random, len(STEPS))
        releases = dict(RELEASES)
        self._trees[MASTER] = {}
        self.commit(MASTER, "noor", START, "Start of the project", FIRST_FILES)
        for number, (step, time) in enumerate(zip(STEPS, slots, strict=True)):
            while releases and (version := next(iter(releases))) and _evening(releases[version]) < time:
                self._release(version, _evening(releases.pop(version)))
            self._step(MASTER, step, time)
            if number == NETCDF_AFTER:
                self._merged_branch("refs/heads/netcdf-writer", NETCDF, time)
            if number == len(STEPS) - 3:  # the newest commit is on master, where Trac opens the browser
                self._series("refs/heads/dark-plots", DARK_PLOTS, time + timedelta(days=3))
        for version, day in releases.items():
            self._release(version, _evening(day))
        return b"".join(self._parts)

    def commit(
        self, branch: str, author: str, time: datetime, message: str, files: dict[str, str], *, merged: int = 0
    ) -> None:
        self._mark += 1
        person = _PEOPLE[author]
        identity = f"{person.name} <{person.email}> {int(time.timestamp())} +0000"
        text = f"{message}\n".encode()
        head = f"commit {branch}\nmark :{self._mark}\nauthor {identity}\ncommitter {identity}\ndata {len(text)}\n"
        self._parts += [head.encode(), text]
        if branch in self._tips:
            self._parts.append(f"from :{self._tips[branch]}\n".encode())
        if merged:
            self._parts.append(f"merge :{merged}\n".encode())
        for path, content in sorted(files.items()):
            body = content.encode()
            self._parts += [f"M 100644 inline {path}\ndata {len(body)}\n".encode(), body, b"\n"]
        self._trees[branch] = {**self._trees[branch], **files}
        self._tips[branch] = self._mark

    def _step(self, branch: str, step: Step, time: datetime) -> None:
        files, message = _edit(self._trees[branch], step)
        self.commit(branch, step.author, time, message, files)
        if branch == MASTER:
            self._since_release.append(message)

    def _release(self, version: str, time: datetime) -> None:
        tree = self._trees[MASTER]
        lines = "".join(f"- {message}\n" for message in self._since_release)
        files = {
            "CHANGES.md": f"{tree['CHANGES.md']}\n## {version} ({time:%Y-%m-%d})\n\n{lines}",
            "tidemark/__init__.py": _with_version(tree["tidemark/__init__.py"], version),
        }
        self._since_release = []
        self.commit(MASTER, "lucas", time, f"Release {version}", files)
        self._tag(version, self._tips[MASTER], time)
        if version == "0.6":
            self._stable(time)

    def _stable(self, time: datetime) -> None:
        branch = "refs/heads/0.6-stable"
        self._series(branch, STABLE, time + timedelta(days=18))
        later = time + timedelta(days=25)
        file = "tidemark/__init__.py"
        self.commit(branch, "lucas", later, "Release 0.6.1", {file: _with_version(self._trees[branch][file], "0.6.1")})
        self._tag("0.6.1", self._tips[branch], later)

    def _tag(self, version: str, mark: int, time: datetime) -> None:
        lucas = _PEOPLE["lucas"]
        text = f"Tidemark {version}\n".encode()
        self._parts += [
            f"tag v{version}\nfrom :{mark}\n".encode(),
            f"tagger {lucas.name} <{lucas.email}> {int(time.timestamp())} +0000\n".encode(),
            f"data {len(text)}\n".encode(),
            text,
        ]

    def _merged_branch(self, branch: str, steps: Sequence[Step], time: datetime) -> None:
        self._series(branch, steps, time + timedelta(hours=1))
        files = {path: text for path, text in self._trees[branch].items() if self._trees[MASTER].get(path) != text}
        when = time + timedelta(hours=26)
        self.commit(MASTER, "noor", when, "Merge branch 'netcdf-writer'", files, merged=self._tips[branch])

    def _series(self, branch: str, steps: Sequence[Step], time: datetime) -> None:
        """Creates a branch from master with *steps*."""
        self._trees[branch] = dict(self._trees[MASTER])
        self._tips[branch] = self._tips[MASTER]
        for number, step in enumerate(steps):
            self._step(branch, step, time + timedelta(hours=3 * number, minutes=17 * number))


def _edit(tree: dict[str, str], step: Step) -> tuple[dict[str, str], str]:
    """The files and the commit message of a step."""
    match step:
        case Feature():
            path, test = f"tidemark/{step.module}.py", f"tests/test_{step.module}.py"
            code = tree.get(path, f'"""{step.module.capitalize()} of Tidemark."""\n')
            tests = tree.get(test, f"from tidemark import {step.module}\n")
            function = f'\n\ndef {step.signature}:\n    """{step.doc}"""\n    return {step.result}\n'
            check = f"\n\ndef test_{step.name}():\n    assert callable({step.module}.{step.name})\n"
            return {path: code + function, test: tests + check}, f"{step.module}: add {step.name}"
        case Change():
            if step.old not in tree[step.path]:
                raise RuntimeError(f"{step.path} does not contain {step.old!r}")
            return {step.path: tree[step.path].replace(step.old, step.new)}, step.message
        case Note():
            title = f"# {Path(step.path).stem.capitalize()}\n"
            return {step.path: f"{tree.get(step.path, title)}\n{step.text}\n"}, step.message


def _with_version(text: str, version: str) -> str:
    return text[: text.index("__version__")] + f'__version__ = "{version}"\n'


def _working_times(source: random.Random, number: int) -> list[datetime]:
    """Times on working days, in order, spread over the project's lifetime."""
    return sorted(_moments(source, number))


def _moments(source: random.Random, number: int) -> Iterator[datetime]:
    for index in range(number):
        day = START + (END - START) * ((index + 1) / (number + 1))
        while day.weekday() > 4:
            day += timedelta(days=1)
        yield day.replace(hour=source.randint(8, 17), minute=source.randint(0, 59), second=0, microsecond=0)


def _evening(day: str) -> datetime:
    return datetime.fromisoformat(f"{day}T18:00:00+00:00")
