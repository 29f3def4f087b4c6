"""A browser session: observes and acts in one isolated browser context.

Guarantees:
  - No page behaviour makes `observe` or `execute` raise. They end within `observe.timeout_s` and
    `step_deadline_s` plus a few seconds; `close`, and a `stop` during a download, within
    `download_wait_s` plus a few seconds. A page that does not answer is closed and replaced by a
    blank one; the note or status reports it.
  - Every request of the context goes through the proxy. A tab at a URL that is not allowed is
    taken back, whatever caused the navigation.
  - The text of a `type` action appears in no log or exception; a message says what the field holds
    where that differs.
  - Requests held for approval are decided before the step ends; that time does not count against
    `step_deadline_s`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from pathlib import Path
from typing import Any, Self

from playwright.async_api import Browser, BrowserContext, Page
from playwright.async_api import Error as PlaywrightError

from envs.browser import action_executor, outcomes, playwright_trace
from envs.browser.action_effects import WINDOW_S, ActionEffects
from envs.browser.bounded_calls import Interrupted, Interruption, Races, cancel
from envs.browser.context import LOCAL_STORAGE, new_context, stored_origins
from envs.browser.dialogs import Dialogs
from envs.browser.download_limit import DownloadFolders, DownloadLimit, DownloadLimits
from envs.browser.downloads import Downloads
from envs.browser.driver_process import DriverProcess
from envs.browser.refused_visits import ERROR_PAGE, RefusedVisits
from envs.browser.request_watch import RequestWatch
from envs.browser.tabs import OpenTab, Tabs, step_back
from envs.browser.text_entry import TypedText
from envs.browser.traffic import Traffic
from envs.browser.unread_view import unread_view
from envs.browser.uploads import FileChoosers
from envs.core.actions import (
    DOWNLOADS,
    Action,
    ActionResult,
    AnswerDialog,
    CloseTab,
    DialogReport,
    FocusTab,
    Goto,
    NewTab,
    Reason,
    Status,
    Stop,
    Type,
    Upload,
    Wait,
)
from envs.core.errors import BrowserDied, EnvError, PageCrashed, PageHung, ResetFailed, SessionNotOpened
from envs.core.observation import Element, Observation
from envs.core.record import storable
from envs.core.settings import SessionSettings
from envs.observer.nearest_controls import with_nearest_controls
from envs.observer.world import WorldGone
from envs.security.allowlist import origin_of
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.masking import masked_observation, masked_result
from envs.security.net_errors import connection_failure, explain_navigation_error
from envs.security.request_holding import CHECK, RequestHolding, refusal_messages
from envs.security.secret_guard import SecretGuard
from envs.security.secret_screenshots import SEARCH_S, observe_without_secrets
from envs.security.secrets import NO_SECRETS, SecretVault

BLANK = "about:blank"
OPEN_S = 30.0
NO_SESSION = f"no browser session could be opened within {OPEN_S:g} s: the machine may be busy, try again"
STORAGE_S = 2.0
BACK_S = 3.0
CLOSE_S = 5.0
_OPENING = Goto | NewTab | FocusTab | Wait
"""Actions that do not affect an open page."""


class BrowserSession:
    """A session for one task at a time, created by :meth:`envs.browser.chromium.Chromium.session`."""

    def __init__(
        self,
        context: BrowserContext,
        settings: SessionSettings,
        boundary: AllowlistProxy,
        folder: Path,
        secrets: SecretVault = NO_SECRETS,
        *,
        driver: DriverProcess | None = None,
    ) -> None:
        self.context = context
        self._driver = driver
        self.secrets = secrets
        self.guard = SecretGuard.at(boundary, secrets)
        self.settings = settings
        self.boundary = boundary
        self.traffic = Traffic(context)
        self.requests = RequestWatch(context, boundary)
        self.dialogs = Dialogs(settings.dialogs, self._interrupt, lambda: self.page if self.tabs.all else None)
        self._download_limits = DownloadLimits(settings.max_download_bytes, settings.max_run_download_bytes)
        self.downloads = Downloads(folder, self._download_limits, secrets, permitted=settings.downloads == "keep")
        self.tabs = Tabs(context, settings, self._tab_opened, boundary.allows)
        self.holding = RequestHolding(settings.hold, settings.background, secrets.mask)
        """Holds requests of steps that were not approved."""
        if settings.hold:
            boundary.checks.put(CHECK, self.holding.check)
        self._clock = self.holding.clock
        typed = TypedText()
        self._races = Races(self._clock)
        self.effects = ActionEffects(
            self.tabs, self.traffic, self._races, self._clock, settings, self.downloads, self.holding, typed
        )
        self._surface = action_executor.ActionContext(
            tabs=self.tabs,
            dialogs=self.dialogs,
            settings=settings,
            guard=self.guard,
            allowed=self.allowed,
            clock=self._clock,
            traffic=self.traffic,
            mark=self.effects.mark,
            typed=typed,
        )
        self._held: asyncio.Task[ActionResult] | None = None
        """The action that cannot return while a dialog is open."""
        self._visits = RefusedVisits(boundary, self.allowed)
        self._choosers = FileChoosers()
        self._refused_windows = 0
        """Those of `tabs.refused` that were reported."""
        self._between: tuple[DialogReport, ...] = ()
        """Dialogs that were answered after the previous step had ended."""
        self._notes: list[str] = []
        self._elements: tuple[Element, ...] = ()
        """Elements of the last observation."""
        self._storage: dict[str, list[dict[str, str]]] = {}
        context.on("page", self.tabs.arrived)
        context.on("dialog", self.dialogs.arrived)

    @classmethod
    async def open(
        cls,
        browser: Browser,
        settings: SessionSettings,
        boundary: AllowlistProxy,
        folder: Path,
        secrets: SecretVault = NO_SECRETS,
        *,
        arriving: Path,
        device_scale: float = 1.0,
        driver: DriverProcess | None = None,
    ) -> Self:
        """Opens a new context with one blank tab. *arriving* is the folder to which the browser writes downloads,
        *device_scale* the pixels of a screenshot per CSS pixel, *driver* the process that controls *browser*.

        Raises BadInput (storage state, secrets in a traced context), or ResetFailed, in particular SessionNotOpened.
        """
        stored = stored_origins(settings.storage_state)
        if settings.playwright_trace:
            playwright_trace.refuse_secrets(secrets)
        try:
            async with asyncio.timeout(OPEN_S):
                context = await new_context(browser, settings, boundary, device_scale)
        except TimeoutError:
            raise SessionNotOpened(NO_SESSION) from None
        except PlaywrightError as error:
            raise ResetFailed(f"no browser session could be opened: {outcomes.error_line(error)}") from error
        session = cls(context, settings, boundary, folder, secrets, driver=driver)
        session._storage = stored
        try:
            if settings.playwright_trace:
                await playwright_trace.begin(context, OPEN_S)
            await session.tabs.open(OPEN_S)
            folders = DownloadFolders(arriving, folder / DOWNLOADS)
            session.downloads.limit = await DownloadLimit.start(
                browser, context, session.page, folders, session._download_limits
            )
        except TimeoutError:
            await session.close()
            raise SessionNotOpened(NO_SESSION) from None
        except PlaywrightError as error:
            await session.close()
            raise ResetFailed(f"no browser session could be opened: {outcomes.error_line(error)}") from error
        return session

    @property
    def page(self) -> Page:
        """The front tab's page."""
        return self.tabs.front.page

    @property
    def url(self) -> str:
        """Canonical URL of the front tab."""
        return storable(self.page.url)

    @property
    def alive(self) -> bool:
        """Whether the browser runs and Playwright's driver, which controls it, too."""
        browser, driver_ended = self.context.browser, self._driver is not None and self._driver.ended
        return browser is not None and browser.is_connected() and not driver_ended

    async def observe(self, *, screenshot: bool = False) -> Observation:
        """Observes the front tab. An open dialog is shown instead of the page that it blocks. Raises BrowserDied."""
        await self.holding.wait_until_decided()
        seen = dataclasses.replace(await self._observe(screenshot), blocked=self.requests.take())
        if not self.alive:
            raise BrowserDied("the browser died")
        seen = masked_observation(seen, self.secrets)
        self._elements = seen.elements
        return seen

    async def _observe(self, screenshot: bool) -> Observation:
        stops = self._clock.stops
        try:
            await self.tabs.ensure()
            await self._enforce()
            if self.dialogs.open is None:
                return await self._observe_front(screenshot)
        except Interrupted as interrupted:
            await self._after(interrupted)
        except (PageHung, TimeoutError):
            if self._clock.stops == stops:
                await self._replace_for(outcomes.HUNG)
            await self.holding.wait_until_decided()  # the page may wait for a held request, and answers only after it
        except (PageCrashed, PlaywrightError):
            await self._replace_for(outcomes.CRASHED)
        except EnvError as error:  # the document was just replaced or cannot be read
            self._notes.append(storable(str(error))[:300])
        if self.dialogs.open is not None:
            return self._blocked_view()
        return await self._front_or_blank()

    async def execute(self, action: Action) -> ActionResult:
        """Executes one action and waits for the page to settle."""
        await self.holding.wait_until_decided()
        started, opened = time.monotonic(), self.tabs.opened
        if not isinstance(action, _OPENING):
            self.holding.acted()
        self.boundary.unreachable.clear()
        self._choosers.drain()
        acted = self.tabs.front if self.tabs.all else None
        self._between = tuple(dialog for dialog in self.dialogs.drain() if dialog.answer != "open")
        try:
            result = await self._perform(action)
        except (TimeoutError, PageHung):
            result = await self._replace_for(outcomes.HUNG)
        except PageCrashed:
            result = await self._replace_for(outcomes.CRASHED, acted)
        except WorldGone:
            result = outcomes.REPLACED
        except EnvError as error:
            result = outcomes.failed(Reason.BROWSER_ERROR, str(error).splitlines()[0][:300])
        except Interrupted as interrupted:
            result = await self._after(interrupted)
        except PlaywrightError as error:
            result = await self._playwright_failed(action, acted, error)
        await self.holding.wait_until_decided()
        result = with_nearest_controls(result, action, self._elements)
        refused = await self._enforce()
        if refused and result.ok:
            result = outcomes.taken_back(result, refused)
        elif result.ok and self.tabs.all and self.url.startswith(ERROR_PAGE) and self.boundary.unreachable:
            message = "; ".join(filter(None, (result.message, connection_failure("", self.boundary.unreachable))))
            result = result.model_copy(update={"reason": result.reason or Reason.UNREACHABLE, "message": message})
        if isinstance(action, Upload):
            self._choosers.drain()  # it was given the file
        return self._complete(result, time.monotonic() - started, opened)

    async def storage(self) -> dict[str, Any]:
        """Returns cookies and local storage of the visited origins in Playwright's storage state format.

        Raises PlaywrightError or TimeoutError, also while a dialog blocks the page.
        """
        if self.dialogs.open is not None:
            raise PlaywrightError("a dialog blocks the page")
        async with asyncio.timeout(STORAGE_S):
            cookies = await self.context.cookies()
            origin, entries = await self.tabs.front.world.call(LOCAL_STORAGE)
        if origin.startswith("http"):
            self._storage[origin] = [{"name": name, "value": value} for name, value in entries]
        origins = [{"origin": origin, "localStorage": kept} for origin, kept in self._storage.items()]
        return {"cookies": cookies, "origins": origins}

    async def save_playwright_trace(self, path: Path) -> bool:
        """Writes Playwright's trace since the last call; False if there is none or the browser is gone."""
        return self.settings.playwright_trace and await playwright_trace.save(self.context, path)

    async def close(self) -> None:
        """Closes the context; safe to call twice."""
        self._drop_held()
        await self.holding.close()
        await self.downloads.close(self.settings.download_wait_s)
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.context.close()
        except (PlaywrightError, TimeoutError):
            return  # the browser is dead, or the context hangs and ends with it

    def allowed(self, url: str) -> bool:
        """Whether a tab may show this URL: http and https of allowed origins, the blank page and error pages."""
        if url in ("", BLANK) or url.startswith(ERROR_PAGE):
            return True
        origin = origin_of(url)
        return origin is not None and origin.scheme in ("http", "https") and self.boundary.origins.allows_origin(origin)

    async def _perform(self, action: Action) -> ActionResult:
        if isinstance(action, Stop):
            await self.downloads.end(self.settings.download_wait_s)
            return ActionResult(status=Status.STOPPED)
        if self.dialogs.open is not None and not isinstance(action, AnswerDialog | CloseTab):
            return outcomes.DIALOG_OPEN
        await self.tabs.ensure()
        if (refused := self.guard.refusal(action, self.page, action_executor.full_url)) is not None:
            return refused
        deadline = self._clock.now() + self.settings.step_deadline_s
        begun = self.downloads.begun.count
        if isinstance(action, AnswerDialog):
            result = await self._answer(action, deadline)
        else:
            result = await self._begin(action, deadline)
        if result.reason is Reason.ADDRESS_IS_FILE:
            await self.downloads.begun.until(begun + 1, WINDOW_S)
        if result.ok:
            await self.effects.settle(deadline)
            result = result.model_copy(update={"change": await self.effects.change()})
        return result

    async def _begin(self, action: Action, deadline: float) -> ActionResult:
        self._drop_held()
        self._held = asyncio.ensure_future(self._sent(action))
        try:
            result = await self._races.race(self._held, deadline - self._clock.now())
        except Interrupted as interrupted:
            if interrupted.kind == "dialog":
                raise  # the task continues when the dialog is answered
            self._drop_held()
            raise
        except BaseException:
            self._drop_held()
            raise
        self._held = None
        return result

    async def _sent(self, action: Action) -> ActionResult:
        await self.effects.begin(action)
        return await action_executor.perform(self._surface, action)

    async def _answer(self, action: AnswerDialog, deadline: float) -> ActionResult:
        report = await self.dialogs.answer(action.accept, action.text)
        if report is None:
            return outcomes.NO_DIALOG
        message = f"the {report.type} dialog was {report.answer}"
        if self._held is None or self.dialogs.open is not None:  # the action may wait for the other dialog
            return ActionResult(status=Status.OK, reason=Reason.DIALOG_ANSWERED, message=message)
        try:
            result = await self._races.race(self._held, deadline - self._clock.now())
        except PlaywrightError:
            # For example, the answer prevented the navigation.
            result = ActionResult(status=Status.OK, reason=Reason.DIALOG_ANSWERED)
        self._held = None
        return result.model_copy(update={"message": "; ".join(filter(None, (message, result.message)))})

    def _drop_held(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            cancel(held)

    def _interrupt(self, kind: Interruption, page: Page) -> None:
        tab = self.tabs.of(page)
        if tab is not None:  # else it is closing
            self._races.interrupt(kind, tab)

    async def _after(self, interrupted: Interrupted) -> ActionResult:
        """Returns the result of an interrupted action."""
        if interrupted.kind == "dialog":
            return outcomes.DIALOG_OPENED
        failure = outcomes.CRASHED if interrupted.kind == "crash" else outcomes.FLOOD
        return await self._replace_for(failure, interrupted.tab)

    async def _playwright_failed(self, action: Action, acted: OpenTab | None, error: PlaywrightError) -> ActionResult:
        if not self.alive:
            return outcomes.BROWSER_DIED
        if acted is not None and acted.crashed:
            return await self._replace_for(outcomes.CRASHED, acted)
        if acted is not None and acted.page.is_closed():
            return outcomes.TAB_CLOSED
        message = "the browser refused it" if isinstance(action, Type) else outcomes.error_line(error)
        if not isinstance(action, Goto):
            return outcomes.failed(Reason.BROWSER_ERROR, message)
        url = action_executor.full_url(action.url, acted.page.url if acted is not None else BLANK)
        message = explain_navigation_error(str(error), url, self.boundary.unreachable) or message
        return outcomes.failed(Reason.NAVIGATION_FAILED, message)

    def _complete(self, result: ActionResult, seconds: float, opened: int) -> ActionResult:
        closed, self._refused_windows = self.tabs.refused - self._refused_windows, self.tabs.refused
        if closed:
            result = outcomes.windows_closed(result, closed, len(self.tabs.all))
        kept, refused, unapproved = self.downloads.drain()
        coming = (f"download {name!r} is under way" for name in self.downloads.in_progress())
        done = ": it was downloaded" if kept and result.reason is Reason.ADDRESS_IS_FILE else ""
        held = self.holding.drain()
        notices = (*self._choosers.drain(), *refused, *coming, *refusal_messages(held), *self.guard.outgoing.drain())
        status, reason = outcomes.status_and_reason(result, unapproved, held)
        dialogs = (*self._between, *self.dialogs.drain())
        new_tabs = self.tabs.opened - opened
        complete = result.model_copy(
            update={
                "status": status,
                "reason": reason,
                "message": storable("; ".join(filter(None, (result.message + done, *notices)))),
                "url": self.url if self.tabs.all else BLANK,
                "dialogs": dialogs,
                "downloads": kept,
                "unapproved_downloads": unapproved,
                "new_tabs": new_tabs,
                "change": "yes" if kept or dialogs or new_tabs else result.change,
                "blocked_requests": self.requests.take(),
                "held_requests": held,
                "seconds": seconds,
            }
        )
        return masked_result(complete, self.secrets)

    async def control_at(self, x: float, y: float) -> int | None:
        """See :meth:`envs.observer.observer.Observer.control_at`. Raises EnvError or PlaywrightError if the page does
        not answer."""
        return await self._races.call(self.tabs.front.observer.control_at(x, y), self.settings.observe.timeout_s + 1.0)

    async def forget_appearances(self) -> None:
        """See :meth:`envs.observer.observer.Observer.forget_appearances`."""
        await self._races.call(self.tabs.front.observer.forget_appearances(), self.settings.observe.timeout_s + 1.0)

    async def _observe_front(self, screenshot: bool) -> Observation:
        front = self.tabs.front
        tabs = await self.tabs.listing()
        observing = observe_without_secrets(front.observer, self.guard, screenshot=screenshot, tabs=tabs)
        seen = await self._races.call(observing, self.settings.observe.timeout_s + 2 * SEARCH_S + 1.0)
        notes, self._notes = self._notes, []
        named = tuple(dataclasses.replace(tab, title=seen.title) if tab.active else tab for tab in seen.tabs)
        return dataclasses.replace(seen, tabs=named, note="; ".join(filter(None, (*notes, seen.note))))

    async def _front_or_blank(self) -> Observation:
        try:
            return await self._observe_front(False)
        except (EnvError, PlaywrightError, TimeoutError, Interrupted) as error:
            self._notes.append(f"the page cannot be shown ({type(error).__name__})")
            return self._blocked_view()

    def _blocked_view(self) -> Observation:
        """Builds an observation without a call into the page."""
        notes, self._notes = self._notes, []
        url = self.url if self.tabs.all else BLANK
        return unread_view(url, self.dialogs.open, "; ".join(notes), self.settings.viewport)

    async def _replace_for(self, result: ActionResult, tab: OpenTab | None = None) -> ActionResult:
        """Closes a tab for the failure *result*, and returns *result*."""
        await self._replace(result.message, tab)
        return result

    async def _replace(self, why: str, tab: OpenTab | None = None) -> None:
        """Closes an unusable tab and ensures that there is a front tab, unless the browser died."""
        self._notes.append(why)
        doomed = tab or (self.tabs.front if self.tabs.all else None)
        try:
            if doomed is not None:
                self._races.forget(doomed)
                self.dialogs.forget(doomed.page)
                await self.tabs.close(doomed)
            await self.tabs.ensure()
        except (PlaywrightError, TimeoutError):
            self._notes.append(outcomes.BROWSER_DIED.message)

    async def _enforce(self) -> list[str]:
        """Takes back tabs at a URL that is not allowed, or on the error page of a refused visit. Returns the URLs."""
        taken_back: list[str] = []
        for tab, url in await self._visits.find(tuple(self.tabs.all)):
            taken_back.append(url)
            if not await step_back(tab.page, self._shows, BACK_S):
                await self._replace(outcomes.not_allowed([url]), tab)
        return taken_back

    def _shows(self, url: str) -> bool:
        return self.allowed(url) and url != BLANK and not url.startswith(ERROR_PAGE)

    def _tab_opened(self, tab: OpenTab) -> None:
        def crashed(page: Page) -> None:
            tab.crashed = True
            self._interrupt("crash", page)

        tab.page.on("crash", crashed)
        tab.page.on("close", self.dialogs.forget)
        tab.page.on("download", self.downloads.arrived)
        tab.page.on("websocket", self.requests.web_socket)
        tab.page.on("filechooser", self._choosers.arrived)
