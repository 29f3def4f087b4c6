"""In-page programs hold what their parts use of `pristine.js`, and no comments."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from envs.observer import program as program_module
from envs.observer.program import program
from envs.observer.world import PARTS


def test_only_the_definitions_that_the_parts_use_are_sent() -> None:
    text = program(("watching.js", "settling.js"), "untilQuiet")
    defined = re.findall(r"^const (\w+) =", text, re.MULTILINE)
    assert {"activeOf", "ofRoot", "isShadowRoot", "nodeType", "openRoot", "matches", "untilQuiet"} <= set(defined)
    assert not {"labelsOf", "outerHtml", "innerText"} & set(defined)


def test_comments_and_indentation_are_removed() -> None:
    lines = program(("watching.js", "settling.js", "scrolling.js", "reading.js"), "untilQuiet").splitlines()
    assert [line for line in lines if not line.strip() or line[0] in " \t" or line.startswith(("//", "/*", "*"))] == []


def test_definitions_keep_their_order() -> None:
    """A `const` is used by another one only after it."""
    text = program(("watching.js", "settling.js"), "untilQuiet")
    defined = re.findall(r"^const (\w+) =", text, re.MULTILINE)
    assert defined.index("getter") < defined.index("nodeType") < defined.index("activeOf")


def test_the_files_of_the_observer_define_every_name_once() -> None:
    """A second `const` is a syntax error; a second function would silently replace the first."""
    folder = Path(program_module.__file__).with_name("in_page")
    texts = [(folder / part).read_text(encoding="utf-8") for part in ("pristine.js", *PARTS)]
    defined = re.compile(r"^(?:async )?(?:const|let|class|function\*?) +([A-Za-z_$][\w$]*)", re.MULTILINE)
    names = Counter(name for text in texts for name in defined.findall(text))
    assert len(names) > 200
    assert [name for name, count in names.items() if count > 1] == []
