"""Names of our own cases beside npm's `dom-accessibility-api` and `axe-core`. Needs npm and a registry: `-m heavy`."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from playwright.async_api import Page

from benchmarks.accessible_names import Case, Implementation, cases_of, installed, serve
from tests.envs.observer.name_cases import page_of_cases

pytestmark = [pytest.mark.browser, pytest.mark.heavy]

OTHERS = (Implementation.DOM_ACCESSIBILITY_API, Implementation.AXE)


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is missing")
async def test_where_the_others_agree_we_agree_or_the_specification_differs(page: Page, tmp_path: Path) -> None:
    html, names = page_of_cases()
    modules = installed().resolve()
    stated = "".join(
        f"marked[{i}].dataset.expectedlabel={name!r};marked[{i}].dataset.testname={case!r};"
        for i, (case, name) in enumerate(names.items())
    )
    script = f"<script>const marked=document.querySelectorAll('[data-x]');{stated}</script>"
    (tmp_path / "cases.html").write_text(html + script, encoding="utf-8")
    await serve(page, tmp_path, modules)
    cases = await cases_of(page, tmp_path, tmp_path / "cases.html", modules)
    assert len(cases) == len(names)
    assert [case for case in cases if _stands_alone(case)] == []
    passed = Counter(by for case in cases for by in Implementation if case.passed(by))
    assert all(passed[Implementation.MIRA] >= passed[by] for by in OTHERS), passed


def _stands_alone(case: Case) -> bool:
    """Whether we miss the specified name that both others find."""
    return all(case.passed(by) for by in OTHERS) and not case.passed(Implementation.MIRA)
