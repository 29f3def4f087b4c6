"""WebRL's value band, and tasks of a phase read from traces."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from envs.core.errors import BadInput
from envs.core.tasks import Score, TaskRef
from envs.core.trace import Failure, Footer, Header, Outcome, Totals
from envs.core.trace_store import Summary
from training.loop.curriculum import (
    Candidate,
    CurriculumSettings,
    Failed,
    ValueBand,
    filter_by_value,
    next_phase,
    played_tasks,
)


def task(n: int) -> TaskRef:
    return TaskRef(suite="miniwob", name="click-test", seed=1_000_000 + n)


TASKS = [Candidate(task(n), "press it", "navigation") for n in range(6)]
FAILED = Failed(task=task(90), instruction="press it", category="navigation", failure="other")


def test_the_band_includes_its_ends_and_other_tasks_are_counted() -> None:
    result = filter_by_value(TASKS, [0.0, 0.049, 0.05, 0.4, 0.75, 0.76], ValueBand())
    assert result == (tuple(TASKS[2:5]), 2, 1)


@pytest.mark.parametrize("values", [[0.5] * 5, [0.5] * 5 + [math.nan], [0.5] * 5 + [1.5], [0.5] * 5 + [-0.1]])
def test_a_value_outside_0_to_1_is_an_error(values: Sequence[float]) -> None:
    with pytest.raises(ValueError):
        filter_by_value(TASKS, values, ValueBand())


def test_an_empty_band_and_shares_above_one_are_refused() -> None:
    with pytest.raises(ValidationError):
        ValueBand(low=0.8, high=0.2)
    with pytest.raises(ValidationError):
        CurriculumSettings(rare_share=0.6, explore_share=0.6)


async def test_webrl_plays_only_tasks_within_the_value_band() -> None:
    """Instances 0 to 2 are too hard, the variants too easy; 3 to 5 remain."""

    def value(candidates: Sequence[Candidate]) -> list[float]:
        seeds = [item.ref.seed - 1_000_000 for item in candidates]
        return [0.01 if seed < 3 else 0.5 if seed < 6 else 0.9 for seed in seeds]

    webrl = CurriculumSettings(value_band=ValueBand(), explore_share=0)
    result = await next_phase([FAILED], [], TASKS, webrl, size=9, seed=0, value=value)
    assert {item.seed - 1_000_000 for item in result.refs} == {3, 4, 5}
    assert (result.counts.too_hard, result.counts.too_easy, result.counts.missing) == (3, 2, 6)
    with pytest.raises(BadInput, match="value critic"):
        await next_phase([FAILED], [], TASKS, webrl, size=9, seed=0)


async def test_webrls_variants_of_a_failure_join_the_pool() -> None:
    webrl = CurriculumSettings(value_band=ValueBand(), explore_share=0, rare_share=0)
    result = await next_phase([FAILED], [], [], webrl, size=9, seed=0, value=lambda tasks: [0.5] * len(tasks))
    assert [item.reason.kind for item in result.tasks] == ["similar", "similar"]


# Traces


def episode(n: int, outcome: Outcome | None, failure: Failure | None = None) -> Summary:
    header = Header(
        run_id="r",
        episode_id="e",
        task=task(n),
        instruction=f"press {n}",
        category="navigation",
        config={},
        versions={},
        started_at="2026-01-01T00:00:00Z",
    )
    if outcome is None:
        return Summary(header, None)
    score = Score(status="success", reward=1, evidence="") if outcome == "success" else None
    footer = Footer(
        outcome=outcome,
        ended_by="stop",
        judged_by="checker",
        score=score,
        failure=failure,
        totals=Totals(),
        at="2026-01-01T00:00:01Z",
    )
    return Summary(header, footer)


def test_a_phase_is_read_from_its_traces_without_broken_episodes() -> None:
    stuck = Failure(category="stuck_midway", key_step=1, reason="")
    traces = [episode(4, "failure", stuck), episode(1, "success"), episode(2, "broken"), episode(3, None)]
    traces += [episode(1, "failure"), episode(5, "unjudged")]
    result = played_tasks(traces)
    assert [(item.task, item.failure) for item in result.failed] == [(task(1), ""), (task(4), "stuck_midway")]
    assert result.succeeded == {task(1)} and result.seen == {task(1), task(4)}
    assert dict(result.instructions)[task(2)] == "press 2"
