"""What the name of a BrowserGym suite or environment says."""

from __future__ import annotations

from envs.core.errors import BadInput

PREFIX = "browsergym:"


def environment_of(suite: str) -> str:
    """The environment that a suite's name holds. Raises BadInput where it holds none."""
    environment = suite.removeprefix(PREFIX)
    if not suite.startswith(PREFIX) or not environment.strip():
        raise BadInput(f"--suite {suite!r}: write browsergym:ENV, for example browsergym:miniwob.click-test")
    return environment


def module_of(suite: str) -> str:
    """The module of the user's that registers the environment; empty where BrowserGym has it."""
    return environment_of(suite).rpartition(":")[0]


def is_rebuilt(module: str, environment: str) -> bool:
    """Does a reset bring the world back? MiniWoB's pages and a *module*'s own tasks: yes, as gymnasium asks.

    All others (WebArena, WorkArena, AssistantBench, open tasks) act on servers that keep what was done.
    """
    return bool(module) or environment.removeprefix("browsergym/").startswith("miniwob")
