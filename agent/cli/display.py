"""Shows the progress of a run: a live table on a terminal, one line per episode elsewhere."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from agent.cli.output import print_problem
from agent.cli.tables import Column, FittedTable
from agent.cli.terminal import OutputClosed, printable
from agent.cli.wait_notices import Notices
from agent.config import Limits
from agent.episode.refused_origins import kinds_of, name_of, news
from agent.progress import (
    EpisodeEnded,
    EpisodeStarted,
    Event,
    ModelWaits,
    PlanMade,
    RequestsRefused,
    RunEnded,
    RunStarted,
    StepDone,
)
from agent.results import EpisodeResult, RunResult
from agent.run.limits import ending_named
from envs.core.trace import LIMITS
from envs.security.blocked_requests import BlockedOrigin

REFUSED_LINES = 10

WAIT_NOTICE_AFTER_S = 3.0
"""Seconds of waiting for a model after which a line is printed."""
_NARROW = 72
"""Terminal width below which the live table omits milestone texts."""
_STYLE = {"success": "green", "failure": "red", "broken": "yellow", "unjudged": "cyan"}


@dataclass(slots=True)
class _Row:
    """The current state of one worker."""

    task: str = ""
    step: int = 0
    milestones: tuple[str, ...] = ()
    z: tuple[bool, ...] = ()
    milestone: str = ""
    words: str = ""


@dataclass(slots=True)
class _Board:
    rows: dict[int, _Row] = field(default_factory=dict[int, "_Row"])
    worker_of: dict[str, int] = field(default_factory=dict[str, int])
    waiting: set[str] = field(default_factory=set[str])
    """Episodes for which a wait for their model was printed."""
    limits: Limits | None = None
    wins: int = 0
    ended: int = 0
    folder: Path | None = None
    """Folder of the run; None before it starts and after it ended."""
    refused: list[BlockedOrigin] = field(default_factory=list[BlockedOrigin])
    """Refused origins that were shown."""


class TimeLeft(ProgressColumn):
    """Estimates the remaining time from the mean pace since the bar began.

    rich's own column uses the last 30 seconds only and has no estimate for longer steps. The task's field `begun` holds
    the number of steps at the start."""

    def render(self, task: Task) -> Text:
        done = task.completed - task.fields["begun"]
        if task.total is None or task.elapsed is None or done <= 0:
            return Text("unknown yet", style="progress.remaining")
        left_s = task.elapsed / done * (task.total - task.completed)
        return Text(f"{timedelta(seconds=round(left_s))} left", style="progress.remaining")


class RunDisplay:
    """A listener for :mod:`agent.progress` events. Use it as a context manager around the run.

    Console markup in text from pages and models has no effect.
    """

    def __init__(self, console: Console, notices: Console | None = None) -> None:
        """*notices* is the console for wait notices (libraries, models, browser, sites); None shows none."""
        self._console = console
        self._notices = Notices(notices, drawn_elsewhere=console.is_terminal)
        self._spinner = Spinner("dots")
        self._board = _Board()
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TimeLeft(),
            console=console,
        )
        self._bar = self._progress.add_task("episodes", total=None, note="", begun=0, visible=False)
        self._stage = self._progress.add_task("", total=None, note="", begun=0, visible=False)
        self._stage_name = ""
        self._live: Live | None = None
        self._held: list[Text] | None = None
        """Lines printed while the display is paused; None while it is not."""

    def __enter__(self) -> Self:
        self._notices.__enter__()
        self._draw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._erase()
        self._notices.__exit__(kind, error, trace)
        if isinstance(error, OutputClosed) and self._board.folder is not None:
            print_problem(f"the output was closed; continue with: mira resume {self._board.folder}")

    @contextmanager
    def paused(self) -> Generator[Console]:
        """Yields the console for a question to a person; nothing else is drawn or printed on it meanwhile."""
        self._held, was_drawn = [], self._live is not None
        self._notices.clear()
        self._erase()
        try:
            yield self._console
        finally:
            held, self._held = self._held, None
            for line in held:
                self._print(line)
            if was_drawn:
                self._draw()

    def _draw(self) -> None:
        """Starts a new live table on a terminal; a reused one would erase questions asked meanwhile."""
        if self._console.is_terminal:
            live = Live(get_renderable=self.board, console=self._console, refresh_per_second=8, transient=True)
            live.start(refresh=True)
            self._live = live

    def _erase(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _print(self, line: Text) -> None:
        if self._held is None:
            self._console.print(line, highlight=False, soft_wrap=True)
        else:
            self._held.append(line)

    def __call__(self, event: Event) -> None:
        self._notices.clear()
        match event:
            case RunStarted():
                self._board = _Board(limits=event.limits, folder=event.folder)
                self._progress.reset(
                    self._bar,
                    total=event.planned,
                    completed=event.finished,
                    visible=True,
                    note="",
                    begun=event.finished,
                )
            case EpisodeStarted():
                self._board.worker_of[event.episode_id] = event.worker
                self._board.rows[event.worker] = _Row(f"{event.task.name}/{event.task.seed}", event.resumed_at)
            case PlanMade():
                self._row(event.episode_id).milestones = event.milestones
            case StepDone():
                self._step(event)
            case ModelWaits():
                self._waits(event)
            case RequestsRefused():
                self._refused(event)
            case EpisodeEnded():
                self._ended(event)
            case RunEnded():
                self._board.rows.clear()
                self._board.folder = None
                self._progress.update(self._bar, visible=False)

    def _row(self, episode_id: str) -> _Row:
        return self._board.rows.setdefault(self._board.worker_of.get(episode_id, 0), _Row())

    def _step(self, event: StepDone) -> None:
        row = self._row(event.episode_id)
        row.step, row.words, row.z, row.milestone = event.step, event.words, event.z, event.milestone
        self._board.waiting.discard(event.episode_id)
        if event.declined:
            row.words = f"declined: {event.declined}"
            of = f"{row.task} " if len(self._board.rows) > 1 else ""
            self._print(Text(printable(f"  {of}step {event.step} declined: {event.declined}"), "yellow"))
        elif not self._console.is_terminal and self._board.ended == 0 and len(self._board.rows) == 1:
            line = f"  step {event.step}: {event.words}  {event.action}  ({event.status.value})"
            self._print(Text(printable(line)))

    def _waits(self, event: ModelWaits) -> None:
        """Shows the wait in the episode's row at once, and prints one line after WAIT_NOTICE_AFTER_S."""
        self._row(event.episode_id).words = f"waiting for the {event.role}'s model: {event.reason}"
        if event.seconds >= WAIT_NOTICE_AFTER_S and event.episode_id not in self._board.waiting:
            self._board.waiting.add(event.episode_id)
            line = f"  {event.episode_id}: the {event.role}'s model does not answer, retrying for "
            self._print(Text(f"{line}{event.patience_s:.0f} s more: {event.reason}", "yellow"))

    def _refused(self, event: RequestsRefused) -> None:
        """Prints each refused origin once per run, at most REFUSED_LINES of them."""
        board = self._board
        for origin in news(event.blocked, board.refused):
            if len(board.refused) > REFUSED_LINES:
                return
            board.refused.append(origin)
            if len(board.refused) <= REFUSED_LINES:
                allow = f"; to admit it: --allow {origin.allow}" if origin.allow else ""
                line = f"refused   {name_of(origin)} ({kinds_of(origin)}){allow}"
                self._print(Text(line, "yellow"))
            else:
                self._print(Text("refused   further origins: they are listed at the end", "yellow"))

    def _ended(self, event: EpisodeEnded) -> None:
        board, result = self._board, event.result
        board.ended += 1
        board.wins += result.outcome == "success"
        self._progress.update(self._bar, advance=1, note=f"[green]{board.wins} succeeded")
        line = Text.assemble(
            (f"{result.outcome:9}", _STYLE[result.outcome]),
            f" {printable(result.task.id)}  ",
            (f"{result.totals.steps} steps, {result.totals.seconds:.1f} s", "dim"),
        )
        if result.ended_by in LIMITS:
            line.append(f"  ended by {ending_named(result.ended_by, board.limits)}", "dim")
        if result.error:
            line.append(f"  {printable(result.error)}", "yellow")
        self._print(line)

    def learning(self, stage: str, step: int, steps: int, note: str | None, /) -> None:
        """Shows a bar of a training stage: *step* of *steps*, with *note*; it disappears when the stage ends."""
        self._notices.clear()
        if stage != self._stage_name:
            self._stage_name = stage
            self._progress.reset(self._stage, description=stage, total=steps, completed=step, begun=step)
        self._progress.update(self._stage, completed=step, total=steps, note=note or "", visible=step < steps)
        if step >= steps:
            self._stage_name = ""

    def board(self) -> Group | Progress:
        """The live view: one row per worker, the progress bars, and the current wait notice."""
        notice = self._wait_notice()
        if not self._board.rows:
            return Group(self._progress, *notice) if notice else self._progress
        table = Table(box=None, pad_edge=False, expand=True, header_style="dim")
        table.add_column("episode", no_wrap=True, ratio=3)
        table.add_column("step", justify="right", width=4)
        narrow = self._console.width < _NARROW
        table.add_column("milestones", no_wrap=True, ratio=None if narrow else 3)
        table.add_column("last action", no_wrap=True, ratio=5)
        for worker in sorted(self._board.rows):
            row = self._board.rows[worker]
            dots = "".join("●" if done else "○" for done in row.z)
            milestones = dots if narrow else f"{dots} {row.milestone}".strip()
            cells = (row.task, str(row.step), milestones, row.words)
            table.add_row(*(Text(printable(cell)) for cell in cells))
        return Group(table, self._progress, *notice)

    def _wait_notice(self) -> tuple[Spinner, ...]:
        if not self._notices.text:
            return ()
        self._spinner.update(text=Text(self._notices.text))
        return (self._spinner,)


