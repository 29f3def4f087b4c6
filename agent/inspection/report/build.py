"""Writes traces into one HTML file that works offline.

Text from pages and models is escaped by Jinja2 or by :mod:`agent.inspection.report.svg`. A content-security policy also
allows only the hashes of the report's own script and style, and no inline style.

Episodes are written one at a time, each into a `<template>`. A browser lays out a template and decodes its pictures
when it is opened, so memory stays constant here and in the browser. The overview is written last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import jinja2

from agent.episode.refused_origins import name_of
from agent.inspection.critic_values import read_critic_values
from agent.inspection.report.charts import CATEGORIES
from agent.inspection.report.episodes import Cut, EpisodeMaker, Material
from agent.inspection.report.overview import Overview
from agent.inspection.report.page_template import csp_hash
from agent.inspection.report.pictures import AUTO_STEPS, Gallery, Screenshots
from agent.inspection.report.timeline import timeline
from agent.run.discover_traces import EpisodeFile, discover_traces
from envs.core.atomic_write import replacing
from envs.core.errors import BadInput, NotWritten, TraceError
from envs.core.trace_store import Trace, edited_message, read_summary
from envs.security.blocked_requests import BlockedOrigin, merge_blocked_origins
from judges.analysis import Analysis
from judges.trace_ratings import Observed, observe

_HERE = Path(__file__).parent
_TEXT_BUDGET: Final = 24_000_000
"""Target size of a report's page texts in characters, and the same for prompts."""
_LEAST_TEXT, _MOST_TEXT = 800, 8_000

Key = tuple[str, str]
"""Run id and episode id."""


class Report(NamedTuple):
    """The result of :func:`write_report`."""

    path: Path
    episodes: int
    bytes: int
    pictures: int
    picture_bytes: int
    pictures_left_out: int
    problems: tuple[str, ...]
    """One line per unreadable trace or blob; the report lists them too."""


@dataclass(frozen=True, slots=True)
class _Catalog:
    """Information from headers and footers, collected before traces are read."""

    files: tuple[EpisodeFile, ...]
    steps: int
    successes: Mapping[str, Sequence[EpisodeFile]]
    """By task id, fewest steps first."""


