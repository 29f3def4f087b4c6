"""Trajectories from traces: recorded token ids, milestones at each state, reasons for leaving episodes out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.episode.policy import REPEATS_NO_OP
from envs.core.actions import ActionResult, Click, Status
from envs.core.tasks import Milestone, MilestoneCheck, Score, TaskRef
from envs.core.trace import (
    BatchPlace,
    Call,
    Commit,
    Event,
    Footer,
    Header,
    Intent,
    ObservationRecord,
    PlanRecord,
    Rating,
    Timings,
    Totals,
)
from envs.core.trace_store import BlobStore, Trace, TraceWriter, read_trace
from training.data.trajectories import LeftOut, Tokens, prompt_of, select, trajectory

AT = "2026-01-01T00:00:00Z"


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def call(**fields: Any) -> Call:
    completion = 'do(action="Click", element="1")'
    values: dict[str, Any] = {"role": "policy", "model": "m", "completion": completion, **fields}
    return Call(**values)


SAMPLED = call(prompt_token_ids=(1, 2, 3), completion_token_ids=(7, 8), logprobs=(-0.1, -0.2))


def planned(letters: str, number: int) -> tuple[Milestone, ...]:
    """Every plan has its own ids."""
    return tuple(Milestone(id=f"m{number}-{letter}", text=letter) for letter in letters)


def record(
    path: Path,
    blobs: BlobStore,
    z: list[str],
    *,
    calls: tuple[Call, ...] = (SAMPLED,),
    status: Status = Status.OK,
    plans: tuple[str, ...] = (),
    batches: tuple[BatchPlace | None, ...] = (),
    **foot: Any,
) -> Trace:
    """A trace with a step for each of *z*; the last one is the footer's. *plans*: one letter per milestone, a plan
    before each of the first steps."""
    header = Header(
        run_id="r",
        episode_id="e",
        task=TaskRef(suite="s", name="t"),
        instruction="i",
        category="shop",
        config={"policy": "local:x"},
        versions={},
        started_at=AT,
    )
    writer = TraceWriter(path, blobs)
    writer.append(header)
    seen = ObservationRecord(url="http://x/", title="", digest="d", text_blob="", keys_blob="", controls_total=0)
    for number, word in enumerate(z[:-1], 1):
        for letters in plans[number - 1 : number]:
            cause = "initial" if number == 1 else "stall"
            writer.append(PlanRecord(step=number, cause=cause, milestones=planned(letters, number), planner="p"))
        rating = Rating(z=tuple(c == "1" for c in word))
        batch = batches[number - 1] if batches else None
        own = calls if batch is None or batch.place == 1 else ()
        intent = Intent(step=number, seen=seen, rating=rating, action=Click(ref=1), raw="", calls=own, at=AT)
        writer.append(intent.model_copy(update={"batch": batch}))
        writer.append(Commit(step=number, result=ActionResult(status=status), timings=Timings(), at=AT))
    fields: dict[str, Any] = {
        "outcome": "success",
        "ended_by": "stop",
        "judged_by": "checker",
        "score": Score(status="success", reward=1.0, evidence=""),
        "rating": Rating(z=tuple(c == "1" for c in z[-1])),
        "totals": Totals(),
        "at": AT,
    }
    if foot.get("outcome", "") is not None:
        writer.append(Footer(**(fields | foot)))
    writer.close()
    return read_trace(path)


def test_token_ids_are_taken_as_they_were_sampled(tmp_path: Path, blobs: BlobStore) -> None:
    episode = trajectory(record(tmp_path / "e.jsonl", blobs, ["00", "10", "11"]), blobs)
    assert not isinstance(episode, LeftOut)
    assert episode.decisions[0].action == Click(ref=1), "the trace's typed action"
    assert episode.decisions[0].tokens == Tokens(prompt=(1, 2, 3), completion=(7, 8), logprobs=(-0.1, -0.2))
    assert (episode.milestones, episode.done) == (2, (0, 1, 2))
    assert (episode.success, episode.reward, episode.policy, episode.category) == (True, 1.0, "local:x", "shop")


def test_an_answer_with_several_actions_is_one_decision(tmp_path: Path, blobs: BlobStore) -> None:
    batches = (BatchPlace(place=1, size=3), BatchPlace(place=2, size=3), None)
    episode = trajectory(record(tmp_path / "e.jsonl", blobs, ["00", "00", "10", "11"], batches=batches), blobs)
    assert not isinstance(episode, LeftOut)
    assert [decision.step for decision in episode.decisions] == [1, 3]
    assert episode.done == (0, 1, 2), "one more than decisions"


def test_the_readable_answer_is_the_completion(tmp_path: Path, blobs: BlobStore) -> None:
    """The first of two policy answers has no action. Calls of other roles are ignored."""
    unreadable = call(prompt_token_ids=(1,), completion_token_ids=(9,), error="no action")
    calls = (call(role="rater"), unreadable, SAMPLED)
    episode = trajectory(record(tmp_path / "e.jsonl", blobs, ["", ""], calls=calls), blobs)
    assert not isinstance(episode, LeftOut)
    assert episode.decisions[0].tokens is not None and episode.decisions[0].tokens.completion == (7, 8)
    assert episode.unreadable == 1, "counted, without a row"


def test_an_answer_that_repeats_a_no_op_has_an_action(tmp_path: Path, blobs: BlobStore) -> None:
    """It was sampled again, and counted among the answers without an action."""
    repeated = call(prompt_token_ids=(1,), completion_token_ids=(9,), error=REPEATS_NO_OP)
    record(tmp_path / "e.jsonl", blobs, ["", ""], calls=(repeated, SAMPLED))
    episode = trajectory(read_trace(tmp_path / "e.jsonl"), blobs, rejected=True)
    assert not isinstance(episode, LeftOut)
    assert (episode.unreadable, episode.rejected, len(episode.decisions)) == (0, (), 1)


def test_answers_without_an_action_are_kept_on_request(tmp_path: Path, blobs: BlobStore) -> None:
    unreadable = call(prompt_token_ids=(1,), completion_token_ids=(9,), logprobs=(-0.5,), error="no action")
    failed = call(error="connection lost")
    episode = trajectory(record(tmp_path / "e.jsonl", blobs, ["", ""], calls=(failed, unreadable, SAMPLED)), blobs)
    assert not isinstance(episode, LeftOut) and episode.rejected == () and episode.unreadable == 2
    trace = read_trace(tmp_path / "e.jsonl")
    episode = trajectory(trace, blobs, rejected=True)
    assert not isinstance(episode, LeftOut) and len(episode.decisions) == 1
    (refused,) = episode.rejected
    assert refused.tokens is not None and refused.tokens.completion == (9,) and refused.tokens.logprobs == (-0.5,)
    assert refused.action is None and not refused.ok


def test_a_failure_without_any_action_is_kept_on_request(tmp_path: Path, blobs: BlobStore) -> None:
    unreadable = call(prompt_token_ids=(1,), completion_token_ids=(9,), error="no action")
    score = Score(status="failure", reward=0.0, evidence="")
    event = Event(step=1, name="parse_error", calls=(unreadable,), at=AT)
    trace = replace(record(tmp_path / "e.jsonl", blobs, [""], outcome="failure", score=score), events=(event,))
    assert trajectory(trace, blobs) is LeftOut.NO_DECISION
    episode = trajectory(trace, blobs, rejected=True)
    assert not isinstance(episode, LeftOut)
    assert (episode.decisions, episode.done, episode.reward, len(episode.rejected)) == ((), (0,), 0.0, 1)


def test_without_token_ids_the_prompt_is_kept_as_text(tmp_path: Path, blobs: BlobStore) -> None:
    prompt = (("system", "be good"), ("user", "page"))
    sent = blobs.put_json([{"role": role, "text": text, "images": []} for role, text in prompt])
    episode = trajectory(record(tmp_path / "e.jsonl", blobs, ["", ""], calls=(call(prompt_blob=sent),)), blobs)
    assert not isinstance(episode, LeftOut)
    (decision,) = episode.decisions
    assert decision.tokens is None
    assert [(m.role, m.text) for m in prompt_of(decision)] == list(prompt)


def test_the_final_checkers_take_precedence_over_the_rater(tmp_path: Path, blobs: BlobStore) -> None:
    checks = tuple(MilestoneCheck(achieved=True, evidence="") for _ in range(2))
    episode = trajectory(record(tmp_path / "e.jsonl", blobs, ["00", "10", "10"], milestone_checks=checks), blobs)
    assert not isinstance(episode, LeftOut) and episode.done == (0, 1, 2)


def test_checkers_count_for_the_tasks_own_milestones_only(tmp_path: Path, blobs: BlobStore) -> None:
    """A model's plan has as many milestones as the task's list, of which both are done."""
    checks = tuple(MilestoneCheck(achieved=True, evidence="") for _ in range(2))
    trace = record(tmp_path / "e.jsonl", blobs, ["00", "10", "10"], plans=("ab",), milestone_checks=checks)
    episode = trajectory(trace, blobs)
    assert not isinstance(episode, LeftOut) and episode.done == (0, 1, 1)


def test_an_episode_with_several_plans_gives_no_progress(tmp_path: Path, blobs: BlobStore) -> None:
    episode = trajectory(record(tmp_path / "e.jsonl", blobs, ["00", "100", "111"]), blobs)
    assert not isinstance(episode, LeftOut) and (episode.milestones, episode.done) == (0, (0, 0, 0))


@pytest.mark.parametrize(("plans", "found_done"), [(("ab", "ac"), (0, 0, 0)), (("ab", "ab"), (0, 1, 2))])
def test_a_new_plan_of_the_same_length_is_another_plan(
    tmp_path: Path, blobs: BlobStore, plans: tuple[str, ...], found_done: tuple[int, ...]
) -> None:
    """A re-plan keeps K, but counts of different plans cannot be compared."""
    episode = trajectory(record(tmp_path / "e.jsonl", blobs, ["00", "10", "11"], plans=plans), blobs)
    assert not isinstance(episode, LeftOut) and episode.done == found_done and episode.milestones == max(found_done)


LEFT_OUT: dict[str, tuple[dict[str, Any], LeftOut]] = {
    "killed": ({"outcome": None}, LeftOut.UNFINISHED),
    "broken": ({"outcome": "broken"}, LeftOut.BROKEN),
    "unjudged": ({"outcome": "unjudged"}, LeftOut.UNJUDGED),
    "played by a script": ({"calls": ()}, LeftOut.NO_PROMPT),
}


@pytest.mark.parametrize(("fields", "reason"), LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_reasons_for_leaving_episodes_out(
    tmp_path: Path, blobs: BlobStore, fields: dict[str, Any], reason: LeftOut
) -> None:
    assert trajectory(record(tmp_path / "e.jsonl", blobs, ["0", "1"], **fields), blobs) is reason


def test_a_selection_counts_everything(tmp_path: Path, blobs: BlobStore) -> None:
    good = record(tmp_path / "a.jsonl", blobs, ["0", "1"])
    bad = record(tmp_path / "b.jsonl", blobs, ["0", "0"], outcome="failure", score=None)
    none = record(tmp_path / "c.jsonl", blobs, ["0"])
    episode = select([(good, blobs), (bad, blobs), (none, blobs)])
    assert (len(episode.kept), episode.successes, dict(episode.left_out)) == (2, 1, {LeftOut.NO_DECISION: 1})


def test_the_same_actions_in_the_same_task_are_one_trajectory(tmp_path: Path, blobs: BlobStore) -> None:
    item = trajectory(record(tmp_path / "a.jsonl", blobs, ["0", "1"]), blobs)
    two = trajectory(record(tmp_path / "b.jsonl", blobs, ["0", "1"]), blobs)
    longer = trajectory(record(tmp_path / "c.jsonl", blobs, ["0", "0", "1"]), blobs)
    assert not isinstance(item, LeftOut) and not isinstance(two, LeftOut) and not isinstance(longer, LeftOut)
    assert item.identity == two.identity != longer.identity
