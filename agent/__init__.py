"""The agent: the LangGraph loop, policies, the runner, resume, reports and the `mira` command.

Public API: :func:`run_task`, :func:`run_suite`, :func:`run_open`, :func:`resume`, their configuration and results, and
the progress events. Everything else in this package may change. Importing the package loads none of its modules: each
name is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.config import Limits, RunConfig
    from agent.inspection.report import write_report
    from agent.results import EpisodeResult, RunResult
    from agent.run.runner import resume, run_open, run_suite, run_task

__all__ = [
    "EpisodeResult",
    "Limits",
    "RunConfig",
    "RunResult",
    "resume",
    "run_open",
    "run_suite",
    "run_task",
    "write_report",
]

_LAZY_IMPORTS = {
    "EpisodeResult": "agent.results",
    "Limits": "agent.config",
    "RunConfig": "agent.config",
    "RunResult": "agent.results",
    "resume": "agent.run.runner",
    "run_open": "agent.run.runner",
    "run_suite": "agent.run.runner",
    "run_task": "agent.run.runner",
    "write_report": "agent.inspection.report",
}


def __getattr__(name: str) -> object:
    if name in _LAZY_IMPORTS:
        return getattr(import_module(_LAZY_IMPORTS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
