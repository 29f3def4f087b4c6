"""Finds the controls of an answer that the policy described in words, before anything of the answer is done.

All descriptions are looked for on the screenshot that the policy answered to. Afterwards the actions name controls by
number, or points, like those of any other run: traces, approval, batches and replay need no grounder.
"""

from __future__ import annotations

from dataclasses import replace

from playwright.async_api import Error as PlaywrightError

from agent.episode.element_at_point import ControlAt, Found, as_described, control_at, placed
from agent.episode.episode import Episode, call_record, prompt_json
from agent.episode.grounder import Located, ModelGrounder
from agent.episode.policy import ActionProposal
from envs.core.action_languages import Parsed
from envs.core.actions import FORM_FILLING, Action
from envs.core.errors import EnvError
from envs.core.grounding import ControlField, Description, Grounding
from envs.core.observation import Observation
from envs.core.trace import Intent
from models.base import ModelUnavailable
from models.vision.coordinates import Point
from models.vision.grounding import PointProblem


class NotFound(Exception):
    """A described control was not found. The message tells the policy why; it holds the policy's words."""


async def grounded(episode: Episode, proposal: ActionProposal, observation: Observation) -> ActionProposal:
    """Returns *proposal* with the controls that it describes; without an action, and with the error, if one of them was
    not found. The calls of the grounder are accounted.

    Raises :class:`models.base.ModelError` if the grounder does not answer."""
    answer = _to_be_done(proposal, episode.config.max_actions_per_turn)
    if not any(parsed.described for parsed in answer):
        return proposal
    grounder = episode.components.grounder
    if grounder is None:
        raise ModelUnavailable(
            "the policy describes controls in words, and the run has no grounder: name one with --grounder"
        )
    try:
        first, *then = [await _with_controls(episode, grounder, parsed, observation) for parsed in answer]
    except NotFound as error:
        return replace(proposal, action=None, then=(), error=str(error))
    rest = proposal.then[len(then) :]  # never done; counted as too many
    return replace(proposal, action=first.action, groundings=first.groundings, then=(*then, *rest))


def as_written(intent: Intent) -> tuple[Action, tuple[Description, ...]]:
    """The action of *intent* as the policy wrote it, and what it described."""
    described = tuple(Description(grounding.field, grounding.description) for grounding in intent.groundings)
    return as_described(intent.action, intent.groundings), described


def _to_be_done(proposal: ActionProposal, most: int) -> list[Parsed]:
    """The actions of the answer that a batch may hold, see :func:`agent.episode.batch.batch_of`."""
    assert proposal.action is not None
    answer = [Parsed(proposal.action, described=proposal.described), *proposal.then]
    followed = next((i for i, parsed in enumerate(answer) if not isinstance(parsed.action, FORM_FILLING)), len(answer))
    return answer[: min(followed + 1, most)]


async def _with_controls(episode: Episode, grounder: ModelGrounder, parsed: Parsed, observation: Observation) -> Parsed:
    """*parsed* with its controls. Raises NotFound."""
    found: list[tuple[ControlField, Found]] = []
    groundings: list[Grounding] = []
    for description in parsed.described:
        located = await _located(episode, grounder, description.words, observation)
        point = _usable_point(located, description)
        at = await _control(episode, point, observation, parsed.action, description.field)
        found.append((description.field, at))
        groundings.append(_grounding(description, located, at))
    action = placed(parsed.action, found, observation) if found else parsed.action
    if action is None:
        raise NotFound(_no_control(parsed.action, groundings))
    return replace(parsed, action=action, groundings=tuple(groundings))


async def _located(episode: Episode, grounder: ModelGrounder, words: str, observation: Observation) -> Located:
    with episode.paying("grounder", grounder.spec):
        located = await grounder.locate(words, observation)
    episode.account(
        call_record("grounder", call.reply, episode.blobs.put_json(prompt_json(call.messages)), call.error)
        for call in located.calls
    )
    return located


def _usable_point(located: Located, description: Description) -> Point:
    if isinstance(located.point, PointProblem):
        raise NotFound(
            f'"{description.words}" was not found on the screenshot: the answer of the model that looks for it '
            f"{located.point}. Describe it in other words; scroll to it if it is not in the view"
        )
    return located.point


async def _control(
    episode: Episode, point: Point, observation: Observation, action: Action, field: ControlField
) -> Found:
    """Asks the page, or the boxes of the observation where the page does not answer."""
    reached: ControlAt | None = None if episode.session is None else episode.session.control_at
    try:
        return await control_at(point, observation, action, field, reached)
    except (EnvError, PlaywrightError, TimeoutError):
        return await control_at(point, observation, action, field, None)


def _grounding(description: Description, located: Located, found: Found) -> Grounding:
    element = found.element
    return Grounding(
        field=description.field,
        description=description.words,
        answer=located.answer,
        point=(round(found.point.x, 2), round(found.point.y, 2)),
        by=found.by,
        distance=found.distance,
        role="" if element is None else element.key.role,
        name="" if element is None else element.key.name,
    )


def _no_control(action: Action, groundings: list[Grounding]) -> str:
    missing = next(grounding for grounding in groundings if grounding.by == "point")
    x, y = missing.point
    return (
        f'"{missing.description}" was found at {x:g},{y:g}, where no control is that this action ({action.kind}) can '
        "use. Describe the control itself"
    )
