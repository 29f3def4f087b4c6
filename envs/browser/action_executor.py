"""Executes actions on the front tab with real browser input.

Pointer and keyboard input goes through the browser, at a point that was hit-tested just before, so the page receives
the same events as from a person. A script in the isolated world is used only where input is not portable (selecting an
option, filling a date). The session applies the timeouts.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urljoin

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page, Request, Response

from envs.browser.bounded_calls import cancel
from envs.browser.dialogs import Dialogs
from envs.browser.dragging import drag, drag_onto
from envs.browser.form_input import OK, choose, type_into
from envs.browser.request_watch import is_for_tab
from envs.browser.settle import differs_from_observation
from envs.browser.step_clock import StepClock
from envs.browser.tabs import Tabs
from envs.browser.text_entry import TextEntry, TypedText
from envs.browser.traffic import Traffic
from envs.browser.uploads import allowed_upload, uploadable
from envs.core.actions import (
    Action,
    ActionResult,
    AnswerDialog,
    Back,
    Click,
    ClickAt,
    CloseTab,
    Drag,
    DragAt,
    Expand,
    Find,
    FocusTab,
    Forward,
    Goto,
    Hover,
    NewTab,
    Press,
    Reason,
    Scroll,
    ScrollAt,
    Select,
    Status,
    Stop,
    Type,
    Upload,
    UseTool,
    Wait,
)
from envs.core.settings import SessionSettings
from envs.observer.target import Point, Target
from envs.security.allowlist import origin_of
from envs.security.secret_guard import FOCUSED, POINTED, SUBMITS, SecretGuard

SCROLL_SHARE = 0.8
CHOOSER_S = 3.0
FILES_LISTED = 10
HISTORY_S = 3.0
"""Timeout for going back or forward, unless the page has requested a document from a slow server."""
PROXY_STATUSES = frozenset({403, 502, 503, 504})
_INTERRUPTED = re.compile('Navigation to "(.*)" is interrupted by another navigation to "(.*)"')
DOWNLOAD_STARTS = "Download is starting"
"""Part of the error that Playwright raises when an address leads to a download."""
_SUBMITTING_KEYS = ("Enter", "\n", "\r", " ", "Space")
NOT_ALLOWED = "the address is not among the allowed origins"
NO_ADDRESS = "this is no valid http or https address without credentials"
PROXY_SAYS = "mira: "
"""Prefix of the proxy's own answers. A site that imitates it only makes its own visit fail."""

SCROLL_ELEMENT = "function (dx, dy) { return mira.scrollAround(this, dx, dy); }"
IS_FILE_INPUT = "function () { return mira.isFileInput(this); }"

DIRECTIONS = {
    "up": (0.0, -SCROLL_SHARE),
    "down": (0.0, SCROLL_SHARE),
    "left": (-SCROLL_SHARE, 0.0),
    "right": (SCROLL_SHARE, 0.0),
}


class Go(Protocol):
    """Playwright's `go_back` or `go_forward`."""

    def __call__(self, *, timeout: float, wait_until: Literal["commit"]) -> Coroutine[Any, Any, Response | None]: ...


@dataclass(frozen=True)
class ActionContext:
    """The parts of a session that actions use."""

    tabs: Tabs
    dialogs: Dialogs
    settings: SessionSettings
    guard: SecretGuard
    allowed: Callable[[str], bool]
    """Whether a tab may show this URL."""
    clock: StepClock
    """Stops during approval."""
    traffic: Traffic
    mark: Callable[[tuple[float, float] | None], Coroutine[Any, Any, None]]
    """Called right before input is sent to an element, which was scrolled into view, with the pointer's place."""
    typed: TypedText
    """What the last `type` action did."""

    @property
    def page(self) -> Page:
        """The front tab's page."""
        return self.tabs.front.page


async def perform(surface: ActionContext, action: Action) -> ActionResult:
    """Executes *action* on the front tab without settling. Raises Playwright's errors."""
    match action:
        case Click() | Hover() | Type() | Select() | Upload() | Drag():
            return await _on_element(surface, action)
        case Scroll():
            return await _scroll(surface, action)
        case Press() | ClickAt() | DragAt() | ScrollAt():
            return await _input(surface, action)
        case Find() | Expand():
            return await _look_up(surface, action)
        case Goto() | Back() | Forward():
            return await _navigate(surface, action)
        case NewTab() | CloseTab() | FocusTab():
            return await _tab(surface, action)
        case Wait():
            return await _wait(surface)
        case UseTool():
            return ActionResult(
                status=Status.FAILED, reason=Reason.NO_SUCH_TOOL, message="tools are called in runs only"
            )
        case AnswerDialog() | Stop():
            return OK  # handled by the session