def write_report(
    runs: Sequence[Path],
    *,
    references: Sequence[Path] = (),
    out: Path | None = None,
    screenshots: Screenshots = "auto",
    analyses: Mapping[Key, Analysis] | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Report:
    """Writes one HTML file for the episodes of *runs*.

    A failure is shown next to a success of the same task from *runs* or *references*. *on_progress* is called with the
    number of episodes written. *out* defaults to `report.html` in the run's folder, or in the current folder for
    several runs. Unreadable traces and blobs are listed in the report. Raises BadInput if there is no readable trace,
    or *out* cannot be written, NotWritten if the disk refuses it, and OSError if another file cannot be read. The file
    is replaced atomically.
    """
    catalog = _catalog(discover_traces(runs), discover_traces(references) if references else ())
    target = out or _default_target(runs)
    writer = _ReportWriter(catalog, screenshots, analyses or {}, on_progress)
    _write(target, writer.chunks())
    gallery = writer.gallery
    return Report(
        path=target,
        episodes=len(writer.overview.rows),
        bytes=target.stat().st_size,
        pictures=gallery.count,
        picture_bytes=gallery.bytes,
        pictures_left_out=gallery.left_out,
        problems=tuple(writer.problems),
    )


class _ReportWriter:
    """Writes one report."""

    def __init__(
        self,
        catalog: _Catalog,
        screenshots: Screenshots,
        analyses: Mapping[Key, Analysis],
        on_progress: Callable[[int], None] | None,
    ) -> None:
        self.overview = Overview()
        self.gallery = Gallery()
        self.problems: list[str] = []
        self.refused: tuple[BlockedOrigin, ...] = ()
        """Refused requests of all episodes, by origin."""
        self._catalog = catalog
        self._analyses = analyses
        self._on_progress = on_progress
        every = screenshots == "all" or (screenshots == "auto" and catalog.steps <= AUTO_STEPS)
        text = min(max(_TEXT_BUDGET // max(catalog.steps, 1), _LEAST_TEXT), _MOST_TEXT)
        self._text_chars = text
        self._maker = EpisodeMaker(Cut(text, every, screenshots == "none"), self.gallery)
        self._critics = lru_cache(maxsize=8)(read_critic_values)
        self._reference = lru_cache(maxsize=8)(self._read_reference)
        loader = jinja2.FileSystemLoader(_HERE)
        self._templates = jinja2.Environment(
            loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self._templates.globals.update(timeline=timeline, categories=CATEGORIES, origin_name=name_of)  # pyright: ignore[reportArgumentType]

    def chunks(self) -> Iterator[bytes]:
        """Yields the file's content in parts. Raises BadInput at the end if no trace could be read, and OSError."""
        style, script = _asset("report.css"), _asset("report.js")
        head = self._templates.get_template("head.html.j2")
        yield head.render(style=style, style_hash=csp_hash(style), script_hash=csp_hash(script)).encode()
        episode = self._templates.get_template("episode.html.j2")
        for number, material in enumerate(self._materials(), 1):
            view = self._maker.view(material)
            self.overview.add(view.row, _observed(material.trace))
            self.refused = merge_blocked_origins((*self.refused, *view.refused))
            yield episode.render(e=view).encode()
            if self._on_progress is not None:
                self._on_progress(number)
        self.problems += self._maker.problems
        shell = self._templates.get_template("shell.html.j2")
        if not self.overview.rows:
            raise BadInput(f"no trace could be read: {self.problems[0]}")
        for chunk in shell.generate(**self._shell_variables(), script=script):
            yield chunk.encode()

    def _shell_variables(self) -> dict[str, object]:
        """The variables of the shell template."""
        rows = self.overview.rows
        runs = list(dict.fromkeys(row.run for row in rows))
        return {
            "title": f"Run {runs[0]}" if len(runs) == 1 else f"{len(runs)} runs",
            "runs": runs,
            "policies": list(dict.fromkeys(row.policy for row in rows)),
            "sites": sorted({row.site for row in rows}),
            "outcomes": [o for o in ("success", "failure", "broken", "unjudged", "unfinished") if _has(rows, o)],
            "failures": [name for name in CATEGORIES if any(row.failure == name for row in rows)],
            "rows": rows,
            "tiles": self.overview.tiles(),
            "charts": self.overview.charts(),
            "tasks": self.overview.tasks(),
            "refused": self.refused,
            "problems": self.problems[:200],
            "problems_total": len(self.problems),
            "gallery": self.gallery,
            "text_chars": self._text_chars,
        }

    def _materials(self) -> Iterator[Material]:
        for number, file in enumerate(self._catalog.files, 1):
            try:
                trace = file.read()
            except TraceError as error:
                self.problems.append(str(error))
                continue
            if trace.seal.edited is not None:
                self.problems.append(edited_message(file.path, trace.seal.edited))
            analysis = self._analyses.get((trace.header.run_id, trace.header.episode_id))
            success = self._closest_success(file, trace, analysis)
            values = self._critics(file.folder).episodes.get(trace.header.episode_id, ())
            yield Material(f"e{number}", trace, file.blobs, analysis, success, values)

    def _closest_success(self, file: EpisodeFile, trace: Trace, analysis: Analysis | None) -> Trace | None:
        """The success to show next to a failure: the one that it was compared with, else the shortest."""
        if trace.footer is None or trace.footer.outcome == "success":
            return None
        known = [
            success for success in self._catalog.successes.get(trace.header.task.id, ()) if success.path != file.path
        ]
        named = analysis.nearest if analysis else None
        for success in sorted(known, key=lambda success: success.path.stem != named):
            reference = self._reference(success.path)
            if reference is not None:
                return reference
        return None

    def _read_reference(self, path: Path) -> Trace | None:
        try:
            return EpisodeFile(path).read()
        except TraceError as error:
            self.problems.append(str(error))
            return None


def _write(target: Path, chunks: Iterable[bytes]) -> None:
    """Replaces *target* by *chunks*. Raises BadInput if it cannot be written, NotWritten if the disk refuses it, and
    the errors of *chunks* unchanged."""
    unread: list[OSError] = []
    try:
        with replacing(target) as part, part.open("wb") as file:
            file.writelines(_noting_errors(chunks, unread))
    except (OSError, NotWritten) as error:
        if unread:  # `replacing` turns a failing disk into NotWritten, also while another file is read
            raise unread[0] from unread[0].__cause__
        if isinstance(error, NotWritten):
            raise
        raise BadInput(f"--out {str(target)!r} cannot be written: {error.strerror}") from error


def _noting_errors(chunks: Iterable[bytes], unread: list[OSError]) -> Iterator[bytes]:
    """Adds an error of *chunks* to *unread*: it is about a file that is read, not about the one that is written."""
    try:
        yield from chunks
    except OSError as error:
        unread.append(error)
        raise


def _catalog(files: Sequence[EpisodeFile], references: Sequence[EpisodeFile]) -> _Catalog:
    """Reads headers and footers; unreadable files are reported later, when their traces are read."""
    successes: dict[str, list[tuple[int, str, EpisodeFile]]] = {}
    steps = 0
    own = {file.path.resolve() for file in files}
    for file in (*files, *references):
        try:
            header, footer = read_summary(file.path)
        except TraceError:
            continue
        if footer is not None and file.path.resolve() in own:
            steps += footer.totals.steps
        if footer is not None and footer.outcome == "success":
            successes.setdefault(header.task.id, []).append((footer.totals.steps, str(file.path), file))
    ordered = {task: tuple(file for *_, file in sorted(known)) for task, known in successes.items()}
    return _Catalog(tuple(files), steps, ordered)


def _default_target(runs: Sequence[Path]) -> Path:
    if len(runs) == 1 and runs[0].is_dir():
        return runs[0] / "report.html"
    return Path("report.html")


def _observed(trace: Trace) -> Observed | None:
    seen = observe(trace, "rater")
    return seen if isinstance(seen, Observed) else None


def _has(rows: Sequence[object], outcome: str) -> bool:
    return any(getattr(row, "outcome", None) == outcome for row in rows)


def _asset(name: str) -> str:
    return "\n" + (_HERE / name).read_text("utf-8")
