"""Form tasks are solved with at most half of the answers where the oracle's steps are grouped into batches.

docs/results/batches.md has ten tasks; this is the check of a few.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.run.runner import run_suite
from envs.core.action_languages import PROGRAM
from envs.core.tasks import TaskSelection
from tests.agent.batching import BatchingPolicy, recorded
from tests.agent.shop import config

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120), pytest.mark.usefixtures("shared_chromium")]

FORMS = TaskSelection("miniwob", ("login-user", "multi-orderings", "click-checkboxes-large"), (0,))


async def test_batches_need_at_most_half_of_the_answers(tmp_path: Path) -> None:
    one = await run_suite(config(policy="oracle"), FORMS, tmp_path, run_id="one")
    policy = BatchingPolicy(recorded(one.folder), PROGRAM, 8)
    several = await run_suite(config(), FORMS, tmp_path, run_id="several", policy=policy)
    assert [episode.outcome for episode in (*one.episodes, *several.episodes)] == ["success"] * 6
    steps = sum(episode.totals.steps for episode in one.episodes)
    assert sum(episode.totals.steps for episode in several.episodes) == steps
    assert policy.answers <= steps / 2
