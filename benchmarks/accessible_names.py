"""Accessible names of test pages, computed by four implementations in one Chromium: a share and the failures of each.

python benchmarks/accessible_names.py FOLDER [--json FILE] [--failures IMPLEMENTATION]

FOLDER: pages in the form of web-platform-tests' `accname` (a checkout's `accname` folder): every element with
`data-expectedlabel` is a case, `data-testname` its name. The other implementations are npm packages, pinned by
`accessible_names_packages/package-lock.json` and installed into `build/accessible_names` at the first use.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from playwright.async_api import CDPSession, Page, Route, async_playwright

from envs.observer.program import program
from envs.observer.world import PARTS

PACKAGES: Final = Path(__file__).parent / "accessible_names_packages"
INSTALLED: Final = Path("build") / "accessible_names"
ORIGIN: Final = "http://names.test"
CASES: Final = "[data-expectedlabel]"
_SPACE: Final = re.compile(r"[\t\n\f\r ]+")
"""ASCII whitespace, which the published cases fold."""


class Implementation(StrEnum):
    MIRA = "mira"
    DOM_ACCESSIBILITY_API = "dom-accessibility-api"
    AXE = "axe-core"
    CHROMIUM = "chromium"


@dataclass(frozen=True, slots=True)
class Case:
    """One element of a page and its name by each implementation."""

    page: str
    name: str
    expected: str
    found: dict[Implementation, str]

    def passed(self, by: Implementation) -> bool:
        return folded(self.found[by]) == folded(self.expected)


def folded(text: str) -> str:
    return _SPACE.sub(" ", text).strip(" ")


def installed() -> Path:
    """Returns the folder with the npm packages; installs them if they are missing. Raises CalledProcessError."""
    modules = INSTALLED / "node_modules"
    if not modules.exists():
        INSTALLED.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(PACKAGES / name, INSTALLED / name)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=INSTALLED, check=True)
    return modules


async def serve(page: Page, folder: Path, modules: Path) -> None:
    """Answers requests of *page* to ORIGIN with the files of *folder*, and below `/npm/` with those of *modules*."""

    async def answer(route: Route) -> None:
        path = route.request.url.removeprefix(ORIGIN).split("?")[0].lstrip("/")
        file = modules / path.removeprefix("npm/") if path.startswith("npm/") else folder / path
        kind = "text/javascript" if file.suffix in (".js", ".mjs") else "text/html; charset=utf-8"
        if file.is_file():
            await route.fulfill(body=file.read_bytes(), content_type=kind)
        else:
            await route.fulfill(status=404)

    await page.route(f"{ORIGIN}/**", answer)


_MIRA = """elements => elements.map((element) => {
  const tag = mira.tagOf(element);
  return mira.statedName(element, tag, mira.roleOf(element, tag), new mira.Naming(10000));
})"""
_DOM_ACCESSIBILITY_API = """async (elements) => {
  const { computeAccessibleName } = await import('/npm/dom-accessibility-api/dist/index.mjs');
  return elements.map((element) => computeAccessibleName(element));
}"""
_AXE = """elements => {
  axe.setup(document);
  const names = elements.map((element) => axe.commons.text.accessibleText(element));
  axe.teardown();
  return names;
}"""


async def names_on(page: Page, modules: Path) -> dict[Implementation, list[str]]:
    """Returns the names of all cases on *page*, in document order."""
    await page.evaluate(program(PARTS, "tagOf, roleOf, statedName, Naming"))
    await page.add_script_tag(path=modules / "axe-core" / "axe.min.js")
    in_page = {
        Implementation.MIRA: _MIRA,
        Implementation.DOM_ACCESSIBILITY_API: _DOM_ACCESSIBILITY_API,
        Implementation.AXE: _AXE,
    }
    names = {by: await page.eval_on_selector_all(CASES, script) for by, script in in_page.items()}
    session = await page.context.new_cdp_session(page)
    return {
        **names,
        Implementation.CHROMIUM: [await _chromium(session, i) for i in range(len(names[Implementation.AXE]))],
    }


async def _chromium(session: CDPSession, index: int) -> str:
    """Returns the name in Chromium's accessibility tree; "" for an element that is not in it."""
    expression = f"document.querySelectorAll({json.dumps(CASES)})[{index}]"
    element = await session.send("Runtime.evaluate", {"expression": expression})
    params = {"objectId": element["result"]["objectId"], "fetchRelatives": False}
    nodes: list[dict[str, Any]] = (await session.send("Accessibility.getPartialAXTree", params))["nodes"]
    return str(nodes[0].get("name", {}).get("value", "")) if nodes else ""


async def cases_of(page: Page, folder: Path, file: Path, modules: Path) -> list[Case]:
    """Opens one page and returns its cases."""
    path = file.relative_to(folder).as_posix()
    await page.goto(f"{ORIGIN}/{path}", wait_until="load")
    stated: list[list[str]] = await page.eval_on_selector_all(
        CASES, "elements => elements.map((e) => [e.dataset.testname ?? '', e.dataset.expectedlabel])"
    )
    names = await names_on(page, modules)
    return [
        Case(path, name, expected, {by: found[i] for by, found in names.items()})
        for i, (name, expected) in enumerate(stated)
    ]


async def measure(folder: Path, files: Sequence[Path], modules: Path) -> list[Case]:
    """Returns the cases of *files* in *folder*."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium)
        page = await browser.new_page()
        await serve(page, folder, modules)
        cases: list[Case] = []
        for file in files:
            cases += await cases_of(page, folder, file, modules)
        await browser.close()
    return cases


def report(cases: list[Case], failures: Implementation | None) -> str:
    """A table by page, and the failures of one implementation."""
    lines = [f"{'page':<55} {'cases':>5} " + " ".join(f"{by.value:>21}" for by in Implementation)]
    for path in [*dict.fromkeys(case.page for case in cases), ""]:
        of = [case for case in cases if path in ("", case.page)]
        passed = " ".join(f"{sum(case.passed(by) for case in of):>21}" for by in Implementation)
        lines.append(f"{path or 'all':<55} {len(of):>5} {passed}")
    if failures:
        failed = [case for case in cases if not case.passed(failures)]
        lines += [f"{case.page}: {case.name}: {case.expected!r} != {case.found[failures]!r}" for case in failed]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="where all cases are written")
    parser.add_argument("--failures", type=Implementation, default=Implementation.MIRA, choices=list(Implementation))
    args = parser.parse_args()
    cases = asyncio.run(measure(args.folder, sorted(args.folder.rglob("*.html")), installed().resolve()))
    print(report(cases, args.failures))
    if args.json:
        args.json.write_text(
            json.dumps([asdict(case) for case in cases], indent=1, ensure_ascii=False), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
