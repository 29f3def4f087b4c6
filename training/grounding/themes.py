"""Looks of generated pages: fonts, colours, density and shape, as a style sheet."""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

FONTS: Final = (
    "'Liberation Sans', Arial, sans-serif",
    "'DejaVu Sans', Verdana, sans-serif",
    "'Liberation Serif', Georgia, serif",
    "'Liberation Sans Narrow', 'Arial Narrow', sans-serif",
    "'DejaVu Serif', serif",
    "'Liberation Mono', monospace",
    "system-ui, sans-serif",
)
ACCENTS: Final = ("#1a56db", "#0f766e", "#b91c1c", "#7e22ce", "#c2410c", "#15803d", "#334155", "#be185d")
"""Colours of buttons and links on a light background."""
BRIGHT_ACCENTS: Final = ("#93b4ff", "#5eead4", "#fca5a5", "#d8b4fe", "#fdba74", "#86efac", "#cbd5e1", "#f9a8d4")
"""The same on a dark background."""
_DARK: Final = "8"
"""First digit of a dark background's colour is below this."""
GROUNDS: Final = (
    ("#ffffff", "#f3f4f6", "#111827", "#d1d5db"),
    ("#fdfaf3", "#f2ead9", "#2b2415", "#d9cbb0"),
    ("#111827", "#1f2937", "#e5e7eb", "#4b5563"),
    ("#0b1a2b", "#13293f", "#dbe7f3", "#36506b"),
    ("#f8fafc", "#ffffff", "#0f172a", "#cbd5e1"),
)
"""Background, surface, text and border."""


class Theme(NamedTuple):
    """The appearance of one page."""

    font: str
    size: int
    """Font size in CSS pixels."""
    accent: str
    ground: tuple[str, str, str, str]
    space: int
    """Padding in CSS pixels."""
    radius: int
    buttons: str
    """filled, outline or plain."""
    stroke: float
    """Line width of icons."""
    icon: int
    """Side of icons in CSS pixels."""

    @property
    def css(self) -> str:
        """The style sheet of pages, shadow trees and frames."""
        ground, surface, text, border = self.ground
        filled = self.buttons == "filled"
        colours = f"background:{self.accent if filled else 'transparent'};color:{ground if filled else self.accent}"
        edge = "transparent" if self.buttons == "plain" else self.accent
        space, half = self.space, self.space // 2 + 1
        return (
            f"*{{box-sizing:border-box;font-family:{self.font};font-size:{self.size}px}}"
            f"body,.root{{margin:0;background:{ground};color:{text}}}"
            f"a{{color:{self.accent}}}"
            f"button,.btn{{{colours};border:1px solid {edge};border-radius:{self.radius}px;"
            f"padding:{half}px {space}px;cursor:pointer;line-height:1.2}}"
            f".icon{{background:transparent;color:{text};border-color:{'transparent' if filled else border};"
            f"padding:{half}px;line-height:0}}"
            f".icon svg{{width:{self.icon}px;height:{self.icon}px;fill:none;stroke:currentColor;"
            f"stroke-width:{self.stroke};pointer-events:none}}"
            f"header,.bar{{display:flex;flex-wrap:wrap;align-items:center;gap:{space}px;padding:{half}px {space}px;"
            f"background:{surface};border-bottom:1px solid {border}}}"
            f"aside{{padding:{space}px;background:{surface};border-right:1px solid {border}}}"
            f"header a{{margin-right:{half}px}}aside a{{display:block;padding:{half}px 0}}"
            f"main{{padding:{space}px;flex:1;min-width:0}}"
            f"section{{margin:0 0 {space * 2}px}}"
            f"h2{{font-size:{self.size + 3}px;margin:0 0 {half}px}}"
            f"table{{border-collapse:collapse;width:100%}}"
            f"td,th{{text-align:left;padding:{half}px;border-bottom:1px solid {border}}}"
            f".card,.item,dialog,.panel{{background:{surface};color:{text};border:1px solid {border};"
            f"border-radius:{self.radius}px;padding:{space}px}}"
            f".cards{{display:grid;grid-template-columns:repeat(auto-fill,minmax(190px,1fr));gap:{space}px}}"
            f".item{{display:flex;align-items:center;gap:{space}px;margin-bottom:{half}px}}.grow{{flex:1}}"
            f"label,.line{{display:block;margin-bottom:{half}px}}"
            f"input[type=text],select,textarea{{border:1px solid {border};border-radius:{self.radius}px;"
            f"padding:{half}px;background:{ground};color:{text};width:min(320px,70%)}}"
            f"dialog{{position:fixed;left:50%;top:18%;transform:translate(-50%,0);margin:0;z-index:9;width:min(420px,90%)}}"
            f".veil{{position:fixed;inset:0;background:#0008;z-index:8}}"
            f".cols{{display:flex}}.big{{font-size:{self.size + 12}px}}"
            f".tab{{background:transparent;color:{text};border-color:{border}}}"
            f"iframe{{width:100%;border:0}}"
        )


def theme(rng: Random) -> Theme:
    """Draws a theme."""
    ground = rng.choice(GROUNDS)
    return Theme(
        font=rng.choice(FONTS),
        size=rng.randint(12, 18),
        accent=rng.choice(BRIGHT_ACCENTS if ground[0][1] < _DARK else ACCENTS),
        ground=ground,
        space=rng.choice((6, 8, 12, 16)),
        radius=rng.choice((0, 3, 6, 14)),
        buttons=rng.choice(("filled", "outline", "plain")),
        stroke=rng.choice((1.5, 2.0, 2.5)),
        icon=rng.choice((14, 16, 20, 24)),
    )
