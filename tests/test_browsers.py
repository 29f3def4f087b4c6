"""Which browser tests drive."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import browsers
from tests.browsers import VARIABLE, choose_browser, whole_browser

TESTS = Path(__file__).parent


@pytest.fixture(autouse=True)
def kept_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/before")


@pytest.mark.parametrize(
    ("file", "browser"),
    [
        ("agent/run/test_resume.py", "/shell"),
        ("envs/suites/sites/test_environment.py", "/shell"),
        ("agent/run/test_approved_sites.py", None),
        ("agent/episode/test_approval_page.py", None),
        ("envs/security/test_proxy_leaks.py", None),
        ("envs/browser/test_session.py", None),
        ("envs/observer/test_observer.py", "/shell"),
        ("agent/cli/test_runs.py", "/shell"),
        ("test_examples.py", None),
    ],
)
def test_the_boundary_and_approval_have_the_whole_browser(
    monkeypatch: pytest.MonkeyPatch, file: str, browser: str | None
) -> None:
    monkeypatch.setattr(browsers, "HEADLESS_SHELL", "/shell")
    assert (TESTS / file).exists()
    choose_browser(TESTS / file)
    assert os.environ.get(VARIABLE) == browser
    with whole_browser():
        assert VARIABLE not in os.environ
    assert os.environ.get(VARIABLE) == browser


def test_without_the_shell_nothing_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsers, "HEADLESS_SHELL", None)
    choose_browser(TESTS / "agent/run/test_resume.py")
    with whole_browser():
        assert os.environ[VARIABLE] == "/before"
