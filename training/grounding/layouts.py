"""Generates varied pages: a template fixes the blocks and their order, a variant their theme, language and content.

Every control carries its id in `data-control`, so that the page as it is rendered can be compared with the controls
that are returned. Blocks may be in a shadow tree or a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from random import Random
from typing import Final, NamedTuple

from training.grounding import vocabulary as words
from training.grounding.controls import Container, Control
from training.grounding.themes import Theme, theme

_NAV, _TOOLBAR = Container(kind="navigation bar"), Container(kind="toolbar")
_ROW_ACTIONS: Final = ("edit", "delete", "copy", "share", "download", "print", "lock", "favorite", "mail")
_TOOLS: Final = (
    "undo",
    "redo",
    "print",
    "attach",
    "search",
    "filter",
    "sort",
    "refresh",
    "add",
    "zoom",
    "copy",
    "lock",
)
_NAV_ICONS: Final = ("notifications", "account", "settings", "help", "cart", "search", "logout", "home", "mail")
_FORM_ENDS: Final = (("save", "close"), ("save", "undo"), ("next", "back"), ("mail", "attach"), ("add", "close"))
_DIALOG_ENDS: Final = (("save", "close"), ("delete", "close"), ("upload", "close"), ("lock", "close"))
_CARD_ACTIONS: Final = ("cart", "favorite", "share", "edit", "download", "refresh", "zoom", "play")


class GeneratedPage(NamedTuple):
    """One page and all of its controls."""

    html: str
    controls: tuple[Control, ...]


class Layout(NamedTuple):
    """What a template fixes."""

    blocks: tuple[str, ...]
    sidebar: bool
    dialog: bool
    wrapped: tuple[str, ...]
    """For each block: plain, shadow or frame."""
    icons: float
    """Share of actions that are icons."""


def layout(seed: int, number: int) -> Layout:
    """The template *number* of a *seed*."""
    rng = Random(f"layout {seed} {number}")
    blocks = tuple(rng.sample(tuple(_BLOCKS), rng.randint(2, 5)))
    wrapped = tuple(rng.choices(("plain", "shadow", "frame"), (8, 2, 1))[0] for _ in blocks)
    return Layout(blocks, rng.random() < 0.4, rng.random() < 0.2, wrapped, rng.choice((0.2, 0.5, 0.9)))


def generate(seed: int, number: int, variant: str) -> GeneratedPage:
    """The page of template *number* in a *variant*; the same arguments give the same page."""
    shape = layout(seed, number)
    rng = Random(f"page {seed} {number} {variant}")
    return _Page(rng, shape, theme(rng), rng.choice(words.LANGUAGES)).build()


class _Page:
    """A page while it is written."""

    def __init__(self, rng: Random, shape: Layout, theme: Theme, language: words.Language) -> None:
        self.rng = rng
        self.shape = shape
        self.theme = theme
        self.language: words.Language = language
        self.controls: list[Control] = []
        self.titles = rng.sample(words.TITLES, len(words.TITLES))
        self.fields = rng.sample(words.FIELDS, len(words.FIELDS))

    def build(self) -> GeneratedPage:
        nav = _nav(self)
        aside = _sidebar(self) if self.shape.sidebar else ""
        parts = [
            self.wrapped(_BLOCKS[block](self), container)
            for block, container in zip(self.shape.blocks, self.shape.wrapped, strict=True)
        ]
        dialog = _dialog(self) if self.shape.dialog else ""
        main = f"<main>{''.join(parts)}</main>"
        body = f'{nav}<div class="cols">{aside}{main}</div>{dialog}'
        head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{self.title()}</title>'
        style = f"<style>{self.theme.css}</style>"
        html = f'<!doctype html><html lang="{self.language}"><head>{head}{style}</head><body>{body}</body></html>'
        return GeneratedPage(html, tuple(self.controls))

    def wrapped(self, html: str, container: str) -> str:
        """A block in a shadow tree or in a frame of its own."""
        style = f"<style>{self.theme.css}</style>"
        if container == "shadow":
            return f'<x-block><template shadowrootmode="open">{style}{html}</template></x-block>'
        if container == "frame":
            height = 60 + 34 * html.count("data-control")
            return f'<iframe title="" height="{min(height, 420)}" srcdoc="{escape(style + html)}"></iframe>'
        return html

    def title(self) -> str:
        """A title of a section that the page does not have yet."""
        return self.titles.pop()[self.language] if self.titles else ""

    def label(self, concept: str) -> str:
        return words.CONCEPTS[concept].labels[self.language]

    def is_icon(self) -> bool:
        return self.rng.random() < self.shape.icons

    def add(
        self, role: str, name: str, containers: Sequence[Container] = (), *, concept: str = "", icon: bool = False
    ) -> str:
        """Adds a control; returns the attributes of its element."""
        number = f"c{len(self.controls)}"
        function = words.CONCEPTS[concept].function if concept else ""
        self.controls.append(
            Control(
                id=number,
                role=role,
                name=name,
                icon=icon,
                concept=concept,
                function=function,
                containers=tuple(containers),
            )
        )
        return f'data-control="{number}"'

    def action(self, concept: str, *containers: Container, icon: bool | None = None, tag: str = "button") -> str:
        """A button or link that does something."""
        pictured = self.is_icon() if icon is None else icon
        name = self.label(concept)
        role = "link" if tag == "a" else "button"
        known = self.add(role, name, containers, concept=concept, icon=pictured)
        address = ' href="#"' if tag == "a" else ' type="button"'
        if not pictured:
            return f"<{tag} {known}{address}>{escape(name)}</{tag}>"
        path = words.CONCEPTS[concept].icon
        picture = f'<svg viewBox="0 0 24 24" aria-hidden="true"><path d="{path}"/></svg>'
        style = "icon btn" if tag == "a" else "icon"
        return f'<{tag} {known}{address} class="{style}" aria-label="{escape(name)}">{picture}</{tag}>'

    def link(self, name: str, *containers: Container) -> str:
        return f'<a href="#" {self.add("link", name, containers)}>{escape(name)}</a>'

    def some(self, concepts: Sequence[str], least: int, most: int) -> list[str]:
        return self.rng.sample(concepts, self.rng.randint(least, min(most, len(concepts))))


def _nav(page: _Page) -> str:
    links = " ".join(page.link(page.title(), _NAV) for _ in range(page.rng.randint(1, 3)))
    icons = "".join(
        page.action(each, _NAV, tag=page.rng.choice(("a", "button"))) for each in page.some(_NAV_ICONS, 1, 4)
    )
    return f'<header><b>{escape(page.rng.choice(words.CITIES))}</b><span class="grow">{links}</span>{icons}</header>'


def _sidebar(page: _Page) -> str:
    cities = page.rng.sample(words.CITIES, 4)
    return f"<aside>{''.join(page.link(city, Container(kind='sidebar')) for city in cities)}</aside>"


def _toolbar(page: _Page) -> str:
    tools = "".join(page.action(each, _TOOLBAR) for each in page.some(_TOOLS, 4, 8))
    return f'<section><div class="bar" role="toolbar">{tools}</div></section>'


def _table(page: _Page) -> str:
    actions = page.some(_ROW_ACTIONS, 1, 3)
    pictured = page.is_icon()
    rows: list[str] = []
    for person in page.rng.sample(words.PEOPLE, page.rng.randint(3, 7)):
        row = Container(kind="row", label=person)
        buttons = "".join(page.action(each, row, icon=pictured) for each in actions)
        state, amount = page.rng.choice(words.STATES), page.rng.randint(3, 999)
        cells = (escape(person), page.rng.choice(words.CITIES), state, f"{amount}.00", buttons)
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return f"<section><h2>{escape(page.title())}</h2><table>{''.join(rows)}</table></section>"


def _form(page: _Page) -> str:
    lines: list[str] = []
    for field in page.fields[: page.rng.randint(3, 5)]:
        name = field[page.language]
        known = page.add("text field", name)
        box = f'<input type="text" aria-label="{escape(name)}" {known}>'
        beside = Container(kind="field", label=name)
        helper = page.action(page.rng.choice(("help", "copy")), beside, icon=True) if page.rng.random() < 0.4 else ""
        lines.append(f'<div class="line"><div>{escape(name)}</div>{box} {helper}</div>')
    ends = "".join(page.action(each, icon=False) for each in page.rng.choice(_FORM_ENDS))
    title = escape(page.title())
    return f'<section class="panel"><h2>{title}</h2>{"".join(lines)}<div class="bar">{ends}</div></section>'


def _cards(page: _Page) -> str:
    actions = page.some(_CARD_ACTIONS, 1, 3)
    cards: list[str] = []
    for item in page.rng.sample(words.ITEMS, page.rng.randint(3, 6)):
        card = Container(kind="card", label=item)
        buttons = "".join(page.action(each, card) for each in actions)
        cards.append(f'<div class="card"><b>{escape(item)}</b><p>{page.rng.randint(2, 90)}.50</p>{buttons}</div>')
    return f'<section><div class="cards">{"".join(cards)}</div></section>'


def _files(page: _Page) -> str:
    actions = page.some(_ROW_ACTIONS, 1, 2)
    items: list[str] = []
    for file in page.rng.sample(words.FILES, page.rng.randint(3, 6)):
        item = Container(kind="item", label=file)
        buttons = "".join(page.action(each, item, icon=True) for each in actions)
        items.append(f'<div class="item"><span class="grow">{page.link(file)}</span>{buttons}</div>')
    return f"<section><h2>{escape(page.title())}</h2>{''.join(items)}</section>"


def _dashboard(page: _Page) -> str:
    cards: list[str] = []
    for _ in range(min(3, len(page.titles))):
        title = page.title()
        card = Container(kind="card", label=title)
        buttons = "".join(
            page.action(each, card, icon=True) for each in page.some(("refresh", "settings", "zoom"), 1, 2)
        )
        number = page.rng.randint(10, 9_999)
        cards.append(f'<div class="card"><h2>{escape(title)}</h2><p class="big">{number}</p>{buttons}</div>')
    return f'<section><div class="cards">{"".join(cards)}</div></section>'


def _tabs(page: _Page) -> str:
    names = [page.title() for _ in range(min(3, len(page.titles)))]
    tabs = "".join(
        f'<button type="button" role="tab" class="tab" {page.add("tab", name)}>{escape(name)}</button>'
        for name in names
    )
    return f'<section><div class="bar" role="tablist">{tabs}</div><p>{page.rng.choice(words.STATES)}</p></section>'


def _options(page: _Page) -> str:
    lines = "".join(
        f'<label><input type="checkbox" {page.add("checkbox", city)}> {escape(city)}</label>'
        for city in page.rng.sample(words.CITIES, page.rng.randint(3, 5))
    )
    return f'<section class="panel"><h2>{escape(page.title())}</h2>{lines}</section>'


def _pages(page: _Page) -> str:
    numbers = "".join(page.link(str(number)) + " " for number in range(1, page.rng.randint(4, 7)))
    return f'<section><div class="bar">{page.action("back")}{numbers}{page.action("next")}</div></section>'


def _dialog(page: _Page) -> str:
    title = page.title() or page.rng.choice(words.FILES)
    dialog = Container(kind="dialog", label=title)
    first, close = page.rng.choice(_DIALOG_ENDS)
    ends = page.action(first, dialog, icon=False) + page.action(close, dialog)
    return (
        f'<div class="veil"></div><dialog open><h2>{escape(title)}</h2><p>…</p><div class="bar">{ends}</div></dialog>'
    )


_BLOCKS: Final[dict[str, Callable[[_Page], str]]] = {
    "toolbar": _toolbar,
    "table": _table,
    "form": _form,
    "cards": _cards,
    "files": _files,
    "dashboard": _dashboard,
    "tabs": _tabs,
    "options": _options,
    "pages": _pages,
}
