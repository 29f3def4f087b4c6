"""Recovery of episodes from a table of unfinished traces."""

from __future__ import annotations

import pytest

from agent.run.resume import RecoveredEpisode, rebuilt_state, recover
from envs.core.action_languages import PROGRAM
from envs.core.action_place import ActionPlace
from envs.core.actions import Action, ActionResult, Click, Find, Status, Stop, Type
from envs.core.notes import Note, Notebook
from envs.core.past_actions import PageName
from envs.core.tasks import Milestone, TaskRef
from envs.core.trace import (
    Call,
    Commit,
    ElementKeyRecord,
    EndedBy,
    Event,
    Footer,
    Header,
    Intent,
    Line,
    ObservationRecord,
    Outcome,
    PlanRecord,
    Rating,
    Timings,
    Totals,
)

A, B, C = (Milestone(id=name, text=f"do {name}") for name in "abc")
HEADER = Header(
    run_id="r",
    episode_id="e",
    task=TaskRef(suite="s", name="t"),
    instruction="i",
    category="c",
    config={},
    versions={},
    started_at="",
)
SEEN = ObservationRecord(url="u", title="t", digest="d" * 16, text_blob="", keys_blob="", controls_total=1)
ROW = ElementKeyRecord(ref=1, frame="", role="button", name="Buy", ordinal=0, digest="0" * 8)


def plan(step: int, *milestones: Milestone, cause: str = "initial") -> PlanRecord:
    return PlanRecord(step=step, cause=cause, milestones=milestones, planner="p")  # pyright: ignore[reportArgumentType]


def intent(step: int, action: Action, *z: bool) -> Intent:
    call = Call(role="policy", model="m", tokens_in=10, tokens_out=2, tokens_thinking=3, cost_usd=0.5)
    return Intent(step=step, seen=SEEN, rating=Rating(z=z), action=action, raw="", target=ROW, calls=(call,), at="")


def commit(step: int, status: Status = Status.OK, output: str = "") -> Commit:
    result = ActionResult(status=status, output=output)
    return Commit(step=step, result=result, timings=Timings(observe=1, act=2), at="")


def event(step: int, name: str) -> Event:
    return Event(step=step, name=name, at="")


CLICK, TYPE = Click(ref=1), Type(ref=1, text="bob")
ONE_STEP = (intent(1, CLICK), commit(1))
CASES: list[tuple[str, tuple[Line, ...], int, list[Action], int | None]] = [
    # id, lines after header and plan, last step that counts, actions to replay, step left open
    ("nothing-done", (), 0, [], None),
    ("one-done", ONE_STEP, 1, [CLICK], None),
    ("one-open", (intent(1, CLICK),), 0, [], 1),
    ("second-open", (*ONE_STEP, intent(2, TYPE)), 1, [CLICK], 2),
    ("voided", (*ONE_STEP, intent(2, TYPE), event(2, "void")), 1, [CLICK], None),
    (
        "voided-and-done",
        (*ONE_STEP, intent(2, TYPE), event(2, "void"), intent(2, CLICK), commit(2)),
        2,
        [CLICK, CLICK],
        None,
    ),
    ("uncertain", (*ONE_STEP, intent(2, TYPE), event(2, "uncertain")), 2, [CLICK], None),
    ("uncertain-and-on", (intent(1, TYPE), event(1, "uncertain"), intent(2, CLICK), commit(2)), 2, [CLICK], None),
    ("other-events", (*ONE_STEP, event(1, "resumed"), event(2, "parse_error")), 1, [CLICK], None),
    ("blocked-is-not-replayed", (intent(1, CLICK), commit(1, Status.BLOCKED)), 1, [], None),
    ("crashed-is-not-replayed", (intent(1, CLICK), commit(1, Status.CRASHED)), 1, [], None),
    ("stop-is-not-replayed", (*ONE_STEP, intent(2, Stop()), commit(2, Status.STOPPED)), 2, [CLICK], None),
]


