"""Times a soft reset and a step of the MiniWoB++ environment beside a hand-written Playwright loop, in one run.

    python benchmarks/miniwob_speed.py [--rounds 60]

Both play the same seeds of the same tasks in two like browsers, turn by turn, so that the machine's noise meets both.
The hand-written loop clicks a known selector and reads the reward. The environment's step looks at the page, clicks
the control it found there, waits until the page is quiet and reads the reward.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from playwright.async_api import Page, async_playwright

from envs.browser.chromium import Chromium, find_chromium
from envs.core.actions import Click
from envs.core.tasks import TaskRef
from envs.suites.miniwob import MiniwobSuite
from envs.suites.miniwob.environment import MiniwobEnvironment
from envs.suites.miniwob.pages import PageServer, html_root

TASKS = {"click-test": "#subbtn", "click-option": "#ch0", "click-checkboxes": "#ch0"}
"""Tasks whose first control is clicked, and that control's selector."""

START = """seed => {
  Math.seedrandom(seed); core.EPISODE_MAX_TIME = 1e6; core.startEpisodeReal(); return core.getUtterance();
}"""
FLAGS = ["--no-sandbox", "--headless=new", "--disable-gpu"]
REWARD = "() => [WOB_DONE_GLOBAL, WOB_RAW_REWARD_GLOBAL]"


@dataclass
class Times:
    """Seconds of each call."""

    reset: list[float] = field(default_factory=list)
    observe: list[float] = field(default_factory=list)
    step: list[float] = field(default_factory=list)
    """From the decision to the reward: action, settling, reward."""

    def row(self) -> dict[str, float]:
        return {
            name: round(1000 * median(values), 1)
            for name, values in (("reset", self.reset), ("observe", self.observe), ("step", self.step))
            if values
        }


async def by_hand(page: Page, url: str, selector: str, seed: int, times: Times) -> None:
    if page.url != url:
        await page.goto(url)
    started = time.perf_counter()
    await page.evaluate(START, seed)
    times.reset.append(time.perf_counter() - started)
    started = time.perf_counter()
    await page.click(selector)
    await page.evaluate(REWARD)
    times.step.append(time.perf_counter() - started)


async def by_environment(environment: MiniwobEnvironment, name: str, seed: int, times: Times) -> None:
    started = time.perf_counter()
    await environment.reset(TaskRef(suite="miniwob", name=name, seed=seed))
    times.reset.append(time.perf_counter() - started)
    started = time.perf_counter()
    seen = await environment.observe()
    times.observe.append(time.perf_counter() - started)
    started = time.perf_counter()
    await environment.execute(Click(ref=seen.elements[0].ref))
    await environment.done()
    times.step.append(time.perf_counter() - started)


async def main(rounds: int) -> None:
    hand, ours = Times(), Times()
    with tempfile.TemporaryDirectory() as folder, PageServer(html_root()) as server:
        async with (
            Chromium.launch() as chromium,
            MiniwobSuite(chromium, Path(folder)) as suite,
            async_playwright() as playwright,
        ):
            environment = await suite.environment()
            browser = await playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
            page = await browser.new_page(viewport={"width": 500, "height": 500})
            for name, selector in TASKS.items():
                for seed in range(rounds + 3):
                    warming = seed < 3
                    await by_hand(page, server.task_url(name), selector, seed, Times() if warming else hand)
                    await by_environment(environment, name, seed, Times() if warming else ours)
    print(json.dumps({"rounds": rounds * len(TASKS), "hand_ms": hand.row(), "environment_ms": ours.row()}))
    ratio = (median(ours.reset) + median(ours.step)) / (median(hand.reset) + median(hand.step))
    whole = (median(ours.reset) + median(ours.observe) + median(ours.step)) / (median(hand.reset) + median(hand.step))
    print(f"reset + step: {ratio:.2f}× by hand; with the observation, which by hand has not: {whole:.2f}×")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=60)
    asyncio.run(main(parser.parse_args().rounds))
