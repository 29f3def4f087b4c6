"""Determines the outcome by the task's checker; without a checker, by the outcome judge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from langgraph.runtime import Runtime

from agent.episode.episode import Assessment, EnvironmentLost, Episode, call_record
from agent.episode.nodes.reflect import rate
from agent.episode.state import State, Update
from envs.core.record import storable
from envs.core.tasks import Score
from envs.core.trace import Commit, Rating
from judges.base import Ending, Verdict
from judges.ending import EndedEpisode, complete_ending
from judges.fuzzy import comparisons
from models.base import ModelError, ModelOutOfTime, ModelRejected


async def judge(state: State, runtime: Runtime[Episode]) -> Update:
    """Judges the episode. A checker decides where there is one, unless the run leaves the outcome to the judge; judge
    and rater are recorded beside it.

    An error of the judge is never a verdict. Without the verdict that decides the episode ends unjudged; a resume
    judges it again. Where the time ran out, it ends by `max_seconds`. Where a checker that compares by meaning
    gets no answer from its model, the episode is broken and can be resumed.

    Raises EnvironmentLost where the environment failed and may be replaced.
    """
    episode = runtime.context
    assessment = episode.assessment = Assessment()
    episode.begin_judging()
    episode.rating = rating = await _last_rating(state, episode)
    assessment.checks = await episode.environment.check_milestones()
    assessment.score = await _score(state, episode)
    verdict, failed = await _verdict(state, episode)
    if verdict is not None:
        assessment.verdict = storable(f"{'YES' if verdict.success else 'NO'}: {verdict.reason}")
        assessment.verdict_score = verdict.score
    score = assessment.score
    if score is not None and (episode.config.outcome == "checker" or score.status == "broken"):
        assessment.outcome, assessment.judged_by = score.status, "checker"
    elif verdict is not None:
        assessment.outcome, assessment.judged_by = "success" if verdict.success else "failure", "judge"
    elif failed is not None:
        assessment.resumable = True
        assessment.refused = "judge" if isinstance(failed, ModelRejected) else None
        # A limit is a result, not an error; the event names the pending call.
        assessment.unjudged = "" if isinstance(failed, ModelOutOfTime) else f"not judged: {_error_text(failed)}"
    update = Update(z=rating.z, next_milestone=rating.next_milestone)
    if isinstance(failed, ModelOutOfTime):
        update.update(ended_by="max_seconds")
    return update


async def _last_rating(state: State, episode: Episode) -> Rating:
    """Rates the last page; if no time is left for it, returns the last known status."""
    try:
        return (await rate(state, episode))[0]
    except ModelOutOfTime as error:
        episode.degrade("rater", state.step, error)
        return Rating(z=state.z, next_milestone=state.next_milestone)


async def _score(state: State, episode: Episode) -> Score | None:
    """Returns the checker's score. A missing answer of the checker's model is not a failure of the environment, and
    neither is one that came too late. Raises EnvError where the browser died and is not restarted: a checker would take
    its pages for ones that the policy left."""
    if episode.session is not None and not episode.session.alive:
        await episode.environment.observe()
    with comparisons() as compared, episode.calling("judge"):
        try:
            score = await episode.environment.score(state.answer)
        finally:
            episode.account(call_record("judge", reply) for reply in compared.replies)
    if score is not None and score.status == "broken":
        episode.assessment.resumable = compared.failed
        if episode.may_retry and not compared.failed:
            raise EnvironmentLost(score.evidence)
    return score


async def _verdict(state: State, episode: Episode) -> tuple[Verdict | None, ModelError | None]:
    """Returns the verdict of the outcome judge, or its error, which is also an event."""
    if episode.components.judge is None:
        return None, None
    ending = await _ending(state, episode)
    try:
        with episode.paying("judge", episode.components.judge.spec):
            verdict = await episode.components.judge.judge(ending)
    except ModelError as error:
        episode.note(state.step, "judge_error", _error_text(error))
        return None, error
    episode.account([call_record("judge", verdict.reply)])
    return verdict, None


async def _ending(state: State, episode: Episode) -> Ending:
    """What the outcome judge is shown. Page texts and actions have their secrets masked."""
    context = await episode.context(replace(state, z=episode.rating.z), "judge")
    ending = Ending(**context.shared(), answer=state.answer)
    steps = [(intent, _masked(commit, episode.trace.mask)) for intent, commit in episode.steps]
    record = EndedEpisode(ending, steps, episode.rating, episode.blobs)
    return await asyncio.to_thread(complete_ending, record)


def _masked(commit: Commit | None, mask: Callable[[str], str]) -> Commit | None:
    """*commit* with the output of its action masked."""
    if commit is None or not commit.result.output:
        return commit
    result = commit.result.model_copy(update={"output": mask(commit.result.output)})
    return commit.model_copy(update={"result": result})


def _error_text(error: ModelError) -> str:
    return f"{type(error).__name__}: {error}"
