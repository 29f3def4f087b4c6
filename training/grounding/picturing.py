"""Draws predictions: the plot of offsets as SVG, and a report in which point, box and tiers lie on each screenshot."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from agent.inspection.report.page_template import render_page
from agent.inspection.report.svg import drawing, element, line, text
from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput
from models.vision.coordinates import Size
from training.grounding.answering import asked_point
from training.grounding.scores import GroundingScore, GroupScore, Scored
from training.grpo.examples import Example
from training.grpo.rewards import ChoiceTarget
from training.grpo.rewards.geometry import SIGMA, Box, Point
from training.loop.evaluation.drawing import percent

_HERE: Final = Path(__file__).parent
_SIDE, _EDGE, _MOST = 420.0, 30.0, 3.0
"""Pixels of the plot's sides and margins; offsets in half sizes of the box that it shows."""
_TIERS: Final = (3 * SIGMA, 2 * SIGMA, SIGMA)
"""Radii of SSL's zones in half sizes of the box (App. B.1), the outermost first."""
PICTURE_SIDE: Final = 1_000
"""Longest side in pixels of a screenshot in the report."""


class Row(NamedTuple):
    """One row of the report's table, formatted."""

    name: str
    examples: int
    accuracy: str
    clustered: str


class Card(NamedTuple):
    """One example of the report."""

    title: str
    correct: bool
    lines: tuple[str, ...]
    picture: Markup


def write_offsets(scored: Sequence[Scored], target: Path) -> None:
    """Writes the plot of offsets to *target*, an SVG file."""
    style = Markup((_HERE / "report.css").read_text("utf-8"))
    write_atomically(target, str(_with_style(offset_plot(scored), style)) + "\n")


def offset_plot(scored: Sequence[Scored]) -> Markup:
    """Where points lie around the centre of their box, in half sizes of it, with the box and SSL's zones. Points that
    are farther away are drawn at the edge."""
    offsets = [(each.offset, each.correct) for each in scored]
    known = [(offset, correct) for offset, correct in offsets if offset is not None]
    return drawing(
        _SIDE, _SIDE + 24, _plot(known, len(scored) - len(known)), label="Offsets from the centre", class_="offsets"
    )


def _plot(known: Sequence[tuple[tuple[float, float], bool]], without: int) -> Iterator[Markup]:
    middle, unit = _SIDE / 2, (_SIDE / 2 - _EDGE) / _MOST
    yield element("rect", width=_SIDE, height=_SIDE + 24, class_="paper")
    yield line(_EDGE, middle, _SIDE - _EDGE, middle, class_="grid")
    yield line(middle, _EDGE, middle, _SIDE - _EDGE, class_="grid")
    for radius in _TIERS:
        yield element("circle", cx=middle, cy=middle, r=radius * unit, class_="tier")
    yield element("rect", x=middle - unit, y=middle - unit, width=2 * unit, height=2 * unit, class_="box")
    outside = 0
    for (across, down), correct in known:
        outside += max(abs(across), abs(down)) > _MOST
        x, y = (middle + max(-_MOST, min(_MOST, each)) * unit for each in (across, down))
        yield element("circle", cx=x, cy=y, r=3, class_="hit" if correct else "miss")
    yield text(_EDGE, 20, "offset from the centre, in half sizes of the box", class_="tick")
    note = f"{len(known)} points, {outside} of them drawn at the edge; {without} answers have none"
    yield text(_EDGE, _SIDE + 8, note, class_="tick")


def write_report(scored: Sequence[Scored], score: GroundingScore, target: Path, shown: int) -> None:
    """Writes the report with the first *shown* examples, wrong ones first. Raises BadInput for a damaged picture."""
    ranked = sorted(scored, key=lambda each: each.correct)[:shown]
    page = render_report(
        _HERE / "report.html.j2",
        score=score,
        tokens=tokens_in_words(score) if score.tokens else "",
        rows=rows_of(score),
        plot=offset_plot(scored),
        cards=[_card(each) for each in ranked],
        left_out=len(scored) - len(ranked),
    )
    write_atomically(target, page)


def render_report(template: Path, **values: Any) -> str:
    """The page of *template* with the style of these reports and *values*. Its policy allows this style, and pictures
    that are in the page, alone."""
    return render_page(template, (_HERE / "report.css").read_text("utf-8"), **values)


