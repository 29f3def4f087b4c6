"""Asks the policy for one action."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from langgraph.runtime import Runtime

from agent.episode.approval import needs_approval
from agent.episode.batch import batch_of, doable
from agent.episode.changed_pages import idle_actions
from agent.episode.described_controls import as_written, grounded
from agent.episode.episode import Episode
from agent.episode.nodes.plan import may_replan
from agent.episode.policy import ActionProposal, Turn
from agent.episode.prompts import PolicyView
from agent.episode.refused_origins import problem, unreported
from agent.episode.resources import NOTHING, Provided
from agent.episode.state import State, Update
from envs.browser.session import BrowserSession
from envs.browser.uploads import uploadable
from envs.core.actions import Action, Status, Stop, UseTool, Wait
from envs.core.grounding import Description
from envs.core.observation import Observation


async def act(state: State, runtime: Runtime[Episode]) -> Update:
    """Asks the policy. An answer without an action becomes an event and a problem of the next turn, up to a limit."""
    episode = runtime.context
    begun = time.perf_counter()
    turn = await _turn(state, episode)
    with episode.paying("policy", episode.components.policy.spec):
        proposal = _checked(await episode.components.policy.propose(turn), episode)
    episode.keep_notes(proposal)
    episode.account(episode.policy_calls(proposal.calls))
    observation = await episode.observe()
    if proposal.action is None:
        episode.spend(act=time.perf_counter() - begun)
        return _no_action(state, episode, proposal)
    if (milestone := _unconfirmed(state, episode)) is not None:
        if isinstance(proposal.action, Stop):
            episode.spend(act=time.perf_counter() - begun)
            return _early_stop(state, episode, proposal, milestone)
        proposal = replace(proposal, then=tuple(one for one in proposal.then if not isinstance(one.action, Stop)))
    proposal = await grounded(episode, proposal, observation)
    episode.spend(act=time.perf_counter() - begun)
    if proposal.action is None:
        return _not_found(state, episode, proposal)
    episode.proposal = proposal
    episode.batch = batch_of(proposal.action, proposal.then, observation, episode.config.max_actions_per_turn)
    asks = proposal.checks or needs_approval(proposal.action, observation, episode.config.approve, episode.past)
    queued = 1 if episode.batch is None else episode.batch.size
    return Update(parse_errors=0, problems=[], approval="ask" if asks else None, queued=queued, asks_again=False)


async def _turn(state: State, episode: Episode) -> Turn:
    shown, answers = episode.config.show_plan, episode.components.answers
    context = await episode.context(state, plan=shown)
    if answers is not None:
        context = replace(context, instruction=answers.add_to(context.instruction))
    view = PolicyView(
        **context.shared(),
        language=episode.components.language,
        next_milestone=state.next_milestone if shown else None,
        shows_status=episode.components.full_planner,
        problems=(*_refused(episode, context.observation), *state.problems),
        last=episode.past[-1].result if episode.past else None,
        missed=_missed(episode),
        idle=idle_actions(episode.past),
        provided=await _provided(episode),
        tool_output=_tool_output(episode),
        note_remarks=episode.notebook.remarks,
        history_chars=episode.config.history_chars,
        max_notes=episode.config.max_notes,
    )
    identity = episode.identity
    no_op, described = _no_op(episode, view.observation)
    return Turn(identity.task, identity.attempt, state.step + 1, view, tuple(episode.past), no_op, described)


def _refused(episode: Episode, observation: Observation) -> tuple[str, ...]:
    """Reports each refused origin once, at the first turn after its first refusal.

    The line comes before other problems, because the compact style shows only the last problem."""
    line = problem(unreported(episode.steps, observation.blocked))
    return (line,) if line else ()


def _missed(episode: Episode) -> int | None:
    """See :attr:`agent.episode.prompts.PolicyView.missed`."""
    last = episode.past[-1] if episode.past else None
    if last is None or last.result is None or last.result.status is not Status.NO_SUCH_REF:
        return None
    numbers = {name: value for name, value in last.action if name in ("ref", "to_ref") and isinstance(value, int)}
    # The dragged element has a target, so the missing number is the other end.
    return numbers.get("to_ref" if last.target is not None else "ref")


def _tool_output(episode: Episode) -> str:
    """See :attr:`agent.episode.prompts.PolicyView.tool_output`."""
    last = episode.past[-1] if episode.past else None
    if last is None or last.result is None or not isinstance(last.action, UseTool):
        return ""
    return last.result.output


async def _provided(episode: Episode) -> Provided:
    """Returns the secrets and files that the session can type and upload, and the tools of the run."""
    if episode.provided is None:
        provided = await _provided_by(episode.session) if episode.session is not None else NOTHING
        episode.provided = replace(provided, tools=episode.components.tools.usages)
    return episode.provided


async def _provided_by(session: BrowserSession) -> Provided:
    files = await asyncio.to_thread(uploadable, session.settings.upload_folder)
    mask = session.secrets.mask
    return Provided(session.secrets.scopes, tuple(path for path in files if mask(path) == path))


def _no_op(episode: Episode, observation: Observation) -> tuple[Action | None, tuple[Description, ...]]:
    """See :attr:`agent.episode.policy.Turn.no_op`."""
    if not episode.steps:
        return None, ()
    last, _ = episode.steps[-1]
    if last.seen.digest != observation.digest or isinstance(last.action, Wait | UseTool):
        return None, ()
    return as_written(last)


def _checked(proposal: ActionProposal, episode: Episode) -> ActionProposal:
    """Rejects a Stop, maybe after further actions, whose answer does not fit the user's schema; the error goes into the
    next prompt, and nothing is done."""
    answers = episode.components.answers
    if answers is None or proposal.action is None:
        return proposal
    last = doable(proposal.action, proposal.then, episode.config.max_actions_per_turn)[-1]
    problem = answers.problem(last.answer) if isinstance(last, Stop) else None
    return proposal if problem is None else replace(proposal, action=None, then=(), error=problem)


def _unconfirmed(state: State, episode: Episode) -> str | None:
    """The open milestone that the policy is asked about if it stops; None where all are reached, where the page is not
    rated, and where it was asked about this one before.

    A stop at the end of a batch is left out instead: milestones are rated after the batch, so that the policy may stop
    with its next answer."""
    if not episode.components.confirms_stop or state.next_milestone is None:
        return None
    if episode.unrated or episode.reflecting is not None:
        return None
    text = state.milestones[state.next_milestone].text
    return None if text == state.open_at_stop else text


def _early_stop(state: State, episode: Episode, proposal: ActionProposal, milestone: str) -> Update:
    """Asks the policy again after a stop; the next prompt names the open milestone. A second stop is carried out."""
    episode.note(state.step + 1, "early_stop", f"{milestone} | {proposal.raw}", episode.take_notebook())
    problem = (
        f"not stopped: the milestone “{milestone}” is not reached; do what is missing, or stop again if nothing is"
    )
    return Update(parse_errors=0, problems=[*state.problems, problem], open_at_stop=milestone, asks_again=True)


def _no_action(state: State, episode: Episode, proposal: ActionProposal) -> Update:
    errors, reason = state.parse_errors + 1, episode.trace.mask(str(proposal.error))
    detail = f"{proposal.error} | {proposal.raw}"
    episode.note(state.step + 1, "parse_error", detail, episode.take_notebook())
    if errors >= episode.config.limits.max_parse_errors:
        return Update(
            parse_errors=errors,
            ended_by="error",
            error=f"no readable action in {errors} turns in a row (max_parse_errors): {reason}",
        )
    update = Update(parse_errors=errors, problems=[*state.problems, f"your answer was no action: {reason}"])
    if may_replan(state, episode) and (trigger := episode.components.replan_detector.unreadable(errors)) is not None:
        update.update(cause=trigger.cause, detail=trigger.detail)
    return update


def _not_found(state: State, episode: Episode, proposal: ActionProposal) -> Update:
    """Tells the policy which control was not found. Nothing of its answer was done."""
    errors, reason = state.parse_errors + 1, episode.trace.mask(proposal.error)
    episode.note(state.step + 1, "grounding_error", f"{proposal.error} | {proposal.raw}", episode.take_notebook())
    if errors >= episode.config.limits.max_parse_errors:
        return Update(
            parse_errors=errors,
            ended_by="error",
            error=f"no action that could be done in {errors} turns in a row (max_parse_errors): {reason}",
        )
    return Update(parse_errors=errors, problems=[*state.problems, f"nothing of your answer was done: {reason}"])
