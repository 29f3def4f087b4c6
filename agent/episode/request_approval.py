"""Asks for approval of the held requests of a step without approval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent.config import ActionClass
from agent.episode.approval import NOBODY, ApprovalRequest
from agent.episode.episode import Episode
from envs.browser.session import BrowserSession
from envs.core.actions import WAITING, Action
from envs.security.held_requests import HeldRequest
from envs.security.request_holding import Ask

MAX_DETAIL: Final = 2_000
"""Characters of one event of the trace."""


async def begin_step(episode: Episode, step: int, action: Action, words: str, *, approved: bool) -> None:
    """Assigns requests and downloads of the session's pages to this step; the question shows *words*. Environments
    without a session hold no requests."""
    session = episode.session
    if session is None:
        return
    await session.holding.wait_until_decided()
    if isinstance(action, WAITING):
        return
    session.holding.ask = _asker(episode, session, step, words)
    session.holding.begin(approved=approved)
    if session.settings.downloads == "approved":
        session.downloads.permitted = approved


def declined_words(words: str, held: Sequence[HeldRequest]) -> str:
    """Returns the text for a step with declined requests; empty where all were sent."""
    refused = [request for request in held if not request.sent]
    if not refused:
        return ""
    by = NOBODY if refused[0].answer == "nobody" else "by a person"
    more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
    return f"{words}: {refused[0].method_in_words} {refused[0].place}{more} ({by})"


def _asker(episode: Episode, session: BrowserSession, step: int, words: str) -> Ask:
    async def ask(requests: tuple[HeldRequest, ...]) -> bool | None:
        approved = await episode.approver(
            ApprovalRequest(
                episode_id=episode.identity.episode_id,
                step=step,
                action=words,
                classes=_classes(episode.config.approve, requests),
                url=session.secrets.mask(session.url),
                instruction=episode.start.instruction,
                requests=requests,
            )
        )
        sent = "; ".join(request.in_words() for request in requests)
        by = f" ({NOBODY})" if approved is None else ""
        episode.note(step, "approved" if approved else "declined", f"{words} sends {sent}"[:MAX_DETAIL] + by)
        episode.declined_requests += not approved
        return approved

    return ask


def _classes(gated: tuple[ActionClass, ...], requests: Sequence[HeldRequest]) -> tuple[ActionClass, ...]:
    if "all" in gated:
        return ("all",)
    classes = {"navigation" if each.changes_nothing or "submit" not in gated else "submit" for each in requests}
    return tuple(name for name in gated if name in classes)