async def _on_element(surface: ActionContext, action: Click | Hover | Type | Select | Upload | Drag) -> ActionResult:
    target = await surface.tabs.front.observer.resolve(action.ref)
    if isinstance(target, ActionResult):
        return target
    match action:
        case Select():
            await surface.mark(None)
            return await choose(target, action.option)
        case Upload():
            return await _upload(surface, target, action.path)
        case Type():
            return await _type(surface, target, action)
        case Drag():
            return await _drag_to(surface, target, action.to_ref)
        case Click() if surface.guard.vault and (refused := surface.guard.submission(await target.call(SUBMITS))):
            return refused
        case _:
            pass
    mouse = surface.page.mouse
    point = await target.point(mouse.move, presses=isinstance(action, Click))
    if isinstance(point, ActionResult):
        return point
    await surface.mark(point)
    match action:
        case Click():
            await mouse.click(point.x, point.y, button=action.button, click_count=action.count)
        case Hover():
            await mouse.move(point.x, point.y)
    return OK


async def _type(surface: ActionContext, target: Target, action: Type) -> ActionResult:
    observer = surface.tabs.front.observer
    entry = TextEntry(
        page=surface.page,
        target=target,
        find_again=lambda: observer.resolve(action.ref),
        acted=lambda: surface.traffic.acted,
        mark=surface.mark,
        cleared=action.clear,
    )
    try:
        return await type_into(surface.page, entry, action, surface.guard)
    finally:
        surface.typed.key, surface.typed.listened = target.key, entry.listened


async def _drag_to(surface: ActionContext, source: Target, to_ref: int) -> ActionResult:
    target = await surface.tabs.front.observer.resolve(to_ref)
    if isinstance(target, ActionResult):
        return target
    return await drag_onto(surface.page.mouse, source, target, surface.mark) or OK


async def _upload(surface: ActionContext, target: Target, path: str) -> ActionResult:
    file = allowed_upload(surface.settings.upload_folder, path)
    if file is None:
        return ActionResult(
            status=Status.BLOCKED,
            reason=Reason.UPLOAD_NOT_ALLOWED,
            message=_no_such_file(surface.settings.upload_folder),
        )
    await surface.mark(None)
    if await target.call(IS_FILE_INPUT):
        await target.set_files([file])
        return OK
    point = await target.point()
    if isinstance(point, ActionResult):
        return point
    try:
        async with surface.page.expect_file_chooser(timeout=CHOOSER_S * 1000) as chooser:
            await surface.page.mouse.click(point.x, point.y)
        await (await chooser.value).set_files(file)
    except PlaywrightError:
        return ActionResult(
            status=Status.NOT_ACTIONABLE, reason=Reason.WRONG_CONTROL, message="it opened no file chooser"
        )
    return OK


def _no_such_file(folder: Path | None) -> str:
    message = "only files of the upload folder may be uploaded"
    files = uploadable(folder)
    shown = ", ".join(repr(path[:80]) for path in files[:FILES_LISTED])
    more = len(files) - FILES_LISTED
    return message + (f": {shown}" if shown else "") + (f" and {more} more" if more > 0 else "")


async def _scroll(surface: ActionContext, action: Scroll) -> ActionResult:
    dx, dy = DIRECTIONS[action.direction]
    if action.ref is None:
        moved = await surface.tabs.front.observer.scroll_page(dx, dy)
    else:
        target = await surface.tabs.front.observer.resolve(action.ref)
        if isinstance(target, ActionResult):
            return target
        moved = await target.call(SCROLL_ELEMENT, dx, dy)
    return OK if moved else _no_effect(f"nothing moved: it is at its {action.direction} end")


async def _input(surface: ActionContext, action: Press | ClickAt | DragAt | ScrollAt) -> ActionResult:
    page = surface.page
    match action:
        case Press():
            if surface.guard.vault and action.keys.endswith(_SUBMITTING_KEYS):
                refused = surface.guard.submission(await surface.tabs.front.world.call(FOCUSED))
                if refused is not None:
                    return refused
            await page.keyboard.press(action.keys)
        case ClickAt():
            if surface.guard.vault:
                refused = surface.guard.submission(await surface.tabs.front.world.call(POINTED, action.x, action.y))
                if refused is not None:
                    return refused
            await page.mouse.click(action.x, action.y, button=action.button, click_count=action.count)
        case DragAt():
            await drag(page.mouse, Point(action.x, action.y), Point(action.to_x, action.to_y))
        case ScrollAt():
            await page.mouse.move(action.x, action.y)
            await page.mouse.wheel(action.dx, action.dy)
    return OK


async def _look_up(surface: ActionContext, action: Find | Expand) -> ActionResult:
    observer = surface.tabs.front.observer
    match action:
        case Find():
            output = await observer.find(action.text, surface.guard.vault)
        case Expand():
            output = await observer.expand(action.group, action.start)
    return ActionResult(status=Status.OK, output=output)


async def _navigate(surface: ActionContext, action: Goto | Back | Forward) -> ActionResult:
    match action:
        case Goto():
            return await _goto(surface, action.url)
        case Back():
            return await _through_history(surface, surface.page.go_back)
        case Forward():
            return await _through_history(surface, surface.page.go_forward)


