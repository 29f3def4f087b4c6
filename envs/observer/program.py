"""In-page programs: JavaScript files joined to one expression that is evaluated in an isolated world."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "in_page"
_STATEMENT: Final = re.compile(r"^const (\w+) =", re.MULTILINE)
"""Start of a top-level definition of `pristine.js`."""
_NAME: Final = re.compile(r"\b[A-Za-z_]\w*\b")


def pristine() -> str:
    """Returns the statements that define the getters and methods by which a page is read, for any isolated world."""
    return _without_comments(_read("pristine.js"))


@cache
def program(parts: tuple[str, ...], calls: str) -> str:
    """Returns an expression that leaves *calls* (names, separated by commas) of the files *parts* in `mira`.

    The definitions of `pristine.js` that the parts use come first. Comments and indentation are removed: the program
    is sent and parsed again for every new document.
    """
    text = "\n".join(map(_read, parts))
    script = _without_comments(f"{_used_definitions(_read('pristine.js'), text)}\n{text}")
    return f"(() => {{ 'use strict';\n{script}\nglobalThis.mira = {{ {calls} }};\n}})()"


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _without_comments(script: str) -> str:
    """Removes comments that stand on lines of their own, empty lines and indentation."""
    script = re.sub(r"^[ \t]*/\*.*?\*/[ \t]*$", "", script, flags=re.MULTILINE | re.DOTALL)
    lines = (line.strip() for line in script.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _used_definitions(definitions: str, text: str) -> str:
    """Returns the *definitions* that *text* uses, directly or through another one, in their order."""
    starts = list(_STATEMENT.finditer(definitions))
    ends = [*(start.start() for start in starts[1:]), len(definitions)]
    statements = {start[1]: definitions[start.start() : end] for start, end in zip(starts, ends, strict=True)}
    used, unread = set[str](), set(_NAME.findall(text))
    while more := unread & statements.keys() - used:
        used |= more
        unread = {name for defined in more for name in _NAME.findall(statements[defined])}
    return "".join(statement for name, statement in statements.items() if name in used)
