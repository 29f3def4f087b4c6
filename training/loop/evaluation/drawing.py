"""Draws the milestone heat maps of phases side by side, as one self-contained SVG or HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from markupsafe import Markup

from agent.inspection.report import charts
from agent.inspection.report.page_template import render_page
from agent.inspection.report.svg import element, text
from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput
from judges.statistics import Estimate
from judges.subgoal_quality import HeatMap
from training.loop.evaluation.summary import Evaluation

FORMATS: Final = (".svg", ".html")
_HERE: Final = Path(__file__).parent
_ACROSS: Final = 3
"""Maps per row of the sheet."""
_WIDE, _GAP, _HEAD, _ROW, _FOOT = 440, 28, 52, 28, 40
"""Pixels: width of a map of :func:`charts.heat`, gap between maps, header, height of a milestone, footer."""


class Phase(NamedTuple):
    """One phase of the sheet."""

    name: str
    evaluation: Evaluation


class Panel(NamedTuple):
    """A row of the table below the maps, formatted."""

    name: str
    episodes: int
    success: str
    stuck: str
    diagonal: str
    order: str
    all_done: str


def check_target(target: Path, formats: Sequence[str] = FORMATS) -> None:
    """Raises BadInput where *target* has none of the *formats* or its folder does not exist."""
    if target.suffix.lower() not in formats:
        raise BadInput(f"--out {str(target)!r} must end in {' or '.join(formats)}")
    if not target.parent.is_dir():
        raise BadInput(f"--out {str(target)!r}: there is no folder {str(target.parent)!r}")


def write_phases(phases: Sequence[Phase], target: Path) -> None:
    """Writes the sheet to *target* atomically. Raises BadInput where it cannot be written."""
    check_target(target)
    style = (_HERE / "phases.css").read_text("utf-8")
    write_picture(str(sheet(phases, style)) if target.suffix.lower() == ".svg" else page(phases, style), target)


def write_picture(content: str, target: Path) -> None:
    """Writes *content* to *target* atomically. Raises BadInput where it cannot be written."""
    try:
        write_atomically(target, content + "\n")
    except OSError as error:
        raise BadInput(f"--out {str(target)!r} cannot be written: {error.strerror}") from None


def sheet(phases: Sequence[Phase], style: str = "") -> Markup:
    """All maps over the same steps, three per row, as one picture; *style* is embedded for a standalone file.

    Steps after the last change of any map are not drawn, because one long episode would fill the sheet.
    """
    maps = [phase.evaluation.milestones.heat for phase in phases]
    columns = 2 + max((row.index(row[-1]) for map_ in maps for row in map_.rows), default=0)
    high = _HEAD + _ROW * max((len(map_.rows) for map_ in maps), default=0) + _FOOT
    across = min(len(phases), _ACROSS)
    wide, deep = across * (_WIDE + _GAP) + _GAP, -(-len(phases) // _ACROSS) * high + _GAP
    panels = [
        element(
            "g",
            *_panel(phase, over_steps(map_, columns)),
            transform=f"translate({_GAP + place % _ACROSS * (_WIDE + _GAP)} {_GAP + place // _ACROSS * high})",
        )
        for place, (phase, map_) in enumerate(zip(phases, maps, strict=True))
    ]
    return element(
        "svg",
        element("title", "P(milestone k done by step t), by phase"),
        *([element("style", Markup(style))] if style else []),
        element("rect", width=wide, height=deep, class_="paper"),
        *panels,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {wide} {deep}",
        width=wide,
        height=deep,
        role="img",
        class_="phases",
    )


def page(phases: Sequence[Phase], style: str) -> str:
    """The HTML page: the sheet with a table of its numbers."""
    panels = [panel(phase) for phase in phases]
    return render_page(_HERE / "phases.html.j2", style, sheet=sheet(phases), panels=panels)


def panel(phase: Phase) -> Panel:
    """The formatted numbers of one phase."""
    evaluation, progress = phase.evaluation, phase.evaluation.milestones
    stuck = next(failure for failure in evaluation.failures if failure.category == "stuck_midway")
    return Panel(
        name=phase.name,
        episodes=progress.traces,
        success=percent(evaluation.total.success, 0),
        stuck=percent(stuck.of_judged, 0),
        diagonal=percent(progress.diagonal, 0),
        order="-" if progress.order is None else f"{progress.order:+.2f}",
        all_done=percent(progress.all_done, 0),
    )


def over_steps(map_: HeatMap, columns: int) -> HeatMap:
    """The same map over *columns* steps: finished episodes keep their milestones, so the last column is repeated."""
    rows = tuple((row + row[-1:] * (columns - len(row)))[:columns] for row in map_.rows)
    return map_.model_copy(update={"rows": rows})


def percent(estimate: Estimate, digits: int = 1) -> str:
    """A rate with its interval, in percent; `-` if it is undefined."""
    if estimate.value is None:
        return "-"
    value = f"{estimate.value:.{digits}%}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} ({100 * estimate.low:.0f}-{100 * estimate.high:.0f})"


def _panel(phase: Phase, map_: HeatMap) -> list[Markup]:
    numbers = panel(phase)
    name = text(0, 14, phase.name, class_="name")
    if not map_.rows:
        return [name, text(0, 32, "no episode has milestones", class_="numbers")]
    line = f"diagonal {numbers.diagonal} · all done {numbers.all_done} · {numbers.episodes} episodes"
    picture = charts.heat(map_, label=f"milestones by step, {phase.name}")
    return [
        name,
        text(0, 32, line, class_="numbers"),
        element("g", picture, transform=f"translate(0 {_HEAD - 8})"),
    ]
