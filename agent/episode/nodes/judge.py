"""The outcome: from the task's own checker; where there is none, from the outcome judge."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agent.episode.episode import Ending, Episode, WorldLost, call_record
from agent.episode.nodes.reflect import rate
from agent.episode.state import State, Update
from envs.core.record import storable
from envs.core.tasks import Score
from envs.core.trace import Rating
from judges.base import Ending as SeenEnding
from judges.base import Verdict
from judges.fuzzy import comparisons
from models.base import ModelError, ModelOutOfTime


async def judge(state: State, runtime: Runtime[Episode]) -> Update:
    """Where a checker exists, it decides; judge and rater are recorded beside it. A judge's error is never a verdict.

    Where the judge alone can decide and gives no verdict, the episode ends unjudged and can be resumed: then it is
    judged again. Where that is for lack of time, the episode ends by `max_seconds`. A checker that compares by meaning
    and cannot, because its model gave no answer, leaves the episode broken, and it can be resumed as well.

    Raises WorldLost where the world itself is what failed, and may be replaced.
    """
    episode = runtime.context
    ending = episode.ending = Ending()
    episode.begin_judging()
    episode.rating = rating = await _last_rating(state, episode)
    ending.checks = await episode.environment.check_milestones()
    ending.score = await _score(state, episode)
    verdict, failed = await _verdict(state, episode)
    if verdict is not None:
        ending.verdict = storable(f"{'YES' if verdict.success else 'NO'}: {verdict.reason}")
    if ending.score is not None:
        ending.outcome, ending.judged_by = ending.score.status, "checker"
    elif verdict is not None:
        ending.outcome, ending.judged_by = "success" if verdict.success else "failure", "judge"
    elif failed is not None:
        ending.resumable = True
        # A limit is a result: the event says what was asked then, and the episode has no error.
        ending.unjudged = "" if isinstance(failed, ModelOutOfTime) else f"not judged: {_told(failed)}"
    update = Update(z=rating.z, next_milestone=rating.next_milestone)
    if isinstance(failed, ModelOutOfTime):
        update.update(ended_by="max_seconds")
    return update


async def _last_rating(state: State, episode: Episode) -> Rating:
    """Of the page that the episode ended on; where the rater fails, what was reached before stands."""
    try:
        return (await rate(state, episode))[0]
    except ModelError as error:
        episode.note(state.step, "rater_error", _told(error))
        return Rating(z=state.z, next_milestone=state.next_milestone)


async def _score(state: State, episode: Episode) -> Score | None:
    """The checker's word. What a model that it asked gave no answer to is not the world's failing."""
    with comparisons() as asked:
        try:
            score = await episode.environment.score(state.answer)
        finally:
            episode.account(call_record("judge", reply) for reply in asked.replies)
    if score is not None and score.status == "broken":
        episode.ending.resumable = asked.failed
        if episode.may_retry and not asked.failed:
            raise WorldLost(score.evidence)
    return score


async def _verdict(state: State, episode: Episode) -> tuple[Verdict | None, ModelError | None]:
    """The outcome judge's word, or its failure to answer, which is an event."""
    if episode.team.judge is None:
        return None, None
    seen = SeenEnding(
        instruction=episode.start.instruction,
        history=episode.history,
        observation=await episode.look(),
        answer=state.answer,
    )
    try:
        with episode.paying("judge", episode.team.judge.spec):
            verdict = await episode.team.judge.judge(seen)
    except ModelError as error:
        episode.note(state.step, "judge_error", _told(error))
        return None, error
    episode.account([call_record("judge", verdict.reply)])
    return verdict, None


def _told(error: ModelError) -> str:
    return f"{type(error).__name__}: {error}"
