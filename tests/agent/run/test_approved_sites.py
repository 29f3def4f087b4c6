"""Episodes of the sites end the same with `submit` approved by a script as without approval."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.approval_sites import measure
from envs.suites.sites.golden import missing_packages

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(bool(missing_packages("forum")), reason="the extra `sites` is not installed"),
]


def check(measured: dict[str, Any], count: int) -> None:
    assert measured["alike"]
    assert measured["without"]["outcomes"] == measured["approved"]["outcomes"] == {"success": count}
    assert measured["approved"]["asked_about_actions"] > 0, "approval was really on"


@pytest.mark.heavy  # test_approval.py and test_approval_page.py ask in the same way
@pytest.mark.slow
async def test_a_few_episodes_end_as_without_approval() -> None:
    check(await measure(0, 3, 1), 3)


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.timeout(3_600)
async def test_a_hundred_episodes_end_as_without_approval() -> None:
    check(await measure(0, 100, 2), 100)
