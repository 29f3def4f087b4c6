"""Classifies the settings of a recorded run by what they can access.

A run folder or a trace may come from another person. Settings that read something of this machine, name a server, or
choose a model are then not taken from it, see :mod:`agent.run.foreign_runs`. The table has an entry for every field of
the records that are stored as configuration; `tests/agent/run/test_setting_scopes.py` fails for a missing entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from agent.config import ROLES
from agent.run.oracle_tasks import SPECS


class Scope(StrEnum):
    """What a setting can access on this machine."""

    PLAIN = "plain"
    """Changes only the episodes, the display or the limits."""
    LOCAL = "local"
    """Names a file, a folder, an environment variable or Python code of this machine whose content is used."""
    SERVER = "server"
    """Names a server that receives data or is trusted."""
    MODEL = "model"
    """Chooses a model, which may read a key or weights of this machine and receives the run's observations."""


class FieldScope(NamedTuple):
    """The scope of one field."""

    scope: Scope
    option: str = ""
    """Command-line option that sets the value again, with `ROLE=` if it needs one; empty for plain fields."""


_PLAIN: Final = FieldScope(Scope.PLAIN)
_CONFIG_FILE: Final = "--config FILE"


def _plain(prefix: str, names: str) -> dict[str, FieldScope]:
    return {f"{prefix}{name}": _PLAIN for name in names.split()}


RUN_FIELDS: Final[Mapping[str, FieldScope]] = {
    "policy": FieldScope(Scope.MODEL, "--policy"),
    "planner": FieldScope(Scope.MODEL, "--planner"),
    "judge": FieldScope(Scope.MODEL, "--judge"),
    "rater": FieldScope(Scope.MODEL, "--rater"),
    "grounder": FieldScope(Scope.MODEL, "--grounder"),
    "base_url": FieldScope(Scope.SERVER, "--base-url"),
    **{f"{role}_base_url": FieldScope(Scope.SERVER, f"--base-url {role}=") for role in ROLES},
    "secrets": FieldScope(Scope.LOCAL, "--secret"),
    "tools": FieldScope(Scope.LOCAL, "--tools"),
    "answer_schema": FieldScope(Scope.LOCAL, "--schema"),
    "langsmith": FieldScope(Scope.SERVER, "--langsmith"),
    "session.allow": FieldScope(Scope.SERVER, "--allow"),
    "session.storage_state": FieldScope(Scope.LOCAL, "--storage-state"),
    "session.http_credentials": FieldScope(Scope.LOCAL, _CONFIG_FILE),
    "session.proxy": FieldScope(Scope.SERVER, _CONFIG_FILE),
    "session.ignore_https_errors": FieldScope(Scope.SERVER, _CONFIG_FILE),
    "session.upload_folder": FieldScope(Scope.LOCAL, "--upload-folder"),
    "session.background": FieldScope(Scope.SERVER, _CONFIG_FILE),
    **_plain("", "language profile max_actions_per_turn rationale constrained policy_thinking thoughts"),
    **_plain("", "grounder_profile grounder_thinking grounder_deadline_s expert expert_share"),
    **_plain("", "show_plan confirm_stop thinking k headed workers attempts seed temperature"),
    **_plain("", "vision_profile"),
    **_plain("", "retry_temperature model_deadline_s retry_window_s screenshots approve trace_zip strict_original"),
    **_plain("", "overlap_reflect fsync max_notes history_chars shuffle_examples outcome"),
    **_plain("", "planner_thinking judge_thinking rater_thinking"),
    **_plain("", "policy_deadline_s planner_deadline_s judge_deadline_s rater_deadline_s"),
    **_plain("limits.", "max_steps max_seconds max_tokens max_cost_usd max_parse_errors max_replans"),
    **_plain("session.", "locale timezone geolocation step_deadline_s navigation_s dialogs downloads"),
    **_plain("session.", "max_download_bytes max_run_download_bytes download_wait_s max_tabs playwright_trace hold"),
    **_plain("session.viewport.", "width height"),
    **_plain("session.observe.", "max_chars collapse_rows name_chars max_options skip boxes effects timeout_s"),
    **_plain("session.settle.", "quiet_ms idle_after_ms react_ms max_s"),
}
"""Fields of :class:`agent.config.RunConfig` by dotted name. `run.json` and the headers of traces store them."""

URL: Final = "url"
SUITE: Final = "suite"
PARENT: Final = "parent"
PLACE_FIELDS: Final[Mapping[str, FieldScope]] = {
    URL: FieldScope(Scope.SERVER, "--url"),
    SUITE: FieldScope(Scope.LOCAL, "--suite"),
    PARENT: FieldScope(Scope.LOCAL, "--parent"),
}
"""Other values of a run that are not plain: the start address of an open task; a suite whose servers this machine's
environment names, or that is Python code of its user; the trace that a branch starts from."""

FIELDS: Final[Mapping[str, FieldScope]] = {**RUN_FIELDS, **PLACE_FIELDS}

HARMLESS_SPECS: Final = frozenset(("embedded", "none", "reference", "state", "same", "scripted", *SPECS))
"""Values of the model fields that need no key, server or file of this machine."""
