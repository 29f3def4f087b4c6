"""The command line in the process of the test, where it can be patched; `tests.agent.mira_process` starts another."""

from __future__ import annotations

import sys

import pytest

from agent.cli import main


def mira(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    """Runs `mira WORDS` and returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["mira", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code
