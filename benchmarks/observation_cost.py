"""CPU time of one observation, before and after a change, in turn in one run.

    git worktree add /tmp/before REVISION
    python -m benchmarks.observation_cost --before /tmp/before [--rounds 6] [--json]

Three generated pages: a form (31 controls), a shop (202, of which 64 are `<div>`s with a click listener) and a table of
332 rows (1,336). CPU time of Python, the driver and Chromium together is compared, because wall time depends on what
else runs. The order of the two versions changes from round to round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import psutil
from playwright.async_api import Page, async_playwright

from envs.core.settings import ObserveSettings
from envs.observer.observer import Observer

OBSERVATIONS = {"form": 60, "shop": 40, "table": 20}
WARM_UP = 5
STYLE = (
    "<!doctype html><title>Page</title><style>.card{display:inline-block;width:260px;padding:8px;border:1px solid #ccc}"
    ".btn{display:inline-block;padding:4px 8px;cursor:pointer}td,th{border:1px solid #ddd}</style>"
)


def form() -> str:
    parts = [f"<a href=/x/{i}>Section {i}</a> " for i in range(3)]
    parts += [f"<p><label>Field {i} <input name=n{i} value=v{i}></label>" for i in range(14)]
    parts += [f"<p><label>Choice {i} <select><option>red<option selected>green</select></label>" for i in range(3)]
    parts += [f"<p><input type=checkbox id=c{i}><label for=c{i}>Agree {i}</label>" for i in range(4)]
    parts += [f"<p><input type=radio name=r id=r{i}><label for=r{i}>Ship {i}</label>" for i in range(3)]
    parts += ["<p><label>Notes <textarea>some</textarea></label><p><label>File <input type=file></label>"]
    return f"{STYLE}<form>{''.join(parts)}<button>Save</button> <button type=button disabled>Delete</button></form>"


def shop() -> str:
    links = "".join(f"<a href=/c/{i}>Category {i}</a> " for i in range(9))
    cards = "".join(
        f"<div class=card><h3><a href=/p/{i}>Product {i}</a></h3><p>Good thing number {i}, sold by seller {i % 7}.</p>"
        f"<p><span>${10 + i}.99</span> <span>{i % 5 + 1} stars</span></p><button>Add to cart {i}</button> "
        f"<div class='btn wish'>Wish {i}</div></div>"
        for i in range(64)
    )
    script = "<script>for (const e of document.querySelectorAll('.wish')) e.addEventListener('click', () => 1)</script>"
    return f"{STYLE}{links}<input type=search aria-label=Search><main>{cards}</main>{script}"


def table() -> str:
    tools = "".join(f"<button>Tool {i}</button> " for i in range(8))
    rows = "".join(
        f"<tr><td><input type=checkbox aria-label='Pick {i}'><td><a href=/o/{i}>Order {i}</a>"
        f"<td>customer{i}@example.test<td>2026-01-{i % 28 + 1:02d}<td>{i * 13 % 997}.50<td><b>paid</b>"
        f"<td><button>Edit {i}</button><td><button>Delete {i}</button>"
        for i in range(332)
    )
    return f"{STYLE}{tools}<table>{rows}</table>"


PAGES = {"form": form, "shop": shop, "table": table}


def cpu_seconds() -> float:
    """CPU time of this process and its children so far."""
    me = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (me, *me.children(recursive=True)))


async def cost(page: Page, name: str) -> tuple[float, int]:
    """Mean CPU milliseconds of an observation, and the characters of its text."""
    await page.set_content(PAGES[name]())
    observer = Observer(page, ObserveSettings(timeout_s=30.0))
    for _ in range(WARM_UP):
        await observer.observe()
    characters = len((await observer.observe()).text)
    before = cpu_seconds()
    for number in range(OBSERVATIONS[name]):
        await page.evaluate("number => document.body.setAttribute('data-number', number)", number)
        await observer.observe()
    return 1000 * (cpu_seconds() - before) / OBSERVATIONS[name], characters


async def measure(executable: str | None) -> dict[str, tuple[float, int]]:
    async with async_playwright() as driver:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = await driver.chromium.launch(executable_path=executable, args=arguments)
        figures: dict[str, tuple[float, int]] = {}
        for name in PAGES:
            page = await browser.new_page(viewport={"width": 1280, "height": 720})
            figures[name] = await cost(page, name)
            await page.close()
        await browser.close()
    return figures


def in_process(tree: Path, executable: str | None) -> dict[str, tuple[float, int]]:
    """The figures of the code in *tree*, measured by this file."""
    command = [sys.executable, str(Path(__file__).resolve()), "--once"]
    command += ["--chromium", executable] if executable else []
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    return json.loads(subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="a checkout of the version to compare with")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--chromium", help="executable; without it Playwright's")
    parser.add_argument("--once", action="store_true", help="print the figures of this version as JSON")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.once or options.before is None:
        print(json.dumps(asyncio.run(measure(options.chromium))))
        return
    trees = {"before": options.before.resolve(), "after": Path(__file__).resolve().parent.parent}
    rounds: dict[str, list[dict[str, tuple[float, int]]]] = {"before": [], "after": []}
    for number in range(options.rounds):
        for version in ("before", "after") if number % 2 == 0 else ("after", "before"):
            rounds[version].append(in_process(trees[version], options.chromium))
    table_of = {
        name: {
            "before_ms": round(statistics.median(row[name][0] for row in rounds["before"]), 1),
            "after_ms": round(statistics.median(row[name][0] for row in rounds["after"]), 1),
            "ratios": sorted(
                round(after[name][0] / before[name][0], 2)
                for before, after in zip(rounds["before"], rounds["after"], strict=True)
            ),
            "characters": (rounds["before"][0][name][1], rounds["after"][0][name][1]),
        }
        for name in PAGES
    }
    if options.json:
        print(json.dumps(table_of, indent=2))
    else:
        for name, row in table_of.items():
            print(f"{name:6}", "  ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
