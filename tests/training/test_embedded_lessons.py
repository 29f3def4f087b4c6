"""What recorded runs teach the small model."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from agent.config import Limits, RunConfig
from agent.run.runner import resume, run_suite
from envs.core.action_languages import PROGRAM
from envs.core.actions import Click, Type
from envs.core.tasks import TaskRef, TaskSelection
from envs.core.trace_store import read_trace
from judges.compact_autorater import parse_check
from planners.compact_planner import NO_PLAN, parse_plan
from training.embedded.lesson import Lesson, split
from training.embedded.lessons import is_oracles, lessons_of

NAMES = ("login-user", "click-checkboxes", "click-collapsible")
SEEDS = (1_000_003, 1_000_004)


@pytest.mark.browser
async def test_an_oracles_run_teaches_to_act_to_plan_and_to_rate(tmp_path: Path) -> None:
    config = RunConfig(policy="oracle", planner="reference", judge="state")
    done = await run_suite(config, TaskSelection("miniwob", NAMES, SEEDS), tmp_path)
    assert [episode.outcome for episode in done.episodes] == ["success"] * 6
    lessons = lessons_of([tmp_path])
    by_kind: dict[str, list[Lesson]] = defaultdict(list)
    for lesson in lessons:
        by_kind[lesson.kind].append(lesson)
    assert {lesson.task for lesson in by_kind["act"]} == set(TaskSelection("miniwob", NAMES, SEEDS).refs())
    for lesson in by_kind["act"]:
        action = PROGRAM.parse(lesson.answer).action
        if isinstance(action, Click | Type):
            assert all(f"[{action.ref}] " in prompt for prompt in lesson.prompts)
        assert "\nNext: " not in lesson.prompts[1]
    first = next(lesson for lesson in by_kind["plan"] if lesson.task.name == "login-user")
    assert first.prompts[0].startswith("Plan 4: ")
    assert len(parse_plan(first.answer, 4)) == len(first.answer.splitlines())
    rest = [lesson for lesson in by_kind["plan"] if "\nHave: " in lesson.prompts[0]]
    assert rest, "a task in progress is planned again"
    quotes = {parse_check(lesson.answer) for lesson in by_kind["check"]}
    assert None in quotes, "some milestones are open"
    assert len(quotes) > 1, "some are reached, and quoted"
    assert all(
        quote is None or quote in lesson.prompts[0]
        for lesson in by_kind["check"]
        for quote in [parse_check(lesson.answer)]
    )


@pytest.mark.browser
async def test_a_task_without_milestones_teaches_that_it_needs_no_plan(tmp_path: Path) -> None:
    config = RunConfig(policy="oracle", planner="reference", judge="state")
    await run_suite(config, TaskSelection("miniwob", ("click-button-sequence",), (SEEDS[0],)), tmp_path)
    lessons = lessons_of([tmp_path])
    first, second = (lesson for lesson in lessons if lesson.kind == "plan")
    assert (first.answer, second.answer) == (NO_PLAN, NO_PLAN)
    assert "\nTrouble: " not in first.prompts[0] and "\nTrouble: " in second.prompts[0]
    assert not [lesson for lesson in lessons if lesson.kind == "check"], "nothing is there to be rated"


@pytest.mark.browser
async def test_the_models_own_run_teaches_to_plan_and_to_rate_but_not_to_act(tmp_path: Path) -> None:
    config = RunConfig(policy="embedded", planner="reference", judge="state", limits=Limits(max_steps=3))
    await run_suite(config, TaskSelection("miniwob", ("click-collapsible",), SEEDS), tmp_path)
    lessons = lessons_of([tmp_path])
    assert {lesson.kind for lesson in lessons} == {"plan", "check"}


@pytest.mark.browser
@pytest.mark.parametrize("changes", [{"planner": "none"}, {"judge": "none"}])
async def test_without_checked_milestones_a_run_teaches_to_act_alone(tmp_path: Path, changes: dict[str, str]) -> None:
    values: dict[str, Any] = {"planner": "reference", "judge": "state", **changes}
    config = RunConfig(policy="oracle", **values)
    await run_suite(config, TaskSelection("miniwob", ("click-collapsible",), (SEEDS[0],)), tmp_path)
    assert {lesson.kind for lesson in lessons_of([tmp_path])} == {"act"}


@pytest.mark.browser
@pytest.mark.parametrize("judges", [("state", "none"), ("none", "state")], ids=" then ".join)
async def test_a_run_that_was_resumed_with_other_roles_teaches_what_was_the_same_throughout(
    tmp_path: Path, judges: tuple[Literal["state", "none"], ...]
) -> None:
    before, after = judges
    config = RunConfig(policy="oracle", planner="reference", judge=before, limits=Limits(max_steps=2))
    run = await run_suite(config, TaskSelection("miniwob", ("login-user",), (SEEDS[0],)), tmp_path)
    again = await resume(run.folder, judge=after, limits={"max_steps": 9})
    assert {lesson.kind for lesson in lessons_of([tmp_path])} == {"act"}
    trace = read_trace(again.episodes[0].trace_path)
    assert is_oracles(trace) and not is_oracles(replace(trace, policies=("oracle:detours", "embedded")))


@pytest.mark.browser
async def test_the_rater_learns_from_the_first_look_on(tmp_path: Path) -> None:
    config = RunConfig(policy="oracle", planner="reference", judge="state")
    await run_suite(config, TaskSelection("miniwob", ("click-collapsible",), (SEEDS[0],)), tmp_path)
    first, *later = (lesson for lesson in lessons_of([tmp_path]) if lesson.kind == "check")
    assert first.answer == "no" and "\nDone: " not in first.prompts[0]
    assert all("\nDone: " in lesson.prompts[0] for lesson in later)


def test_the_last_seeds_of_each_suite_are_measured_on() -> None:
    lessons = [
        Lesson("act", TaskRef(suite=suite, name="x", seed=seed), ("p",), "a")
        for suite in ("miniwob", "sites")
        for seed in range(8, 28)
    ]
    learned, measured = split(lessons)
    assert {(o.task.suite, o.task.seed) for o in measured} == {
        (s, n) for s in ("miniwob", "sites") for n in (25, 26, 27)
    }
    assert len(learned) + len(measured) == len(lessons)
