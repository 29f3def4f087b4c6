"""Logs in to the sites, with the accounts that WebArena's authors published or with yours.

`WA_SHOPPING_USERNAME` and `WA_SHOPPING_PASSWORD` (and so on) override an account. If `WA_AUTH` names a
folder with `shopping_state.json`, `gitlab_state.json` … (Playwright's storage state), its cookies replace
the login form, as in the benchmark's own harness.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Locator, Page

from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput, ResetFailed
from envs.suites.webarena.sites import VARIABLES, Sites
from envs.suites.webarena.task import Site

LOGIN_S = 60.0
"""Time limit of one login, from opening the form to the page after it."""


@dataclass(frozen=True, slots=True)
class LoginForm:
    """A login form, with its visible labels."""

    path: str
    by: Literal["label", "placeholder", "test id"]
    user: str
    password: str
    button: str
    """Its text, or its test id."""

    def field(self, page: Page, name: str) -> Locator:
        match self.by:
            case "label":
                return page.get_by_label(name, exact=True).first
            case "placeholder":
                return page.get_by_placeholder(name).first
            case "test id":
                return page.get_by_test_id(name).first

    def submit(self, page: Page) -> Locator:
        if self.by == "test id":
            return page.get_by_test_id(self.button).first
        return page.get_by_role("button", name=self.button).first


@dataclass(frozen=True, slots=True)
class Account:
    username: str
    password: str


FORMS: dict[Site, LoginForm] = {
    "shopping": LoginForm("/customer/account/login/", "label", "Email", "Password", "Sign In"),
    "shopping_admin": LoginForm("", "placeholder", "user name", "password", "Sign in"),
    "reddit": LoginForm("/login", "label", "Username", "Password", "Log in"),
    "gitlab": LoginForm("/users/sign_in", "test id", "username-field", "password-field", "sign-in-button"),
}
"""Login forms; other sites are used without an account."""

PUBLISHED_ACCOUNTS: dict[Site, Account] = {
    "shopping": Account("emma.lopez@gmail.com", "Password.123"),
    "shopping_admin": Account("admin", "admin1234"),
    "reddit": Account("MarvelsGrantMan136", "test1234"),
    "gitlab": Account("byteblaze", "hello1234"),
}


@dataclass(frozen=True, slots=True)
class Accounts:
    """The agent's accounts on the sites."""

    accounts: Mapping[Site, Account]
    states: Path | None = None
    """Folder of storage states; None: login by form."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Accounts:
        """Reads the environment variables. Raises BadInput if `WA_AUTH` is no folder."""
        environ = os.environ if environ is None else environ
        accounts: dict[Site, Account] = {
            site: _account(site, known, environ) for site, known in PUBLISHED_ACCOUNTS.items()
        }
        folder = environ.get("WA_AUTH", "")
        if folder and not Path(folder).is_dir():
            raise BadInput(f"WA_AUTH={folder!r} is not a folder of storage states such as shopping_state.json")
        return cls(accounts, Path(folder) if folder else None)

    def stored(self, sites: Iterable[Site], folder: Path) -> Path | None:
        """Writes one storage state for all of *sites* below *folder*; None for login by form.

        Raises BadInput for a missing or invalid state.
        """
        if self.states is None:
            return None
        states = [_read_state(self.states / f"{site}_state.json") for site in dict.fromkeys(sites) if site in FORMS]
        merged = {key: [entry for state in states for entry in state[key]] for key in ("cookies", "origins")}
        path = folder / "logged-in.json"
        write_atomically(path, json.dumps(merged), private=True, sync=False)
        return path

    async def log_in(self, page: Page, site: Site, sites: Sites) -> None:
        """Logs in with the form of *site*. Raises ResetFailed."""
        form, account = FORMS[site], self.accounts[site]
        try:
            async with asyncio.timeout(LOGIN_S):
                await self._submit(page, sites.urls[site] + form.path, form, account)
        except (PlaywrightError, TimeoutError) as error:
            line = next(iter(str(error).splitlines()), "") or f"no answer within {LOGIN_S:g} s"
            line = line.replace(account.password, "…")
            raise ResetFailed(f"logging in to {site} failed: {line}; {_hint(site)}") from None

    async def _submit(self, page: Page, url: str, form: LoginForm, account: Account) -> None:
        await page.goto(url, timeout=LOGIN_S * 1000)
        await form.field(page, form.user).fill(account.username)
        password = form.field(page, form.password)
        await password.fill(account.password)
        async with page.expect_navigation(timeout=LOGIN_S * 1000):
            await form.submit(page).click()
        if await password.is_visible():
            raise PlaywrightError(f"the form is still shown after login as {account.username!r}")


def _account(site: Site, known: Account, environ: Mapping[str, str]) -> Account:
    variable = VARIABLES[site]
    return Account(
        environ.get(f"{variable}_USERNAME") or known.username, environ.get(f"{variable}_PASSWORD") or known.password
    )


def _hint(site: Site) -> str:
    return f"set {VARIABLES[site]}_USERNAME and {VARIABLES[site]}_PASSWORD, or WA_AUTH"


def _read_state(path: Path) -> dict[str, list[Any]]:
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        return {"cookies": list(state["cookies"]), "origins": list(state.get("origins", []))}
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}: WA_AUTH must hold a storage state for each site") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            f"{path} is not a storage state: create it with Playwright's context.storage_state(path=…)"
        ) from error
