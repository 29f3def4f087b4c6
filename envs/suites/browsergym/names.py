"""Parses names of BrowserGym suites and environments."""

from __future__ import annotations

from envs.core.errors import BadInput

PREFIX = "browsergym:"


def environment_of(suite: str) -> str:
    """The environment in the name of a suite. Raises BadInput if there is none."""
    environment = suite.removeprefix(PREFIX)
    if not suite.startswith(PREFIX) or not environment.strip():
        raise BadInput(f"--suite {suite!r}: write browsergym:ENV, for example browsergym:miniwob.click-test")
    return environment


def module_of(suite: str) -> str:
    """The user's module that registers the environment; empty if BrowserGym does."""
    return environment_of(suite).rpartition(":")[0]


def is_rebuilt(module: str, environment: str) -> bool:
    """True if a reset restores the state: for MiniWoB's pages and tasks of a user's *module*, as gymnasium requires.

    All others (WebArena, WorkArena, AssistantBench, open tasks) act on servers that keep their state.
    """
    return bool(module) or environment.removeprefix("browsergym/").startswith("miniwob")


def keeps_effects(suite: str, environment: str) -> bool:
    """True for a suite of BrowserGym in which the actions of *environment* act on a server that keeps its state."""
    return suite.startswith(PREFIX) and not is_rebuilt(module_of(suite), environment)
