"""LangSmith tracing of a run. Only the configuration switches it on; environment variables do not.

LangGraph traces to LangSmith as soon as `LANGSMITH_TRACING` is set. Its traces hold page text,
prompts, answers and the history of every step, so an environment variable must not be enough to upload them.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from langchain_core.utils.env import env_var_is_set
from langsmith import utils
from langsmith.run_helpers import tracing_context

from envs.core.errors import BadInput

WHAT_IS_SENT: Final = "page text, prompts, answers and the action history of every step"
"""Data that LangSmith receives of a traced run. Declared secrets are masked."""
_REMOVED_TRACER: Final = ("LANGCHAIN_TRACING", "LANGCHAIN_HANDLER")
"""Variables of a tracer that LangChain removed. While one is set, LangChain refuses to run without LangSmith."""


@contextmanager
def langsmith_tracing(enabled: bool) -> Generator[None]:
    """Switches tracing on or off for all graph calls in this context, including those of tasks started in it.

    Raises BadInput if tracing is enabled without a key, or if a variable of LangChain's removed tracer is set.
    """
    if enabled and not utils.get_env_var("API_KEY"):
        raise BadInput("--langsmith: LANGSMITH_API_KEY is not set: set it, or leave out --langsmith")
    for name in _REMOVED_TRACER:
        if not enabled and env_var_is_set(name):
            raise BadInput(f"{name} is set, and LangChain refuses to run with it: unset {name}")
    with tracing_context(enabled=enabled, parent=False):
        yield


def langsmith_notice() -> str:
    """One line for the user of a traced run: the data that is sent, and the address."""
    return f"LangSmith tracing is on: {WHAT_IS_SENT} are sent to {utils.get_api_url(None)}"
