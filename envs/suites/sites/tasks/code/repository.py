"""Code site tasks on the repository: files, releases and commits."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import PurePosixPath

from envs.suites.sites.answers import Day, Number
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver, Unsolvable
from envs.suites.sites.tasks.code.shared import sample_instances
from envs.suites.sites.templates import (
    Goal,
    GoldenStates,
    Milestones,
    Outcome,
    Params,
    Template,
    any_of,
    shows,
    visited,
)

BROWSER = PagePattern("code", r"/browser(/.*)?")


@dataclass(frozen=True)
class File(Params):
    path: str
    folder: str
    file: str
    day: str
    """Day of the commit, as 2026-03-16."""


def commits_of_files(golden: GoldenStates) -> dict[str, list[tuple[int, str, str]]]:
    """Maps each path to the commits on master that changed it: time, hash and message, oldest first."""
    tips = json.loads((golden.folder("code") / "fixed" / "sizes.json").read_text(encoding="utf-8"))
    rows = golden.database("code").rows(
        "SELECT path, time, revision.rev, message FROM node_change JOIN revision USING (repos, rev)"
        " WHERE node_type = 'F' ORDER BY path, time"
    )
    commits: dict[str, list[tuple[int, str, str]]] = {}
    for path, time, rev, message in rows:
        if path in tips["v0.7"]:
            commits.setdefault(path, []).append((time, rev, message))
    return commits


def day_of(microseconds: int) -> str:
    """The UTC day of a time, as 2026-03-16."""
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).date().isoformat()


class FileAdded(Template[File]):
    """Asks for the day of a file's first commit."""

    name = "code-file-added"
    sites = ("code",)
    category = "code"
    kind = "information"
    difficulty = "easy"
    wordings = (
        "On which day was the file {path} added to the repository? Answer with the date (YYYY-MM-DD).",
        "When did {path} first appear in the source code? Answer with the day as YYYY-MM-DD.",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[File]:
        known = commits_of_files(golden)
        return [
            File(path, str(PurePosixPath(path).parent), PurePosixPath(path).name, day_of(commits[0][0]))
            for path, commits in known.items()
            if "/" in path and len({day_of(time) for time, _, _ in commits}) == len(commits)
        ]

    def milestones(self, p: File) -> Milestones:
        log = PagePattern("code", rf"/log/{re.escape(p.path)}")
        inside = PagePattern("code", rf"/(browser|log)/{re.escape(p.folder)}(/.*)?")
        return (
            Goal("The source code is browsed", visited(BROWSER)),
            Goal(f"The folder {p.folder} is open", visited(inside)),
            Goal(f"The revision log of {p.path} is open", visited(log)),
            Goal(f"The revision log of {p.path} is shown", shows(log)),
        )

    def outcome(self, p: File) -> Outcome:
        return Outcome(answer=Day(date.fromisoformat(p.day)))

    async def solve(self, driver: PageDriver, p: File) -> str | None:
        await driver.click("link", "Browse Source")
        await driver.click("link", p.folder)
        await driver.click("link", p.file)
        await driver.click("link", "Revision Log")
        days = re.findall(r'link "(\d{4}-\d\d-\d\d)T', await driver.text())
        if not days:
            raise Unsolvable(f"no commit of {p.path}")
        return min(days)


@dataclass(frozen=True)
class Sized(Params):
    path: str
    folder: str
    file: str
    release: str
    size: int


class FileSize(Template[Sized]):
    """Asks for the size of a file in a release."""

    name = "code-file-size"
    sites = ("code",)
    category = "code"
    kind = "information"
    difficulty = "easy"
    wordings = (
        "How many bytes had the file {path} in the release {release}? Answer with a number.",
        "Browse the source code as it was in {release} and tell me the size of {path} in bytes.",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Sized]:
        tags = json.loads((golden.folder("code") / "fixed" / "sizes.json").read_text(encoding="utf-8"))
        newest = tags["v0.7"]
        files_of_releases = [
            Sized(path, str(PurePosixPath(path).parent), PurePosixPath(path).name, tag, size)
            for tag, files in sorted(tags.items())
            for path, size in sorted(files.items())
            if "/" in path and size < 1024 and size != newest[path] and tag != "v0.7"
        ]
        return sample_instances(files_of_releases, rng)

    def milestones(self, p: Sized) -> Milestones:
        release = PagePattern("code", r"/browser(/.*)?", {"rev": p.release})
        folder = PagePattern("code", rf"/browser/{re.escape(p.folder)}(/.*)?")
        file = PagePattern("code", rf"/browser/{re.escape(p.path)}")
        return (
            Goal("The source code is browsed", visited(BROWSER)),
            Goal(f"The release {p.release} is chosen", any_of(visited(release), visited(file))),
            Goal(f"The folder {p.folder} is open", visited(folder)),
            Goal(f"The folder or the file {p.path} is shown", shows(folder)),
        )

    def outcome(self, p: Sized) -> Outcome:
        return Outcome(answer=Number(p.size))

    async def solve(self, driver: PageDriver, p: Sized) -> str | None:
        await driver.click("link", "Browse Source")
        await driver.select("combobox", "Visit:", p.release)
        await driver.click("link", p.folder)
        return await driver.read(rf'link "{re.escape(p.file)}"(?: title "[^"]*")? \| (\d+) bytes')


@dataclass(frozen=True)
class Commit(Params):
    rev: str
    message: str
    author: str


class OpenCommit(Template[Commit]):
    name = "code-open-commit"
    sites = ("code",)
    category = "code"
    kind = "navigation"
    difficulty = "easy"
    wordings = (
        'Open the changeset with the message "{message}".',
        'Show me the commit "{message}" of {author}, with its changes.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Commit]:
        rows = golden.database("code").rows(
            "SELECT rev, message, author FROM revision WHERE message GLOB '*: *' AND message IN"
            " (SELECT message FROM revision GROUP BY 1 HAVING count(*) = 1) ORDER BY time"
        )
        return [Commit(rev, message.strip(), author.partition(" <")[0]) for rev, message, author in rows]

    def milestones(self, p: Commit) -> Milestones:
        lists = PagePattern("code", r"/search|/timeline|/log(/.*)?|/browser(/.*)?")
        page = self._page(p)
        return (
            Goal("Commits are searched or listed", visited(lists)),
            Goal("A changeset is opened", visited(PagePattern("code", r"/changeset/.*"))),
            Goal(f'The changeset "{p.message}" is opened', visited(page)),
            Goal(f'The changeset "{p.message}" is shown', shows(page)),
        )

    def outcome(self, p: Commit) -> Outcome:
        return Outcome(page=self._page(p))

    async def solve(self, driver: PageDriver, p: Commit) -> str | None:
        await driver.type("textbox", "Search:", p.message, enter=True)
        await driver.click("link", re.compile(rf"^\[[0-9a-f]+\]: {re.escape(p.message)}"))
        return None

    def _page(self, p: Commit) -> PagePattern:
        return PagePattern("code", rf"/changeset/{p.rev[:7]}[0-9a-f]*(/)?")


TEMPLATES = (FileAdded(), FileSize(), OpenCommit())