def result_table(result: RunResult) -> FittedTable:
    """Success and mean steps, seconds and tokens by task, with a row of totals."""
    table = FittedTable(
        Column("task"),
        Column("success", right=True),
        Column("steps", right=True, drop=2),
        Column("seconds", right=True, drop=3),
        Column("tokens", right=True, drop=4),
        Column("milestones", right=True, drop=1),
        title=f"run {result.run_id}",
    )
    names = dict.fromkeys(e.task.name for e in result.episodes)
    for name in names:
        _add_row(table, name, [e for e in result.episodes if e.task.name == name])
    if len(names) > 1:
        table.section()
        _add_row(table, "all", list(result.episodes))
    return table


def _add_row(table: FittedTable, name: str, rows: list[EpisodeResult]) -> None:
    wins = sum(e.outcome == "success" for e in rows)
    n = max(1, len(rows))
    reached = sum(sum(e.z) for e in rows)
    planned = sum(len(e.z) for e in rows)
    judged = sum(e.outcome != "unjudged" for e in rows)
    style = "dim" if not judged else "green" if wins == judged else "yellow" if wins else "red"
    table.row(
        name,
        Text(f"{wins}/{judged}" if judged else "unjudged", style),
        f"{sum(e.totals.steps for e in rows) / n:.1f}",
        f"{sum(e.totals.seconds for e in rows) / n:.2f}",
        f"{sum(e.totals.tokens for e in rows) / n:.0f}",
        f"{reached}/{planned}" if planned else "-",
    )