def rows_of(score: GroundingScore) -> list[Row]:
    """Accuracy of all examples and of each group."""
    everything = Row("all", score.examples, percent(score.accuracy), percent(score.clustered))
    return [everything, *(_row(group) for group in score.groups)]


def tokens_in_words(score: GroundingScore) -> str:
    """Mean tokens of answers, and of their thoughts where they are known."""
    thought = score.thought_tokens.value
    return f"{score.tokens:.1f} tokens an answer" + ("" if thought is None else f", {thought:.1f} of them thought")


def _row(group: GroupScore) -> Row:
    return Row(f"{group.by}: {group.name}", group.examples, percent(group.accuracy), percent(group.clustered))


def _card(scored: Scored) -> Card:
    prediction, facts = scored.prediction, scored.example.facts
    where = "no point: the answer " + (prediction.problem or "names no mark")
    if scored.point is not None:
        where = f"point {scored.point.x:.0f}, {scored.point.y:.0f} · tier {scored.tier:g}"
    kind = "" if facts is None else " · ".join(filter(None, (facts.element, facts.asks, facts.template)))
    lines = tuple(filter(None, (where, kind, scored.example.name, prediction.answer[:300])))
    return Card(asked_point(scored.example).subject, scored.correct, lines, _picture(scored))


def _picture(scored: Scored) -> Markup:
    """The screenshot with box, zones, other controls that resemble the right one, and the point."""
    return shot(scored.example, lambda size: _marks(scored, size))


def _marks(scored: Scored, size: tuple[int, int]) -> Iterator[Markup]:
    box, centre = scored.box, scored.box.centre
    for left, top, right, bottom in _others(scored):
        yield element("rect", x=left, y=top, width=right - left, height=bottom - top, class_="other")
    yield rectangle(box)
    for number, radius in enumerate(_TIERS):
        sides = {"rx": radius * box.width / 2, "ry": radius * box.height / 2}
        yield element("ellipse", cx=centre.x, cy=centre.y, **sides, class_=f"tier t{number}")
    if scored.point is not None:
        x, y = scored.point
        yield line(x, y, centre.x, centre.y, class_="way")
        yield dot(scored.point, size, right=scored.correct)


def rectangle(box: Box) -> Markup:
    """The right box."""
    return element("rect", x=box.left, y=box.top, width=box.width, height=box.height, class_="box")


def dot(point: Point, size: tuple[int, int], *, right: bool) -> Markup:
    """An answered point on a picture of *size*."""
    return element("circle", cx=point.x, cy=point.y, r=max(size) / 160, class_="hit" if right else "miss")


def shot(example: Example, marks: Callable[[tuple[int, int]], Iterable[Markup]], *, above: float = 0.0) -> Markup:
    """The screenshot of *example* with *marks* on it, which are called with its width and height in pixels, and are in
    these pixels. *above*: empty space over it, as a share of its width. Raises BadInput for a damaged picture."""
    data, size = _shrunk(example)
    source = f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"
    strip = above * size[0]
    return element(
        "svg",
        element("image", href=source, width=size[0], height=size[1]),
        *marks(size),
        viewBox=f"0 {round(-strip)} {size[0]} {size[1] + round(strip)}",
        class_="shot",
        role="img",
        xmlns="http://www.w3.org/2000/svg",
    )


def _others(scored: Scored) -> Iterator[tuple[float, float, float, float]]:
    """Other elements that resemble the right one, or are marked beside it."""
    facts, target = scored.example.facts, scored.example.target
    if facts is not None:
        yield from facts.distractors
    if isinstance(target, ChoiceTarget):
        yield from (box for place, box in enumerate(target.boxes) if place != target.right)


def _shrunk(example: Example) -> tuple[bytes, tuple[int, int]]:
    """The screenshot as a JPEG of at most PICTURE_SIDE pixels, and its full size."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(example.picture or b"")) as opened:
            size = opened.size
            picture = opened.convert("RGB")
    except (OSError, ValueError) as error:
        raise BadInput(f"example {example.name!r}: its image cannot be read: {error}") from None
    picture.thumbnail(Size(PICTURE_SIDE, PICTURE_SIDE))
    out = io.BytesIO()
    picture.save(out, format="JPEG", quality=70)
    return out.getvalue(), size


def _with_style(picture: Markup, style: Markup) -> Markup:
    """A standalone SVG file."""
    head, _, rest = picture.partition(">")
    return Markup(f'{head} xmlns="http://www.w3.org/2000/svg">') + element("style", style) + Markup(rest)
