"""Which of the MiniWoB++ pages start, step and score: one line a page, then a summary.

python benchmarks/miniwob_pages.py [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from envs.browser.chromium import Chromium
from envs.core.actions import Click, ClickAt, Status
from envs.core.errors import EnvError
from envs.core.tasks import TaskRef
from envs.suites.miniwob import MiniwobSuite
from envs.suites.miniwob.environment import MiniwobEnvironment

MIDDLE_OF_TASK = (80.0, 130.0)
"""CSS pixels; where a page without controls is clicked."""


@dataclass(frozen=True)
class Page:
    """What came of one page. `controls` and `text_chars` are those of its first observation."""

    name: str
    instruction: str = ""
    controls: int = 0
    text_chars: int = 0
    step: str = ""
    score: str = ""
    error: str = ""

    @property
    def works(self) -> bool:
        return bool(self.instruction) and self.step == "ok" and self.score in ("success", "failure")


async def try_page(environment: MiniwobEnvironment, name: str) -> Page:
    """Starts seed 0, does one action that every page must take, and asks for the score."""
    try:
        start = await environment.reset(TaskRef(suite="miniwob", name=name, seed=0))
        seen = await environment.observe()
        result = await environment.execute(ClickAt(x=MIDDLE_OF_TASK[0], y=MIDDLE_OF_TASK[1]))
        first = next((e for e in seen.elements if e.shown and "disabled" not in e.states), None)
        if first is not None and result.status is Status.OK and not await environment.done():
            await environment.observe()
            result = await environment.execute(Click(ref=first.ref))
        score = await environment.score(None)
    except EnvError as error:
        return Page(name, error=str(error))
    expected = (Status.OK, Status.COVERED, Status.NOT_ACTIONABLE, Status.STALE)
    status = "ok" if result.status in expected else result.status.value
    return Page(
        name,
        start.instruction,
        seen.controls_total,
        len(seen.text),
        status,
        score.status if score else "none",
        result.message,
    )


async def main(as_json: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Chromium.launch() as chromium, MiniwobSuite(chromium, Path(folder)) as suite:
            environment = await suite.environment()
            working = 0
            for task in suite.tasks():
                page = await try_page(environment, task.name)
                working += page.works
                print(json.dumps(asdict(page)) if as_json else _row(page), flush=True)
            await environment.close()
    print(f"{working} of {len(suite.tasks())} pages start, step and score")


def _row(page: Page) -> str:
    return f"{page.name:30} {page.controls:4} {page.step:8} {page.score:8} {page.error}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    asyncio.run(main(parser.parse_args().json))
