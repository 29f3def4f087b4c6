"""Chooses the next action of a batch, or drops the rest of it."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agent.episode.approval import needs_approval
from agent.episode.batch import BatchStop, advanced, dropped_words
from agent.episode.episode import Episode
from agent.episode.policy import ActionProposal
from agent.episode.refused_origins import unreported
from agent.episode.state import State, Update
from envs.core.action_languages import Parsed


async def advance(state: State, runtime: Runtime[Episode]) -> Update:
    """Chooses the next action of the policy's last answer if the page is still the one that it was planned for.

    Else the rest is dropped: an event and the next prompt say so, and the policy is asked again. An action that needs
    approval is dropped, too, so that a person is asked only about actions that were chosen on the page as it is.
    """
    episode = runtime.context
    following = await _following(episode)
    if isinstance(following, BatchStop):
        return _dropped(state, episode, following)
    episode.proposal = ActionProposal(following.action, raw="", notes=following.notes, groundings=following.groundings)
    return Update(problems=[])


async def _following(episode: Episode) -> Parsed | BatchStop:
    observation, result = await episode.observe(), episode.past[-1].result
    assert episode.batch is not None and result is not None
    news = bool(unreported(episode.steps, observation.blocked))
    step = advanced(episode.batch, result, observation, refused_news=news)
    if isinstance(step, BatchStop):
        return step
    batch, following = step
    if needs_approval(following.action, observation, episode.config.approve, episode.past):
        return BatchStop.APPROVAL
    episode.batch = batch
    return following


def _dropped(state: State, episode: Episode, stop: BatchStop) -> Update:
    assert episode.batch is not None
    words = dropped_words(stop, episode.batch)
    episode.note(state.step, "batch_stopped", f"{stop.name.lower()}: {words}")
    episode.batch = None
    return Update(queued=0, problems=[*state.problems, words])
