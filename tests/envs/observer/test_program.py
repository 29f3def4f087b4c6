"""In-page programs hold what their parts use of `pristine.js`, and no comments."""

from __future__ import annotations

import re

from envs.observer.program import program


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