@pytest.mark.parametrize(
    ("lines", "step", "replayed", "left_open"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_what_counts_after_a_cut(
    lines: tuple[Line, ...], step: int, replayed: list[Action], left_open: int | None
) -> None:
    recovered = recover((HEADER, plan(1), *lines))
    assert recovered.step == step
    assert list(recovered.replayable()) == replayed
    assert (recovered.open.step if recovered.open else None) == left_open
    assert len(recovered.past()) == len(recovered.step_summaries(PROGRAM)) == len(recovered.sent)


def test_a_trace_must_begin_with_its_header() -> None:
    with pytest.raises(ValueError, match="begins with a header"):
        recover((plan(1),))


def test_milestones_are_carried_over_a_new_plan_and_counted() -> None:
    recovered = recover((HEADER, plan(1, A, B), intent(1, CLICK, True, False), commit(1), plan(2, A, C, cause="loop")))
    state = rebuilt_state(recovered)
    assert (state.milestones, state.z, state.next_milestone) == ((A, C), (True, False), 1)
    assert (recovered.replans, recovered.planned_at) == (1, 1)


def test_spending_is_summed_over_calls_and_seconds_without_downtime() -> None:
    usage_tracker = recover((HEADER, plan(1), *ONE_STEP, intent(2, TYPE))).usage_tracker
    totals = usage_tracker.totals(1, 0.5)
    assert (totals.tokens_in, totals.tokens_out, totals.cost_usd, totals.model_calls) == (20, 10, 1.0, 2)
    assert totals.seconds == 3.5


def decided(lines: tuple[Line, ...], *, happened: bool) -> RecoveredEpisode:
    recovered = recover((HEADER, plan(1), *lines))
    recovered.decide(happened=happened)
    return recovered


def test_an_uncertain_action_is_shown_to_the_policy_and_counts() -> None:
    recovered = decided((*ONE_STEP, intent(2, TYPE)), happened=True)
    state = rebuilt_state(recovered)
    assert state.step == 2
    assert 'type "bob" into button "Buy"' in state.problems[0] and "do not repeat it blindly" in state.problems[0]
    assert recovered.past()[-1].log_line().endswith("unknown whether it happened")


def test_a_void_action_leaves_no_mark() -> None:
    recovered = decided((*ONE_STEP, intent(2, TYPE)), happened=False)
    state = rebuilt_state(recovered)
    assert (state.step, state.problems, len(recovered.past())) == (1, [], 1)


def test_a_committed_stop_leaves_only_the_judging() -> None:
    state = rebuilt_state(
        recover((HEADER, plan(1), *ONE_STEP, intent(2, Stop(answer="42")), commit(2, Status.STOPPED)))
    )
    assert (state.ended_by, state.answer) == ("stop", "42")


def test_what_a_person_declined_and_what_could_not_be_read_still_counts() -> None:
    declined = [
        line
        for step in (1, 2, 3)
        for line in (event(step, "declined"), intent(step, CLICK), commit(step, Status.BLOCKED))
    ]
    state = rebuilt_state(recover((HEADER, plan(1), *declined[:6])))
    assert (state.declines, state.ended_by) == (2, None)
    state = rebuilt_state(recover((HEADER, plan(1), *declined)))
    assert (state.declines, state.ended_by) == (3, "declined")
    unread = (event(2, "parse_error"), event(2, "parse_error"))
    assert rebuilt_state(recover((HEADER, plan(1), *ONE_STEP, *unread))).parse_errors == 2
    assert rebuilt_state(recover((HEADER, plan(1), *unread, *ONE_STEP))).parse_errors == 0


def test_an_action_is_declined_by_its_event_only() -> None:
    refused = (
        intent(1, CLICK),
        Commit(step=1, result=ActionResult(status=Status.BLOCKED, message="x-declined"), timings=Timings(), at=""),
    )
    assert [sent.declined for sent in recover((HEADER, plan(1), *refused)).sent] == [False]
    assert [sent.declined for sent in recover((HEADER, plan(1), event(1, "declined"), *refused)).sent] == [True]
    approved_later = (event(1, "declined"), event(1, "approved"), *refused)
    assert [sent.declined for sent in recover((HEADER, plan(1), *approved_later)).sent] == [False]


def footer(outcome: Outcome, ended_by: EndedBy, answer: str | None = None) -> Footer:
    planned = Call(role="planner", model="m", tokens_in=7, seconds=100.0)
    return Footer(
        outcome=outcome,
        ended_by=ended_by,
        judged_by="none",
        answer=answer,
        totals=Totals(steps=1, seconds=150.0),
        error="ModelBusy: HTTP 503",
        resumable=True,
        calls=(planned,),
        at="",
    )


STOP = (intent(2, Stop(answer="42")), commit(2, Status.STOPPED))
ENDINGS: list[tuple[str, tuple[Line, ...], Footer, int, EndedBy | None]] = [
    # id, lines after header and plan, the footer that a model's failure left, last step, how the episode had ended
    ("broken-in-the-middle", ONE_STEP, footer("broken", "error"), 1, None),
    ("not-judged-after-stop", (*ONE_STEP, *STOP), footer("unjudged", "stop", "42"), 2, "stop"),
    ("not-judged-after-a-limit", ONE_STEP, footer("unjudged", "max_steps"), 1, "max_steps"),
    ("not-judged-after-the-time", ONE_STEP, footer("unjudged", "max_seconds"), 1, "max_seconds"),
    ("out-of-time-after-stop", (*ONE_STEP, *STOP), footer("unjudged", "max_seconds", "42"), 2, "stop"),
    ("not-judged-after-the-worlds-end", ONE_STEP, footer("unjudged", "environment"), 1, "environment"),
    ("not-compared", (*ONE_STEP, *STOP), footer("broken", "stop", "42"), 2, "stop"),
]


@pytest.mark.parametrize(
    ("lines", "end", "step", "ended_by"), [pytest.param(*case[1:], id=case[0]) for case in ENDINGS]
)
@pytest.mark.parametrize("killed", [False, True], ids=["", "and killed while it was resumed"])
def test_the_footer_after_a_model_failure_decides_how_it_resumes(
    lines: tuple[Line, ...], end: Footer, step: int, ended_by: EndedBy | None, killed: bool
) -> None:
    recovered = recover((HEADER, plan(1), *lines, end, *((event(step, "resumed"),) if killed else ())))
    state = rebuilt_state(recovered)
    assert (recovered.step, state.step, state.ended_by) == (step, step, ended_by)
    assert state.answer == ("42" if step == 2 else None)


def test_steps_after_a_broken_footer_count() -> None:
    two = (intent(2, TYPE), commit(2))
    recovered = recover((HEADER, plan(1), *ONE_STEP, footer("broken", "error"), event(1, "resumed"), *two))
    assert (recovered.step, recovered.ended, rebuilt_state(recovered).ended_by) == (2, None, None)


def test_a_failed_call_counts_in_usage_and_the_outage_does_not_count_as_time() -> None:
    usage_tracker = recover((HEADER, plan(1), *ONE_STEP, footer("broken", "error"))).usage_tracker
    assert (usage_tracker.tokens_in, usage_tracker.seconds_before) == (10 + 7, 3.0)


def test_a_replan_that_could_not_be_read_counts_as_one() -> None:
    unread = (event(2, "planner_error"), *ONE_STEP)
    assert recover((HEADER, event(1, "planner_error"), plan(1), *unread)).replans == 1


def test_the_last_find_output_is_shown_again() -> None:
    state = rebuilt_state(recover((HEADER, plan(1), intent(1, Find(text="x")), commit(1, output="line 7: x"))))
    assert state.problems == ["line 7: x"]


def noting(step: int, *texts: str, remarks: tuple[str, ...] = ()) -> Intent:
    notes = tuple(Note(number=number, text=text) for number, text in enumerate(texts, 1))
    return intent(step, CLICK).model_copy(update={"notebook": Notebook(notes=notes, remarks=remarks)})


@pytest.mark.parametrize(
    ("lines", "happened", "texts", "remarks"),
    [
        (ONE_STEP, False, (), ()),
        ((noting(1, "a"), commit(1), intent(2, CLICK), commit(2)), False, ("a",), ()),
        ((noting(1, "a"), commit(1), noting(2, "a", "b"), commit(2)), False, ("a", "b"), ()),
        ((noting(1, "a"), commit(1), noting(2), commit(2)), False, (), ()),
        ((noting(1, "a"), commit(1), noting(2, "b")), True, ("b",), ()),
        ((noting(1, "a"), commit(1), noting(2, "b")), False, ("a",), ()),
        ((noting(1, "a", remarks=("cut",)), commit(1)), False, ("a",), ("cut",)),
        ((noting(1, "a", remarks=("cut",)), commit(1), intent(2, CLICK), commit(2)), False, ("a",), ()),
        (
            (
                *ONE_STEP,
                event(2, "parse_error").model_copy(update={"notebook": Notebook(notes=(Note(number=1, text="a"),))}),
            ),
            False,
            ("a",),
            (),
        ),
    ],
    ids=["older", "kept", "added", "removed", "uncertain", "void", "remark", "read-remark", "no-action"],
)
def test_the_notes_of_answers_that_count_are_restored(
    lines: tuple[Line, ...], happened: bool, texts: tuple[str, ...], remarks: tuple[str, ...]
) -> None:
    recovered = decided(lines, happened=happened)
    notebook = recovered.notebook
    assert (tuple(note.text for note in notebook.notes), notebook.remarks) == (texts, remarks)


def test_past_actions_of_a_trace_say_what_was_meant_and_where() -> None:
    meant = intent(1, CLICK).model_copy(update={"place": ActionPlace(where='in row "17"')})
    (past,) = recover((HEADER, meant, commit(1))).past()
    assert past.full_line() == 'click button "Buy" in row "17"'
    assert past.page == PageName("u", "t")
