"""The configuration of a run. Its resolved values are stored in `run.json` and in every trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, Field, FiniteFloat, PydanticUserError, ValidationInfo, field_validator, model_validator

from agent.profiles.names import checked_name, with_profile_for_style
from envs.core.errors import BadInput
from envs.core.plain_values import Layer, checked, merged, read_toml
from envs.core.record import Record
from envs.core.settings import SessionSettings
from envs.observer.action_log import LOG_CHARS
from models.thinking import Thinking, validate_thinking
from models.transport import RETRY_WINDOW_S

OPTIONS = "options"
"""Name of the command-line options as a source of values."""
ModelRole = Literal["policy", "planner", "rater", "judge", "grounder"]
"""A part of the agent that a model plays."""
ActionClass = Literal["submit", "navigation", "download", "upload", "tool", "all"]
"""Classes of actions that a person can be asked to approve, see :mod:`agent.episode.approval`."""

RATIONALE_CHARS: Final = 400
"""Characters of a rationale with `rationale = "auto"`."""
PositiveSeconds = Annotated[FiniteFloat, Field(gt=0)] | None
Rationale = Literal["auto"] | Annotated[int, Field(ge=0, le=4_000)]

Screenshots = Literal["off", "steps", "plain", "marks", "both"]
SHOWN: Final[frozenset[Screenshots]] = frozenset({"plain", "marks", "both"})
"""Values of `screenshots` with which the policy sees pictures."""

RENAMED_KEYS: Final[Mapping[str, str]] = {"vain_temperature": "retry_temperature"}
"""Keys of older versions with their present names."""
ROLES: Final[tuple[ModelRole, ...]] = get_args(ModelRole)
OWN_THINKING: Final[frozenset[ModelRole]] = frozenset({"policy", "grounder"})
"""Roles that think as their model does by default, and not as `thinking` says."""
COVERED_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "thinking": tuple(f"{role}_thinking" for role in ROLES if role not in OWN_THINKING),
    "model_deadline_s": tuple(f"{role}_deadline_s" for role in ROLES),
    "base_url": tuple(f"{role}_base_url" for role in ROLES),
}
"""Keys that set a default of several roles, with the keys of the single roles."""
REMOVED_KEYS: Final = frozenset({"checkpoint_url", "durability"})
"""Keys of older versions that have no effect: the checkpoints of the graph stay in memory."""


class Limits(Record):
    """Limits of an episode. Reaching one ends the episode with a result, never with a crash. 0 means unlimited."""

    max_steps: int = Field(default=30, ge=1, le=10_000)
    max_seconds: FiniteFloat = Field(default=600.0, ge=0)
    """Wall seconds of one episode, those before a resume included. It also bounds each model call. Judging at the end
    has at least 30 seconds more, or `max_seconds` again where that is less."""
    max_tokens: int = Field(default=0, ge=0)
    """Input and output tokens of all roles."""
    max_cost_usd: FiniteFloat = Field(default=0.0, ge=0)
    """Counts only calls whose price is known."""
    max_parse_errors: int = Field(default=3, ge=1)
    """Consecutive policy answers without an action that can be done, retries included, before the episode ends: without
    a readable one, or with a control that the grounder did not find."""
    max_replans: int = Field(default=3, ge=0)
    """Re-plans of an episode, over all causes; 0 keeps the first plan."""


class RunConfig(Record):
    """Settings of one run. Every default is safe: no key is needed, nothing leaves the start origin, nothing is
    uploaded."""

    policy: str = "embedded"
    """Model spec, or `scripted` for a policy object passed from Python."""
    planner: str = "reference"
    """`reference` (the task's own milestones, if it has any), `none` (no milestones), `same` (the policy's model), or a
    model spec. If `planner` and `judge` are unset, an open task uses the defaults of :mod:`agent.run.open_defaults`."""
    judge: str = "state"
    """AutoRater and outcome judge: `state` (the task's own checkers, no model), `same` (the planner's model,
    or the policy's where the planner has none), `none`, or a model spec. A small model (see `profile`) serves as
    AutoRater only: a task without a checker stays unjudged. `orm:MODEL` is an outcome reward model, which answers YES
    or NO and rates no milestones: the planner's model does, or else the checkers (:mod:`judges.orm`)."""
    rater: str | None = None
    """AutoRater in place of the one that `judge` names, with the same values."""
    outcome: Literal["checker", "judge"] = "checker"
    """Who decides where a task has a checker and the run an outcome judge, which must be a large model or `orm:`. The
    other one's verdict is recorded beside it. `judge` is for training on judged outcomes (MiRA paper, App. A.3)."""
    grounder: str | None = None
    """Model spec of a grounder, or `same` (the policy's model): the policy describes controls in words, and the
    grounder finds them on a screenshot of the view, which every step then has. Needs a policy with full prompts."""
    expert: Literal["oracle"] | None = None
    """Label every state that the policy visits with the action of the suite's solver, for imitation (DAgger):
    :mod:`agent.run.experts`. `mira train sft` learns the labels in place of the policy's answers."""
    expert_share: float = Field(default=0.0, ge=0, le=1)
    """Share of the steps that the expert makes itself (β of DAgger)."""
    grounder_profile: str = "auto"
    """The family of the grounder, see :mod:`models.vision.profiles`: its coordinates and sizes of images. `auto`
    recognizes it by the checkpoint or by the model's name."""
    base_url: str | None = None
    """Server for `openai:`, `anthropic:` and `litellm:` specs, before OPENAI_BASE_URL and ANTHROPIC_BASE_URL; None is
    theirs, or the provider's own."""
    policy_base_url: str | None = None
    """`base_url` of the policy, and of the roles that share its model (`same`)."""
    planner_base_url: str | None = None
    """`base_url` of the planner, and of the judges that share its model."""
    judge_base_url: str | None = None
    """`base_url` of the judge, and of the AutoRater if `rater` is unset."""
    rater_base_url: str | None = None
    """`base_url` of the AutoRater alone."""
    grounder_base_url: str | None = None
    """`base_url` of the grounder alone."""
    language: Literal["program", "id"] = "program"
    """Action language of the policy (MiRA paper, App. A.4)."""
    profile: str = "auto"
    """Prompt profile of the policy: a file of :mod:`agent.profiles`. `auto` uses the one that a checkpoint declares in
    `mira.json` (the embedded model, and models trained here), `compact` for demonstrations of an oracle, and else
    chooses by the name of the model (`mira models MODEL`). The run records the chosen one. Planner and AutoRater have
    the prompts that their own model declares or its name chooses, and those of `profile` if they are the policy's own
    model. In a stored configuration of an older version `auto` is `compact` or `large`."""
    max_actions_per_turn: int = Field(default=8, ge=1, le=20)
    """Most actions of one policy answer, in full prompts only: typing, selecting and clicking, then one of any kind.
    Each is a step of its own. The rest is dropped where one fails or the page changes beyond it. 1 asks for one action
    at every turn, as compact prompts always do, and training unless its configuration says otherwise."""
    rationale: Rationale = "auto"
    """Characters of the line of reasoning that full prompts ask for before the action; 0 asks for none. `auto` asks
    models that do not think by themselves for RATIONALE_CHARS."""
    constrained: Literal["auto", "on", "off"] = "auto"
    """Limit the policy's answers to actions that are valid on the page (constrained decoding). `auto` does so for
    `local:` models with full prompts; `on` also with compact prompts, and for `vllm:` and servers of llama.cpp; a
    model that is known to take no grammar is refused with `on`."""
    policy_thinking: Thinking | None = None
    """How much the policy's model thinks, in the values of `thinking`; unset leaves the model's default."""
    thoughts: Literal["auto", "none", "tags", "asked"] = "auto"
    """How the policy was trained to think: its answers begin with a thought in `<think>` tags (`tags`), and prompts ask
    for it (`asked`); or neither (`none`). `auto` is what a checkpoint declares in `mira.json`, and `none` for other
    models. Training sets it for a policy on a server, whose name declares nothing."""
    show_plan: bool = True
    """Show the policy its milestones. If false, milestones are only checked: for rollouts in which milestones shape the
    reward and the policy explores without them. The prompts are then those of `planner = "none"`: the plan is made
    once and never replaced."""
    confirm_stop: Literal["auto", "on", "off"] = "auto"
    """Ask the policy again if it stops while the next milestone of its plan is not reached: once for each milestone; a
    second stop ends the episode. `auto` does so with full prompts, if a rater can rate the plan; policies that were
    trained on compact prompts were not trained on the question."""
    history_chars: int = Field(default=LOG_CHARS, ge=4_000, le=1_000_000)
    """Characters of the action log in the policy's full prompts. Every action has a line until they are used up; older
    actions are summarised by page."""
    max_notes: int = Field(default=20, ge=0, le=1_000)
    """Notes that the policy may keep from turn to turn, each of at most 400 characters; 0 offers none. Full prompts
    only."""
    thinking: Thinking = "auto"
    """How much planner, AutoRater and judge think. A number of tokens, 0, 256 … 16384, or `auto` (MiRA paper, App.
    A.2): the dynamic mode of models that have one; for other models none, or 8192 where an answer without thinking is
    not clear. Or an effort, `none` … `max`: sent as it is where the provider has such words, else as tokens."""
    planner_thinking: Thinking | None = None
    """`thinking` of the planner alone."""
    judge_thinking: Thinking | None = None
    """`thinking` of the judge alone, and of the AutoRater unless that has its own."""
    rater_thinking: Thinking | None = None
    """`thinking` of the AutoRater alone."""
    grounder_thinking: Thinking | None = None
    """How much the grounder thinks, in the values of `thinking`; unset leaves its model's default."""
    k: int = Field(default=4, ge=1, le=20)
    """Milestones that a model planner makes."""
    shuffle_examples: bool = False
    """Show a model planner its examples in another order at each call (MiRA paper, §5.1). False: one order for each
    category of sites, so that a server's prefix cache includes them."""
    limits: Limits = Limits()
    session: SessionSettings = SessionSettings()
    headed: bool = False
    """Show the browser's window."""
    workers: int = Field(default=1, ge=1, le=64)
    """Episodes that run at the same time, all in one Chromium."""
    attempts: int = Field(default=1, ge=1, le=100)
    """Episodes per task instance. Each attempt of a sampled policy has its own seed, derived from `seed`."""
    seed: int = 0
    temperature: float = Field(default=0.0, ge=0, le=2)
    """Sampling temperature of the policy; judges and planners have their own."""
    retry_temperature: float = Field(default=1.0, ge=0, le=2)
    """Sampling temperature of the policy's next answers if its first would repeat a no-op action: the action that has
    just left the page unchanged. 0, or a value up to `temperature`, repeats it."""
    model_deadline_s: FiniteFloat = Field(default=120.0, gt=0)
    """Seconds for one model call, its retries included. One attempt may use 60 % of them, which leaves time for a retry
    after a hang; models in this process are not retried and may use all."""
    policy_deadline_s: PositiveSeconds = None
    """`model_deadline_s` of the policy alone."""
    planner_deadline_s: PositiveSeconds = None
    """`model_deadline_s` of the planner alone."""
    judge_deadline_s: PositiveSeconds = None
    """`model_deadline_s` of the judge alone, and of the AutoRater unless that has its own."""
    rater_deadline_s: PositiveSeconds = None
    """`model_deadline_s` of the AutoRater alone."""
    grounder_deadline_s: PositiveSeconds = None
    """`model_deadline_s` of the grounder alone."""
    retry_window_s: FiniteFloat = Field(default=RETRY_WINDOW_S, ge=0)
    """Seconds for which a call is retried while its server is away (connection refused or broken, 429 with or without
    Retry-After, 5xx), within `model_deadline_s` and the rest of `max_seconds`. 0 sends it once."""
    screenshots: Screenshots = "off"
    """Screenshots of the view, one a step: `steps` stores it, `plain` shows it to the policy as well, `marks` draws the
    numbers of the controls on it and shows it, `both` shows it without and with the numbers. Planner, AutoRater and
    judge are shown it where the policy is, except models that are known to read text only."""
    vision_profile: str = "auto"
    """The family of a vision-language policy, see :mod:`models.vision.profiles`: its coordinates and sizes of images.
    `auto` recognizes it by the checkpoint or by the model's name."""
    approve: tuple[ActionClass, ...] = ()
    """Actions that a person must approve. If nobody can be asked they are declined, and the result counts them."""
    secrets: tuple[str, ...] = ()
    """Declarations of secrets: names and sources only, see :mod:`envs.security.secrets`. Values are never part of a
    configuration."""
    tools: tuple[str, ...] = ()
    """Tools that the policy may call, by name: those of installed packages (entry points of `mira.tools`), and those
    that a program passes (:mod:`agent.episode.tools`). Needs a policy with full or short prompts."""
    trace_zip: bool = False
    """Keep Playwright's trace of each episode as `traces/EPISODE.zip`, for `playwright show-trace`. It holds all typed
    text, so it cannot be combined with declared secrets."""
    answer_schema: Path | dict[str, Any] | None = None
    """JSON Schema (2020-12) that the final answer of an open task must fit: a file, or the schema itself. Python may
    give it as a dict or as a pydantic model class, the command line as JSON text `{…}`."""
    strict_original: bool = False
    """WebArena's suites only: score by the rules of the benchmarks' own evaluators (docs/webarena.md)."""
    langsmith: bool = False
    """Trace to LangSmith, which sends page text, prompts, answers and history to its server: see
    :mod:`agent.run.langsmith_tracing`. Environment variables alone never switch it on."""
    overlap_reflect: bool = False
    """Query rater and policy about a page at the same time: faster with models, but flips count one step later."""
    fsync: bool = True
    """Force each intent and commit to disk if the environment outlives this machine (open tasks). If false, a power cut
    may lose the last steps; a kill does not."""

    @model_validator(mode="before")
    @classmethod
    def _keys_of_older_versions(cls, values: Any) -> Any:
        return with_current_keys(values) if isinstance(values, dict) else values  # pyright: ignore[reportUnknownArgumentType]

    @field_validator(
        "thinking", "policy_thinking", "planner_thinking", "judge_thinking", "rater_thinking", "grounder_thinking"
    )
    @classmethod
    def _known_thinking(cls, thinking: Thinking | None) -> Thinking | None:
        return None if thinking is None else validate_thinking(thinking)

    @field_validator(*ROLES, "base_url", *(f"{role}_base_url" for role in ROLES))
    @classmethod
    def _named(cls, text: str | None) -> str | None:
        return None if text is None else _named_text(text)

    @field_validator("answer_schema", mode="before")
    @classmethod
    def _stored_schema(cls, given: object) -> object:
        return None if given is None else _schema_or_file(given)

    @field_validator("secrets", mode="before")
    @classmethod
    def _declarations(cls, secrets: object) -> object:
        if not isinstance(secrets, list | tuple):
            raise ValueError("give a list of NAME=env:VARIABLE or NAME=file:PATH, not the values")
        return secrets  # pyright: ignore[reportUnknownVariableType]

    @field_validator("screenshots")
    @classmethod
    def _plain_for_a_grounder(cls, value: str, info: ValidationInfo) -> str:
        if value in ("marks", "both") and info.data.get("grounder") is not None:
            raise ValueError("marks show numbers, and a policy with a grounder describes controls in words: use steps")
        return value

    @field_validator("trace_zip")
    @classmethod
    def _no_secrets_in_traces(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("secrets"):
            raise ValueError("Playwright's trace would hold the declared secrets: leave out trace_zip or the secrets")
        return value

    @property
    def takes_screenshots(self) -> bool:
        """Whether every observation has a screenshot."""
        return self.screenshots != "off" or self.grounder is not None

    @field_validator("profile")
    @classmethod
    def _known_profile(cls, name: str) -> str:
        return checked_name(name)

    def thinking_of(self, role: ModelRole) -> Thinking | None:
        """How much *role* thinks; None is the default of the model of the policy or the grounder."""
        match role:
            case "policy":
                return self.policy_thinking
            case "grounder":
                return self.grounder_thinking
            case "planner":
                own = self.planner_thinking
            case "judge":
                own = self.judge_thinking
            case "rater":
                own = self.judge_thinking if self.rater_thinking is None else self.rater_thinking
        return self.thinking if own is None else own

    def deadline_s_of(self, role: ModelRole) -> float:
        """Seconds for one call of *role*, its retries included."""
        match role:
            case "policy":
                own = self.policy_deadline_s
            case "grounder":
                own = self.grounder_deadline_s
            case "planner":
                own = self.planner_deadline_s
            case "judge":
                own = self.judge_deadline_s
            case "rater":
                own = self.judge_deadline_s if self.rater_deadline_s is None else self.rater_deadline_s
        return self.model_deadline_s if own is None else own

    def resolved(self) -> dict[str, Any]:
        """Plain JSON values, as stored in traces and in `run.json`."""
        return self.model_dump(mode="json")


def _named_text(text: str) -> str:
    """Refuses an empty text: an empty shell variable is no choice, least of all of a provider's own server."""
    if not text.strip():
        raise ValueError("this names nothing: give a value, or omit it")
    return text


def _schema_or_file(given: object) -> str | dict[str, Any]:
    """The file that holds a schema, or the schema as JSON values: what a run stores. Raises ValueError."""
    if isinstance(given, Path | str):
        given = _named_text(str(given))
        if not given.lstrip().startswith("{"):
            return given
    try:
        if isinstance(given, type) and issubclass(given, BaseModel):
            given = given.model_json_schema()
        if isinstance(given, dict):
            given = json.dumps(given, allow_nan=False)
        if isinstance(given, str):
            return json.loads(given)
    except (TypeError, ValueError, RecursionError, PydanticUserError) as error:
        raise ValueError(f"this is no JSON Schema: {error}") from None
    raise ValueError("give a file, a JSON Schema as a dict or as JSON text {…}, or a pydantic model class")


def with_current_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns *values* of an older version under the present keys. Removed keys are dropped; where a key and its old
    name are both set, the key counts."""
    values = with_profile_for_style(values)
    renamed = {RENAMED_KEYS[key]: value for key, value in values.items() if key in RENAMED_KEYS}
    return renamed | {key: value for key, value in values.items() if key not in {*RENAMED_KEYS, *REMOVED_KEYS}}


def outdated_key_hints(values: Mapping[str, Any], source: str) -> list[str]:
    """Returns one line for each key of *values* that was renamed or has no effect any more."""
    names = {**RENAMED_KEYS, "prompt_style": "profile"}
    renamed = [f"{source}: {old} is now called {new}" for old, new in names.items() if old in values]
    removed = [
        f"{source}: {key} has no effect any more, leave it out: a run resumes from its traces alone"
        for key in sorted(REMOVED_KEYS)
        if key in values
    ]
    return renamed + removed


def parse_config(values: Mapping[str, Any], source: str = "configuration", over: Layer | None = None) -> RunConfig:
    """Validates plain values. Raises BadInput naming *source* (or *over*, whichever holds it), the first bad key and
    what is wrong with it."""
    return checked(RunConfig, values, source, over)


def check_retry_window(config: RunConfig) -> RunConfig:
    """Returns *config*. Raises BadInput where a retry window is set that is longer than the deadline of a call."""
    longest_s = max(config.deadline_s_of(role) for role in ROLES)
    if "retry_window_s" in config.model_fields_set and config.retry_window_s > longest_s:
        raise BadInput(
            f"retry_window_s = {config.retry_window_s:g}: a model call ends after model_deadline_s = "
            f"{longest_s:g} s, its retries included: raise that one as well (--model-deadline)"
        )
    return config


def load_config(path: Path, overrides: Mapping[str, Any] | None = None) -> RunConfig:
    """Reads a TOML file; *overrides* (command-line options) win, nested tables are merged key by key. An override of
    `thinking`, `model_deadline_s` or `base_url` also wins over the file's values for single roles that it covers."""
    overrides = overrides or {}
    values = overridden(with_current_keys(read_toml(path)), overrides)
    return parse_config(values, str(path), Layer(OPTIONS, overrides))


def overridden(values: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """*values* with *overrides*, tables merged key by key. A value for several roles replaces those of single roles."""
    covered = {role_key for key in overrides for role_key in COVERED_KEYS.get(key, ())}
    return merged({key: value for key, value in values.items() if key not in covered}, overrides)
