"""Builds SVG text with escaped attributes and content.

The content-security policy forbids inline styles, so positions are attributes and colours are classes.
"""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

Attribute = str | int | float


def element(name: str, *content: str | Markup, **attributes: Attribute) -> Markup:
    """Builds `<name attributes>content</name>`.

    `class_` becomes `class`; other underscores become dashes. Text is escaped; Markup is not escaped again. Numbers are
    rounded to hundredths."""
    markup = "".join(f' {_name(key)}="{escape(_value(value))}"' for key, value in attributes.items())
    inner = "".join(escape(part) for part in content)
    return Markup(f"<{name}{markup}>{inner}</{name}>")


def drawing(width: float, height: float, content: Iterable[Markup], *, label: str, class_: str) -> Markup:
    """Builds an SVG that scales with its box; *label* is its accessible name."""
    return element(
        "svg",
        element("title", label),
        *content,
        viewBox=f"0 0 {_value(width)} {_value(height)}",
        width=width,
        height=height,
        role="img",
        class_=class_,
    )


def text(x: float, y: float, content: str, *, class_: str = "", anchor: str = "start") -> Markup:
    return element("text", content, x=x, y=y, class_=class_, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, *, class_: str) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def _name(key: str) -> str:
    return key.rstrip("_") if key in ("class_",) or "_" not in key else key.replace("_", "-")


def _value(value: Attribute) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
