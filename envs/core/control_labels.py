"""Labels of controls in messages, prompts and grammars: the role and the name, as the page shows them."""

from __future__ import annotations

import re
from typing import Final

from envs.core.observation import Element

NAME_CHARS: Final = 40


def control_label(element: Element) -> str:
    """`button "Save"`. The name is page text: it is folded to one line, cut, quoted as on the page, and escaped so that
    it cannot imitate the number of a control."""
    folded = " ".join(element.key.name.split())
    cut = folded if len(folded) <= NAME_CHARS else folded[: NAME_CHARS - 1] + "…"
    quoted = cut.replace("\\", "\\\\").replace('"', '\\"')
    name = re.sub(r"\[(?=\s*\d+\s*\])", r"\\[", quoted)
    return f'{element.key.role} "{name}"'
