"""The outcome: from the task's own checker; where there is none, from the outcome judge."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agent.episode import Ending, Episode, WorldLost, call_record
from agent.nodes.reflect import rate
from agent.state import State, Update
from envs.record import storable
from envs.trace import Rating
from judges.base import Ending as SeenEnding
from judges.base import Verdict
from judges.fuzzy import comparisons
from models.base import ModelError, ModelOutOfTime


async def judge(state: State, runtime: Runtime[Episode]) -> Update:
    """Where a checker exists, it decides; judge and rater are recorded beside it. A judge's error is never a verdict.

    Where time ran out before a judge had answered, the episode ends by that, unjudged.

    Raises WorldLost where the world itself is what failed, and may be replaced.
    """
    episode = runtime.context
    ending = episode.ending = Ending()
    episode.begin_judging()
    rating, unrated = await _last_rating(state, episode)
    episode.rating = rating
    ending.checks = await episode.environment.check_milestones()
    with comparisons() as replies:
        try:
            ending.score = await episode.environment.score(state.answer)
        finally:
            episode.account(call_record("judge", reply) for reply in replies)
    if ending.score is not None and ending.score.status == "broken" and episode.may_retry:
        raise WorldLost(ending.score.evidence)
    if unrated is not None:
        if ending.score is None and not isinstance(unrated, ModelOutOfTime):
            raise unrated
        episode.note(state.step, "rater_error", f"{type(unrated).__name__}: {unrated}")
    late = False
    try:
        verdict = await _verdict(state, episode)
    except ModelOutOfTime as error:
        episode.note(state.step, "judge_error", f"{type(error).__name__}: {error}")
        verdict, late = None, True
    if verdict is not None:
        ending.verdict = storable(f"{'YES' if verdict.success else 'NO'}: {verdict.reason}")
    if ending.score is not None:
        ending.outcome, ending.judged_by = ending.score.status, "checker"
    elif verdict is not None:
        ending.outcome, ending.judged_by = "success" if verdict.success else "failure", "judge"
    update = Update(z=list(rating.z), next_milestone=rating.next_milestone)
    if late:
        update.update(ended_by="max_seconds")
    return update


async def _last_rating(state: State, episode: Episode) -> tuple[Rating, ModelError | None]:
    """Of the page that the episode ended on; where the rater fails, what was reached before stands."""
    try:
        return (await rate(state, episode))[0], None
    except ModelError as error:
        return Rating(z=tuple(state.z), next_milestone=state.next_milestone), error


async def _verdict(state: State, episode: Episode) -> Verdict | None:
    """The outcome judge's word; beside a checker its failure to answer is an event, alone it is the run's error."""
    if episode.team.judge is None:
        return None
    seen = SeenEnding(
        instruction=episode.start.instruction,
        history=tuple(state.history),
        observation=await episode.look(),
        answer=state.answer,
    )
    try:
        with episode.paying("judge", episode.team.judge.spec):
            verdict = await episode.team.judge.judge(seen)
    except ModelError as error:
        if episode.ending.score is None:
            raise
        episode.note(state.step, "judge_error", f"{type(error).__name__}: {error}")
        return None
    episode.account([call_record("judge", verdict.reply)])
    return verdict
