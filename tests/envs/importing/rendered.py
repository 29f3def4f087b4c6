"""Writes a result folder in the format of WebArena's `RenderHelper`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Page(NamedTuple):
    """One step: the observed tree and the prediction."""

    tree: str
    parsed: str
    raw: str
    url: str = "http://shop.example/"


def write_result(folder: Path, task_id: int, pages: Sequence[Page], *, intent: str = "Find the red chair") -> None:
    parts = [f"<pre>task_id: {task_id}\nsites: ['shopping']\nintent: {intent}\neval: {{'reference_url': ''}}\n</pre>\n"]
    for page in pages:
        parts += [
            "<h2>New Page</h2>\n",
            f"<h3 class='url'><a href={page.url}>URL: {page.url}</a></h3>\n",
            f"<div class='state_obv'><pre>{page.tree}</pre><div>\n",
            "<div class='prev_action' style='background-color:pink'>None</div>\n",
            "<div class='predict_action'>",
            f"<div class='raw_parsed_prediction' style='background-color:grey'><pre>{page.raw}</pre></div>",
            "<div class='action_object' style='background-color:grey'><pre>{'action_type': 6}</pre></div>",
            f"<div class='parsed_action' style='background-color:yellow'><pre>{page.parsed}</pre></div></div>\n",
        ]
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n<!DOCTYPE html>\n<html>\n    <body>\n     " + "".join(parts) + "\n    </body>\n</html>\n"
    (folder / f"render_{task_id}.html").write_text(text, encoding="utf-8")


HOME = """Tab 0 (current): One Stop Market

[1] RootWebArea 'One Stop Market' focused: True
\t[12] link 'My Account'
\t[15] textbox 'Search' required: False
\t[20] link 'Chairs'
\t[21] link 'Chairs'"""
