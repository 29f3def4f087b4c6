"""The resolved configuration of a run: everything that decides what it does, stored in every trace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, FiniteFloat, ValidationInfo, field_validator

from envs.core.errors import BadInput
from envs.core.plain_values import Layer, checked, merged, read_toml
from envs.core.record import Record
from envs.core.settings import SessionSettings
from models.base import Budget
from models.thinking import validate_budget
from models.transport import RETRY_WINDOW_S

OPTIONS = "options"
"""Of a command: the source of what they set."""
ActionClass = Literal["submit", "navigation", "download", "upload", "all"]
"""What a person can be asked to approve before it is done, see :mod:`agent.episode.approval`."""


class Limits(Record):
    """What an episode may spend. Reaching one ends the episode as a result, never as a crash. 0 means unlimited."""

    max_steps: int = Field(default=30, ge=1, le=10_000)
    max_seconds: FiniteFloat = Field(default=600.0, ge=0)
    """Wall seconds of one episode, those before a resume included. No model call takes longer than what is left; the
    judging at the end has at least 30 more, or as many again where there were fewer."""
    max_tokens: int = Field(default=0, ge=0)
    """Tokens in and out over all roles."""
    max_cost_usd: FiniteFloat = Field(default=0.0, ge=0)
    """Counts only calls whose price is known."""
    max_parse_errors: int = Field(default=3, ge=1)
    """Policy answers in a row that are no action, retries included, before the episode ends."""
    max_replans: int = Field(default=3, ge=0)
    """Re-plans of an episode, over all causes; 0 keeps the first plan."""


class RunConfig(Record):
    """One run. Every default is safe: no key is needed, nothing leaves the start origin, nothing is uploaded."""

    policy: str = "embedded"
    """Model spec, or `scripted` for a policy given from Python."""
    planner: str = "reference"
    """`reference` (milestones that the task ships, else no subgoals), `none` (the baseline), `same` (the policy's
    model), or a model spec. Unset for an open task, it and `judge` are what :mod:`agent.run.open_defaults` says."""
    judge: str = "state"
    """AutoRater and outcome judge: `state` (the task's own checkers, no model), `same` (the planner's model,
    or the policy's where the planner has none), `none`, or a model spec. A small model (see `prompt_style`) is only
    the AutoRater: a task without a checker stays unjudged."""
    base_url: str | None = None
    """Server for `openai:` specs; None is the provider's own."""
    language: Literal["program", "id"] = "program"
    """Action language of the policy (MiRA paper, App. A.4)."""
    prompt_style: Literal["compact", "full", "auto"] = "auto"
    """`auto`: compact for demonstrations of an oracle and for checkpoints that declare it (`mira.json`: the embedded
    default, and whatever was trained here on such prompts), full for every other model. Planner and AutoRater are asked
    as their checkpoints declare; and with `compact` in compact style where they are the policy's own model, or no model
    is the policy. Others beside a small policy get the full prompts."""
    show_plan: bool = True
    """Tell the policy its milestones. Off, they are only checked: for rollouts that a policy learns from, where they
    shape the reward and the policy has to find its own way. Its prompts are then those of `planner = "none"`: the plan
    is made once and never replaced."""
    thinking: Budget = "auto"
    """Thinking tokens of planner and judge: 0, 256 … 16384, or `auto` (MiRA paper, App. A.2)."""
    k: int = Field(default=4, ge=1, le=20)
    """Milestones that a model planner makes."""
    limits: Limits = Limits()
    session: SessionSettings = SessionSettings()
    headed: bool = False
    """Show the browser's window."""
    workers: int = Field(default=1, ge=1, le=64)
    """Episodes played at the same time, all in one Chromium."""
    attempts: int = Field(default=1, ge=1, le=100)
    """Episodes per task instance; attempt `n` of a sampled policy uses seed + n."""
    seed: int = 0
    temperature: float = Field(default=0.0, ge=0, le=2)
    """Of the policy; judges and planners have their own."""
    vain_temperature: float = Field(default=1.0, ge=0, le=2)
    """Of the policy's next answers where its first would do again what has just left the page as it was, to the letter.
    0, or no more than `temperature`, does it again."""
    model_deadline_s: FiniteFloat = Field(default=120.0, gt=0)
    """Bound on one model call, its retries included."""
    retry_window_s: FiniteFloat = Field(default=RETRY_WINDOW_S, ge=0)
    """Seconds, within `model_deadline_s` and what is left of `max_seconds`, for which a call is sent again while its
    server is away: connection refused or broken, 429 with or without Retry-After, 5xx. 0: it is sent once."""
    screenshots: Literal["off", "steps", "marks"] = "off"
    """Store one picture a step; `marks` draws the element numbers on it and shows it to the policy."""
    approve: tuple[ActionClass, ...] = ()
    """Actions that a person must approve; without anybody to ask they are declined, which the result says."""
    secrets: tuple[str, ...] = ()
    """Declarations, names and sources only: see :mod:`envs.security.secrets`. Values are never part of a
    configuration."""
    trace_zip: bool = False
    """Keep Playwright's trace of each episode as `traces/EPISODE.zip`, for `playwright show-trace`. It holds everything
    that was typed, so it is refused where secrets are declared."""
    answer_schema: Path | None = None
    """JSON Schema file for the final answer of an open task."""
    strict_original: bool = False
    """WebArena's suites only: score by the rules of the benchmarks' own evaluators (docs/webarena.md)."""
    durability: Literal["sync", "async", "exit"] = "sync"
    """LangGraph's: only `sync` repeats no more than the interrupted node after a kill."""
    checkpoint_url: str | None = None
    """`postgresql://…` (needs the extra `postgres`), without a password, which PGPASSWORD or `~/.pgpass` tells; None
    keeps SQLite inside the run's folder."""
    langsmith: bool = False
    """Trace to LangSmith, which sends page text, prompts, answers and history to its server: see
    :mod:`agent.run.langsmith_tracing`. Environment variables alone never switch it on."""
    overlap_reflect: bool = False
    """Ask rater and policy about a page at the same time: faster with models, and flips count one step later."""
    fsync: bool = True
    """Force each intent and commit to disk where the world outlives this machine (open tasks); off, a power cut (not
    a kill) may lose the last steps."""

    @field_validator("thinking")
    @classmethod
    def _known_budget(cls, budget: Budget) -> Budget:
        return validate_budget(budget)

    @field_validator("trace_zip")
    @classmethod
    def _no_secrets_in_traces(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("secrets"):
            raise ValueError("Playwright's trace would hold the declared secrets, leave out the one or the other")
        return value

    def resolved(self) -> dict[str, Any]:
        """Plain JSON values, as stored in traces and in `run.json`."""
        return self.model_dump(mode="json")


def parse_config(values: Mapping[str, Any], source: str = "configuration", over: Layer | None = None) -> RunConfig:
    """Validates plain values. Raises BadInput naming *source* (or *over*, whichever holds it), the first bad key and
    what is wrong with it."""
    return checked(RunConfig, values, source, over)


def check_retry_window(config: RunConfig) -> RunConfig:
    """*config* again. Raises BadInput where somebody asked for a retry window that no call has the time for."""
    if "retry_window_s" in config.model_fields_set and config.retry_window_s > config.model_deadline_s:
        raise BadInput(
            f"retry_window_s = {config.retry_window_s:g}: a model call ends after model_deadline_s = "
            f"{config.model_deadline_s:g} s, its retries included: raise that one as well (--model-deadline)"
        )
    return config


def load_config(path: Path, overrides: Mapping[str, Any] | None = None) -> RunConfig:
    """Reads a TOML file; *overrides* (command-line options) win, nested tables are merged key by key."""
    return parse_config(merged(read_toml(path), overrides or {}), str(path), Layer(OPTIONS, overrides or {}))
