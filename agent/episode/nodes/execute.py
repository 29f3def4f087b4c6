"""Executes the action: writes its intent, executes it, writes its commit."""

from __future__ import annotations

import time

from langgraph.runtime import Runtime

from agent.episode.action_names import in_words
from agent.episode.approval import MAX_DECLINES, NOBODY
from agent.episode.batch import cut_words
from agent.episode.episode import Episode, key_row
from agent.episode.policy import target_of
from agent.episode.request_approval import begin_step, declined_words
from agent.episode.state import State, Update
from agent.progress import StepDone
from envs.core.action_place import ActionPlace
from envs.core.actions import Action, ActionResult, Reason, Status, Stop, UseTool
from envs.core.observation import Box, Observation
from envs.core.past_actions import PageName, PastAction
from envs.core.trace import Commit, ElementKeyRecord, Intent, Rating
from envs.core.trace_store import now
from envs.observer.element_place import action_place
from planners.replan_triggers import StepSummary


async def execute(state: State, runtime: Runtime[Episode]) -> Update:
    """Executes an action only after its intent is on disk, and never a declined one. Held requests of a step without
    approval are decided during the step."""
    episode = runtime.context
    proposal, observation = episode.proposal, await episode.observe()
    assert proposal is not None and proposal.action is not None
    action, target = proposal.action, target_of(proposal.action, observation)
    intent = _write_intent(episode, state.step + 1, action, observation)
    await begin_step(
        episode, intent.step, action, words_of(action, observation, intent.place), approved=state.approval == "yes"
    )
    begun = time.perf_counter()
    result = _declined(state) or await _perform(episode, action, observation)
    episode.spend(execute=time.perf_counter() - begun)
    commit = Commit(step=intent.step, result=result, timings=episode.take_timings(), at=now())
    episode.trace.append(commit)
    words = action_text(episode, action)
    episode.add_summary(
        StepSummary(intent.step, words, observation.digest, result.status, state.z, state=intent.seen.state)
    )
    episode.refuse(result.blocked_requests)
    described = tuple(grounding.description for grounding in intent.groundings)
    past = PastAction(
        action,
        target,
        result,
        intent.place,
        PageName(observation.url, observation.title),
        described=described,
        notes=intent.notes,
    )
    episode.acted(past, intent, commit)
    _report(state, episode, intent, commit, observation)
    _check_downloads(episode)
    await episode.save_state()
    return await _after(state, episode, action, result)


def _output(action: Action, result: ActionResult) -> str:
    """The output of Find and Expand; what a tool returned has a part of its own in the prompt."""
    return "" if isinstance(action, UseTool) else result.output


async def _perform(episode: Episode, action: Action, observation: Observation) -> ActionResult:
    if not isinstance(action, UseTool):
        return await episode.environment.execute(action)
    begun = time.monotonic()
    result = await episode.components.tools.call(action, episode.trace.mask)
    return result.model_copy(update={"url": observation.url, "seconds": round(time.monotonic() - begun, 3)})


async def _after(state: State, episode: Episode, action: Action, result: ActionResult) -> Update:
    declines = state.declines + episode.take_declined()
    update = Update(
        step=state.step + 1,
        declines=declines,
        approval=None,
        queued=max(0, state.queued - 1),
        problems=[text for text in (_output(action, result), _cut(state, episode)) if text],
    )
    if isinstance(action, Stop) and result.status is Status.STOPPED:
        update.update(ended_by="stop", answer=None if action.answer is None else episode.trace.mask(action.answer))
    elif declines >= MAX_DECLINES:
        update.update(ended_by="declined")
    elif await episode.environment.done():
        update.update(ended_by="environment")
    return update


def _cut(state: State, episode: Episode) -> str:
    """Tells the policy after the last action of a batch how many its answer had beyond it."""
    return cut_words(episode.batch.cut) if episode.batch is not None and state.queued <= 1 else ""


def _write_intent(episode: Episode, step: int, action: Action, observation: Observation) -> Intent:
    proposal = episode.proposal
    assert proposal is not None
    intent = Intent(
        step=step,
        seen=episode.store_observation(observation),
        rating=_rating(episode),
        action=action,
        raw=proposal.raw,
        label=proposal.label,
        by_expert=proposal.by_expert,
        notes=proposal.notes,
        notebook=episode.take_notebook(),
        rationale=proposal.rationale,
        batch=None if episode.batch is None or episode.batch.size == 1 else episode.batch.where,
        target=_target_row(action, observation),
        target_box=_target_box(action, observation),
        groundings=tuple(grounding.with_texts(episode.trace.mask) for grounding in proposal.groundings),
        place=action_place(action, observation, episode.trace.mask),
        calls=episode.take_calls(),
        changed=episode.past[-1].changed if episode.past else None,
        at=now(),
    )
    episode.trace.append(intent)
    return intent


def _rating(episode: Episode) -> Rating:
    """The rating of the page. Later actions of a batch repeat the status alone: the page was not rated again."""
    rated = episode.rating
    again = episode.batch is not None and episode.batch.place > 1
    return Rating(z=rated.z, next_milestone=rated.next_milestone) if again else rated


def _check_downloads(episode: Episode) -> None:
    """Raises NotWritten where a download of this step could not be stored: the run ends, the commit is kept."""
    if episode.session is not None and episode.session.downloads.not_written is not None:
        raise episode.session.downloads.not_written


def _declined(state: State) -> ActionResult | None:
    """Returns the result of a declined action; None where the action may be executed."""
    match state.approval:
        case "no":
            return ActionResult(
                status=Status.BLOCKED,
                reason=Reason.DECLINED,
                message="a person declined this action; do not try it again",
            )
        case "nobody":
            return ActionResult(
                status=Status.BLOCKED, reason=Reason.NO_APPROVER, message=f"{NOBODY}; do not try it again"
            )
        case _:
            return None


def _report(state: State, episode: Episode, intent: Intent, commit: Commit, observation: Observation) -> None:
    index, spent = state.next_milestone, commit.timings
    words = episode.trace.mask(words_of(intent.action, observation, intent.place))
    episode.notify(
        StepDone(
            episode_id=episode.identity.episode_id,
            step=commit.step,
            action=action_text(episode, intent.action),
            words=words,
            status=commit.result.status,
            milestone=state.plan[index]["text"] if index is not None and index < len(state.plan) else "",
            z=state.z,
            seconds=spent.total,
            declined=_declined_words(state, words, commit.result),
        )
    )


def words_of(action: Action, observation: Observation, place: ActionPlace | None = None) -> str:
    """Returns the action in words, with the names of its elements in *observation* and its *place*."""
    to_ref = getattr(action, "to_ref", None)
    onto = observation.element(to_ref) if isinstance(to_ref, int) else None
    return in_words(action, target_of(action, observation), onto.key if onto is not None else None, place)


def _declined_words(state: State, words: str, result: ActionResult) -> str:
    match state.approval:
        case "no":
            return f"{words} (by a person)"
        case "nobody":
            return f"{words} ({NOBODY})"
        case _:
            return declined_words(words, result.held_requests)


def _target_row(action: Action, observation: Observation) -> ElementKeyRecord | None:
    key, ref = target_of(action, observation), getattr(action, "ref", None)
    return None if key is None or ref is None else key_row(ref, key)


def _target_box(action: Action, observation: Observation) -> Box | None:
    ref = getattr(action, "ref", None)
    element = observation.element(ref) if isinstance(ref, int) else None
    return None if element is None else element.box


def action_text(episode: Episode, action: Action) -> str:
    """Returns the action in the run's language, secrets masked."""
    return episode.trace.mask(episode.components.language.show(action))
