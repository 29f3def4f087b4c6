"""What each setting of a recorded run can reach, as one table.

A run folder or a trace may come from another person. Settings that read something of this machine, name a server, or
choose a model are then not taken from it, see :mod:`agent.run.foreign_runs`. The table has an entry for every field of
the records that are stored as configuration; `tests/agent/run/test_setting_scopes.py` fails for a field that has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from agent.run.oracle_tasks import SPECS


class Reach(StrEnum):
    """What the value of a setting can do on this machine."""

    PLAIN = "plain"
    """Changes what is played and shown, or how long it may take."""
    LOCAL = "local"
    """Names a file, a folder, an environment variable or Python code of this machine, whose content is then used."""
    SERVER = "server"
    """Names a server that something is sent to, or that is trusted."""
    MODEL = "model"
    """Chooses a model: it may read a key or weights of this machine, and is sent what the run sees."""


class FieldClass(NamedTuple):
    reach: Reach
    option: str = ""
    """Command-line option that gives the value again; empty for plain ones."""


_PLAIN: Final = FieldClass(Reach.PLAIN)
_CONFIG_FILE: Final = "--config FILE"


def _plain(prefix: str, names: str) -> dict[str, FieldClass]:
    return {f"{prefix}{name}": _PLAIN for name in names.split()}


RUN_FIELDS: Final[Mapping[str, FieldClass]] = {
    "policy": FieldClass(Reach.MODEL, "--policy"),
    "planner": FieldClass(Reach.MODEL, "--planner"),
    "judge": FieldClass(Reach.MODEL, "--judge"),
    "base_url": FieldClass(Reach.SERVER, "--base-url"),
    "secrets": FieldClass(Reach.LOCAL, "--secret"),
    "answer_schema": FieldClass(Reach.LOCAL, "--schema"),
    "langsmith": FieldClass(Reach.SERVER, "--langsmith"),
    "session.allow": FieldClass(Reach.SERVER, "--allow"),
    "session.storage_state": FieldClass(Reach.LOCAL, "--storage-state"),
    "session.http_credentials": FieldClass(Reach.LOCAL, _CONFIG_FILE),
    "session.ignore_https_errors": FieldClass(Reach.SERVER, _CONFIG_FILE),
    "session.upload_folder": FieldClass(Reach.LOCAL, "--upload-folder"),
    "session.background": FieldClass(Reach.SERVER, _CONFIG_FILE),
    **_plain("", "language prompt_style show_plan thinking k headed workers attempts seed temperature"),
    **_plain("", "retry_temperature model_deadline_s retry_window_s screenshots approve trace_zip strict_original"),
    **_plain("", "overlap_reflect fsync"),
    **_plain("limits.", "max_steps max_seconds max_tokens max_cost_usd max_parse_errors max_replans"),
    **_plain("session.", "locale timezone geolocation step_deadline_s navigation_s dialogs downloads"),
    **_plain("session.", "max_download_bytes max_run_download_bytes download_wait_s max_tabs playwright_trace hold"),
    **_plain("session.viewport.", "width height"),
    **_plain("session.observe.", "max_chars collapse_rows name_chars max_options skip boxes effects timeout_s"),
    **_plain("session.settle.", "quiet_ms idle_after_ms react_ms max_s"),
}
"""By dotted name, the fields of :class:`agent.config.RunConfig`: `run.json` and the header of a trace hold them."""

URL: Final = "url"
SUITE: Final = "suite"
PARENT: Final = "parent"
PLACE_FIELDS: Final[Mapping[str, FieldClass]] = {
    URL: FieldClass(Reach.SERVER, "--url"),
    SUITE: FieldClass(Reach.LOCAL, "--suite"),
    PARENT: FieldClass(Reach.LOCAL, "--parent"),
}
"""Where a run is played, by the names that :mod:`agent.run.foreign_runs` gives to it: the start address of an open
task; a suite whose servers this machine's environment names, or that is Python code of its user; the trace that a
branch began in."""

FIELDS: Final[Mapping[str, FieldClass]] = {**RUN_FIELDS, **PLACE_FIELDS}

MANIFEST_FIELDS: Final[Mapping[str, str]] = {
    "config": "RUN_FIELDS",
    "suite": SUITE,
    "open_task.url": URL,
    "branch.trace": PARENT,
    **dict.fromkeys(["manifest_version", "run_id", "created_at", "names", "seeds", "picked", "versions", "mark"], ""),
    **dict.fromkeys(["open_task.instruction", "branch.parent"], ""),
}
"""Of :class:`agent.run.run_store.Manifest`: the name under which each field is classified; empty for plain ones."""

HEADER_FIELDS: Final[Mapping[str, str]] = {
    "config": "RUN_FIELDS",
    "task": SUITE,
    "start_url": URL,
    **dict.fromkeys(["kind", "schema_version", "run_id", "episode_id", "attempt", "instruction", "category"], ""),
    **dict.fromkeys(["reference_milestones", "versions", "started_at", "parent"], ""),
}
"""Of :class:`envs.core.trace.Header`, likewise."""

HARMLESS_SPECS: Final = frozenset(("embedded", "none", "reference", "state", "same", "scripted", *SPECS))
"""Values of the model fields that need no key, no server and no file of this machine: what Mira ships or does without,
and the policy that is given from Python."""