async def _through_history(surface: ActionContext, go: Go) -> ActionResult:
    """Goes one history entry back or forward. If only an iframe navigates, Playwright would wait for the page until its
    timeout, so the wait exceeds HISTORY_S only if the page itself has requested a document."""
    page, before, clock, seconds = surface.page, surface.page.url, surface.clock, surface.settings.navigation_s
    deadline = clock.now() + seconds
    requested = asyncio.Event()

    def sent(request: Request) -> None:
        if is_for_tab(request):
            requested.set()

    page.on("request", sent)
    going = asyncio.ensure_future(clock.call(lambda ms: go(timeout=ms, wait_until="commit"), seconds))
    try:
        await clock.wait({going}, min(HISTORY_S, seconds))
        if going.done() or requested.is_set():
            await going
            await _loaded(surface, max(0.001, deadline - clock.now()))
    finally:
        page.remove_listener("request", sent)
        cancel(going)
    return OK if page.url != before else _no_effect("the address did not change")


async def _goto(surface: ActionContext, url: str) -> ActionResult:
    absolute = full_url(url, surface.page.url)
    if not surface.allowed(absolute) or absolute == "":
        message = NOT_ALLOWED if origin_of(absolute) else NO_ADDRESS
        return ActionResult(status=Status.BLOCKED, reason=Reason.ORIGIN_NOT_ALLOWED, message=message)
    try:
        return await _open(surface, absolute)
    except PlaywrightError as error:
        if "interrupted" not in str(error):
            raise
    try:  # a failed navigation may interrupt the next one, once
        return await _open(surface, absolute)
    except PlaywrightError as error:
        interrupted = _INTERRUPTED.search(str(error))
        if interrupted is None or interrupted[1] != interrupted[2]:
            raise
    await _loaded(surface, surface.settings.navigation_s)
    return OK  # an earlier navigation to the same address interrupted it


async def _open(surface: ActionContext, url: str) -> ActionResult:
    page = surface.page
    try:
        response = await surface.clock.call(
            lambda ms: page.goto(url, timeout=ms, wait_until="domcontentloaded"), surface.settings.navigation_s
        )
    except PlaywrightError as error:
        if DOWNLOAD_STARTS not in str(error):
            raise
        return ActionResult(status=Status.OK, reason=Reason.ADDRESS_IS_FILE, message="the address is a file")
    if response is None or response.status not in PROXY_STATUSES:
        return OK
    text = await response.text()
    if not text.startswith(PROXY_SAYS):
        return OK  # the site's own error page, which the agent can read
    refused = response.status == 403
    status, reason = (Status.BLOCKED, Reason.REQUEST_REFUSED) if refused else (Status.FAILED, Reason.UNREACHABLE)
    return ActionResult(status=status, reason=reason, message=text.removeprefix(PROXY_SAYS).strip()[:300])


async def _loaded(surface: ActionContext, seconds: float) -> None:
    page = surface.page
    await surface.clock.call(lambda ms: page.wait_for_load_state("domcontentloaded", timeout=ms), seconds)


def full_url(url: str, current: str) -> str:
    """Completes *url* as an address bar does: relative to *current*, or with https if it has no scheme. An address that
    cannot be parsed is returned as it is."""
    text = url.strip()
    if text.startswith(("/", "?", "#")) and current.startswith("http"):
        try:
            return urljoin(current, text)
        except ValueError:
            return text
    head = text.partition(":")[0]
    named = ":" in text and "." not in head and "/" not in head and not text.partition(":")[2][:1].isdigit()
    return text if named or not text else f"https://{text}"


async def _tab(surface: ActionContext, action: NewTab | CloseTab | FocusTab) -> ActionResult:
    tabs = surface.tabs
    match action:
        case NewTab():
            if len(tabs.all) >= surface.settings.max_tabs:
                message = f"{len(tabs.all)} tabs are open: close one first"
                return ActionResult(status=Status.FAILED, reason=Reason.TOO_MANY_TABS, message=message)
            await tabs.open()
        case CloseTab():
            surface.dialogs.forget(surface.page)
            await tabs.close(tabs.front)
        case FocusTab():
            if action.index >= len(tabs.all):
                message = f"there are {len(tabs.all)} tabs"
                return ActionResult(status=Status.FAILED, reason=Reason.NO_SUCH_TAB, message=message)
            tabs.focus(tabs.all[action.index])
            await surface.page.bring_to_front()
    return OK


async def _wait(surface: ActionContext) -> ActionResult:
    """Waits until the page differs from its last observation; the session then waits until it settles."""
    changed = await differs_from_observation(surface.tabs, surface.traffic, surface.settings.settle.max_s)
    return OK if changed else _no_effect("nothing changed")


def _no_effect(message: str) -> ActionResult:
    return ActionResult(status=Status.OK, reason=Reason.NO_EFFECT, message=message)
