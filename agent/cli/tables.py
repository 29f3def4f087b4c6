"""Tables that fit the terminal, or the 80 columns of a pipe.

If a table is too wide, its least important columns are omitted, in the order that it declares, and named below it. The
other columns are wrapped. `--wide` (:attr:`agent.cli.terminal.Terminal.wide`) shows every column at full width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

from agent.cli.terminal import Terminal, printable

GAP: Final = 2
"""Blanks between two columns."""
NARROWEST: Final = 6
"""Minimum width of a column, however narrow the terminal is."""
_UNLIMITED: Final = 1_000_000

Cell = str | Text
"""A string becomes one line. A Text may have several lines and styles."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a :class:`FittedTable`."""

    name: str
    """The header; may have several lines."""
    right: bool = False
    """Right-aligned, for numbers."""
    drop: int = 0
    """Order in which columns are omitted if the table is too wide, the highest first; 0: never omitted."""
    wrap: int = 0
    """Minimum width when wrapping header and cells; 0: no wrapping."""
    lines: int = 0
    """Maximum lines of a wrapped cell; a cut cell ends with `…`. 0: no maximum."""


class FittedTable:
    """A table for a rich console. Control characters in cells are replaced, because cells may contain page text."""

    def __init__(self, *columns: Column, title: str = "") -> None:
        self.columns = columns
        self.title = printable(title)
        self._rows: list[tuple[Cell, ...] | None] = []
        """None is a rule."""

    def row(self, *cells: Cell) -> None:
        """Adds a row, one cell for each column."""
        assert len(cells) == len(self.columns), f"{len(cells)} cells for {len(self.columns)} columns"
        self._rows.append(tuple(map(_clean, cells)))

    def section(self) -> None:
        """Adds a rule below the last row."""
        self._rows.append(None)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = isinstance(console, Terminal) and console.wide
        widths = self._fit(_UNLIMITED if wide else options.max_width)
        layout = _Layout(console, [(index, self.columns[index], width) for index, width in widths.items()], wide)
        rule = Segment(("-" if options.ascii_only else "─") * layout.width, console.get_style("dim"))
        if self.title:
            yield Text(f"\n{self.title}", "italic")
        yield from layout.row([Text(column.name) for column in self.columns], "bold", header=True)
        for cells in (None, *self._rows):
            yield from (rule, Segment.line()) if cells is None else layout.row(cells)
        if len(widths) < len(self.columns):
            names = (" ".join(column.name.split()) for index, column in enumerate(self.columns) if index not in widths)
            yield Text(f"omitted for width: {', '.join(names)} (--wide shows every column)", "dim")

    def _fit(self, room: int) -> dict[int, int]:
        """The width of each shown column, by its index."""
        natural = self._natural_widths()
        least = [
            min(width, column.wrap) if column.wrap else width
            for width, column in zip(natural, self.columns, strict=True)
        ]
        shown = list(range(len(self.columns)))
        while _total(least[index] for index in shown) > room:
            droppable = [index for index in shown if self.columns[index].drop]
            if not droppable:
                break
            shown.remove(max(droppable, key=lambda index: self.columns[index].drop))
        widths = {index: least[index] for index in shown}
        _squeeze(widths, room)
        _widen(widths, natural, room)
        return widths

    def _natural_widths(self) -> list[int]:
        widths = [_natural_width(Text(column.name)) for column in self.columns]
        for cells in self._rows:
            for index, cell in enumerate(cells or ()):
                widths[index] = max(widths[index], _natural_width(cell))
        return widths


@dataclass(frozen=True, slots=True)
class _Layout:
    """Renders rows at given column widths."""

    console: Console
    columns: Sequence[tuple[int, Column, int]]
    """Index of the cell in a row, column, width."""
    wide: bool

    @property
    def width(self) -> int:
        return _total(width for _, _, width in self.columns)

    def row(self, cells: Sequence[Cell], style: str = "", *, header: bool = False) -> Iterator[Segment]:
        """Renders one row; in a *header*, shorter cells are bottom-aligned."""
        blocks = [self._lines(cells[index], column, width) for index, column, width in self.columns]
        height = max(map(len, blocks))
        empty = [[Text()] * (height - len(block)) for block in blocks]
        padded = [[*above, *block] if header else [*block, *above] for block, above in zip(blocks, empty, strict=True)]
        for line in zip(*padded, strict=True):
            yield from self._line(line, style)

    def _line(self, line: Sequence[Text], style: str) -> Iterator[Segment]:
        """Renders one line of a row, without trailing blanks."""
        row = Text(end="")
        for text, (index, column, width) in zip(line, self.columns, strict=True):
            blanks = " " * (width - text.cell_len)
            before, after = (blanks, "") if column.right else ("", blanks)
            row.append(before if index == self.columns[0][0] else " " * GAP + before).append_text(text).append(after)
        row.rstrip()
        row.stylize(style)
        yield from row.render(self.console)
        yield Segment.line()

    def _lines(self, cell: Cell, column: Column, width: int) -> list[Text]:
        text = cell if isinstance(cell, Text) else Text(cell)
        if _natural_width(cell) <= width:
            return list(text.split("\n", allow_blank=True))
        lines = list(text.wrap(self.console, width, overflow="fold"))
        for line in lines:
            line.rstrip()
        if self.wide or not column.lines or len(lines) <= column.lines:
            return lines
        last = set_cell_size(lines[column.lines - 1].plain, width - 1).rstrip()
        return [*lines[: column.lines - 1], Text(f"{last}…")]


def _clean(cell: Cell) -> Cell:
    if isinstance(cell, str):
        return printable(" ".join(cell.split()))
    clean = "\n".join(map(printable, cell.plain.split("\n")))
    if clean == cell.plain:
        return cell
    changed = cell.copy()
    changed.plain = clean
    return changed


def _natural_width(cell: Cell) -> int:
    return cell_len(cell) if isinstance(cell, str) else max(map(cell_len, cell.plain.split("\n")))


def _total(widths: Iterator[int]) -> int:
    """Total width of columns with the gaps between them."""
    return sum(width + GAP for width in widths) - GAP


def _squeeze(widths: dict[int, int], room: int) -> None:
    """Narrows the widest columns if the columns that are never omitted do not fit."""
    while _total(iter(widths.values())) > room:
        widest = max(widths, key=lambda index: widths[index])
        if widths[widest] <= NARROWEST:
            return
        widths[widest] -= 1


def _widen(widths: dict[int, int], natural: Sequence[int], room: int) -> None:
    """Distributes the rest of *room* to the columns that are wrapped, the narrowest first."""
    spare = room - _total(iter(widths.values()))
    while spare > 0 and (lacking := [index for index in widths if widths[index] < natural[index]]):
        widths[min(lacking, key=lambda index: widths[index])] += 1
        spare -= 1
