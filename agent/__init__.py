"""The agent: the LangGraph loop, policies, the runner, resume, reports and the `mira` command.

Stable: the names on the Python API pages. Names that are not listed there can change in any version. Importing the
package loads none of its modules: each name is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.config import Limits, RunConfig
    from agent.episode.approval import ApprovalRequest, Approver
    from agent.episode.policy import ActionProposal, Policy, ScriptedPolicy, Turn
    from agent.episode.tools import Tool
    from agent.inspection.report import write_report
    from agent.results import EpisodeResult, RunResult
    from agent.run.runner import resume, run_open, run_suite, run_task

__all__ = [
    "ActionProposal",
    "ApprovalRequest",
    "Approver",
    "EpisodeResult",
    "Limits",
    "Policy",
    "RunConfig",
    "RunResult",
    "ScriptedPolicy",
    "Tool",
    "Turn",
    "resume",
    "run_open",
    "run_suite",
    "run_task",
    "write_report",
]

_LAZY_IMPORTS = {
    "ActionProposal": "agent.episode.policy",
    "ApprovalRequest": "agent.episode.approval",
    "Approver": "agent.episode.approval",
    "EpisodeResult": "agent.results",
    "Limits": "agent.config",
    "Policy": "agent.episode.policy",
    "RunConfig": "agent.config",
    "RunResult": "agent.results",
    "ScriptedPolicy": "agent.episode.policy",
    "Tool": "agent.episode.tools",
    "Turn": "agent.episode.policy",
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
