"""An instance of a suite with an instruction that a model wrote: no checker, no milestones, judged, replayed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.config import RunConfig
from agent.inspection.replay import branch_trace, replay_trace
from agent.run.runner import run_suite
from envs.core.action_languages import PROGRAM
from envs.core.actions import Click, Stop
from envs.core.tasks import TaskRef, TaskSelection
from envs.core.trace_store import read_trace
from tests.agent.shop import scripted

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_chromium")]

OWN = TaskRef(suite="miniwob", name="click-collapsible", seed=0)
WRITTEN = OWN.model_copy(update={"written": "Press the button “Submit” without looking"})
VERDICT = {"reason": "it was pressed", "unmet": [], "success": True}


async def test_a_written_task_is_judged_by_a_model_and_the_own_one_by_its_checker(tmp_path: Path) -> None:
    script = [{"when": "operate", "answer": PROGRAM.show(Click(ref=1))}, {"when": "", "answer": VERDICT}]
    (tmp_path / "model.json").write_text(json.dumps(script), encoding="utf-8")
    spec = f"scripted:{tmp_path / 'model.json'}"
    config = RunConfig(policy=spec, judge=spec, rater="state", outcome="judge", planner="reference", fsync=False)
    config = config.model_copy(update={"limits": config.limits.model_copy(update={"max_steps": 2})})
    run = await run_suite(config, TaskSelection("miniwob", picked=(OWN, WRITTEN)), tmp_path / "runs")
    own, written = run.episodes
    assert own.instruction != written.instruction == WRITTEN.written
    assert (own.episode_id, written.episode_id) == (
        "click-collapsible-0-a1",
        f"click-collapsible-0-{WRITTEN.written_digest}-a1",
    )
    first, second = (read_trace(episode.trace_path) for episode in run.episodes)
    assert first.header.reference_milestones and not second.header.reference_milestones
    assert first.footer is not None and second.footer is not None
    assert first.footer.score is not None and second.footer.score is None
    assert (second.footer.outcome, second.footer.judged_by) == ("success", "judge")
    assert second.header.task == WRITTEN and written.z == ()
    assert second.header.start_url == first.header.start_url

    replay = await replay_trace(written.trace_path, may_act=True)
    assert replay.ok and replay.same_outcome is None, "the actions are compared; there is no checker"

    only_stop = scripted([Click(ref=1), Stop(answer="pressed")])
    branch = await branch_trace(
        written.trace_path, only_stop, 2, out=tmp_path / "branch", judge="none", outcome="checker"
    )
    (branched,) = branch.episodes
    assert (branched.task, branched.instruction) == (WRITTEN, WRITTEN.written)
    assert (branched.outcome, branched.answer) == ("unjudged", "pressed"), "the own task's checker does not apply"
