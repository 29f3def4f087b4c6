"""Builds the policy, planner and judges of a run from its configuration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, Final

from agent.config import RATIONALE_CHARS, ModelRole, RunConfig
from agent.episode.episode import AgentComponents
from agent.episode.grounder import ModelGrounder
from agent.episode.policy import ModelPolicy, Policy
from agent.episode.profile_prompts import names_control
from agent.episode.prompts import Style
from agent.episode.structured_answers import AnswerSchema
from agent.episode.toolsets.policy import ToolsetPolicy
from agent.profiles.names import AUTO
from agent.profiles.profile import Profile, named, profile_of_spec
from agent.run.demonstrations import DemonstrationPolicy
from agent.run.experts import LabelledPolicy, expert_of
from agent.run.grounders import check_grounder, make_grounder
from agent.run.oracle import oracle_policy
from agent.run.oracle_tasks import SPECS, plays_oracle
from agent.run.policy_vision import is_shown_pictures, policy_vision
from agent.run.prompt_profiles import profile_of
from agent.run.role_models import NOT_MODELS, base_url_of, judge_parts, rater_named, spec_of
from envs.core.action_languages import DESCRIBING, LANGUAGES
from envs.core.errors import BadInput
from envs.suites.webarena.evaluators import FuzzyJudge
from judges.autorater import RaterSettings
from judges.base import AutoRater, OutcomeJudge
from judges.fuzzy import FuzzySettings, ModelFuzzyJudge
from judges.outcome import JudgeSettings
from judges.registry import JUDGES, OUTCOME_ONLY, make_judge, make_rater
from models.base import Budget, ChatModel, UnknownModel
from models.effort import with_effort
from models.local.declarations import RoleStyle, Thoughts, answers_without_reasons, style_of_spec, thoughts_of_spec
from models.prices import PRICES_VARIABLE
from models.provider import ModelOptions
from models.registry import Registry
from models.specs import make_model, parse_spec, price_known
from models.thinking import budget_in_tokens, thinks
from models.tool_use import ToolModel
from models.transport import RetryPolicy
from planners.base import Planner
from planners.model_planner import PlannerSettings
from planners.registry import PLANNERS, make_planner
from planners.replan_triggers import ReplanDetector

CLOSE_S = 5.0
"""Seconds that a model client gets to close."""
_MAY_SEE: Final[tuple[ModelRole, ...]] = ("planner", "rater", "judge")


@asynccontextmanager
async def open_components(
    config: RunConfig, suite: str, policy: Policy | None = None
) -> AsyncGenerator[AgentComponents]:
    """Builds the agent components. Components with the same spec and server share one model; all models are closed at
    the end.

    *policy* replaces the configured one. Raises :class:`models.base.ModelUnavailable` or BadInput, in one line,
    before anything is sent or written.
    """
    check_outcome(config)
    answers = None if config.answer_schema is None else AnswerSchema.of(config.answer_schema)
    async with AsyncExitStack() as stack:
        models = _Models(config, stack)
        policy = policy if policy is not None else _policy(config, suite, models)
        yield AgentComponents(
            policy=policy if config.expert is None else _labelled(config, suite, policy),
            needs_pictures=isinstance(policy, ToolsetPolicy),
            pictured=frozenset(role for role in _MAY_SEE if is_shown_pictures(config, spec_of(config, role))),
            planner=_planner(config, models),
            rater=_rater(config, models),
            judge=_judge(config, models),
            language=LANGUAGES[config.language],
            replan_detector=ReplanDetector(),
            compares=_compares(config, models),
            answers=answers,
            confirms_stop=confirms_stop(config, suite),
            full_planner=_plans_in_full(config),
            grounder=None if plays_oracle(config, suite) else _grounder(config, models),
        )


def _labelled(config: RunConfig, suite: str, policy: Policy) -> Policy:
    """*policy* with labels of the expert. Raises BadInput."""
    if plays_oracle(config, suite):
        raise BadInput("--expert labels the states of another policy, and this policy is the expert")
    if config.rationale not in ("auto", 0):
        raise BadInput("--expert: labels have no reasons, so the prompts must not ask for one: leave out --rationale")
    language = LANGUAGES[config.language]
    return LabelledPolicy(
        policy,
        expert_of(suite),
        language,
        named=names_control(profile_of(config, suite), language, config.max_actions_per_turn),
        share=config.expert_share,
        seed=config.seed,
    )


def check_outcome(config: RunConfig) -> None:
    """Raises BadInput where the outcome judge shall decide, but *config* names none that can."""
    name, spec = judge_parts(config, config.judge)
    judges = name in OUTCOME_ONLY or JUDGES.is_added(name) if name else not _is_compact(config, spec)
    if config.outcome == "judge" and not judges:
        raise BadInput(f"outcome 'judge' needs a large model as judge, not {config.judge!r}")


class _Models:
    """Creates one model per spec, so that components with the same spec share a client."""

    def __init__(self, config: RunConfig, stack: AsyncExitStack) -> None:
        self._config = config
        self._stack = stack
        self._models: dict[tuple[str, str | None], ChatModel] = {}
        """By spec and server."""
        self._protocols: dict[str, tuple[str, str]] = {}
        """By server: the protocol that it must speak, and the first spec that needs it."""

    def get(self, spec: str, role: ModelRole) -> ChatModel:
        """The model of *spec*, with the effort of *role* if it has one. Tool sets are given a budget in tokens."""
        model = self._shared(spec, base_url_of(self._config, role))
        if role == "policy" and isinstance(model, ToolModel):
            return model
        return with_effort(model, self._config.thinking_of(role))

    def _shared(self, spec: str, base_url: str | None) -> ChatModel:
        if (spec, base_url) not in self._models:
            limited = self._config.limits.max_cost_usd > 0
            if limited and not price_known(spec, base_url=base_url):
                raise BadInput(
                    f"max_cost_usd cannot be enforced: the price of {spec} is not known"
                    + (" at that server" if base_url else "")
                    + f"; name a price table in {PRICES_VARIABLE}, or set no cost limit"
                )
            if base_url is not None:
                self._check_protocol(spec, base_url)
            policy = RetryPolicy(window_s=self._config.retry_window_s)
            model = self._models[spec, base_url] = make_model(spec, base_url=base_url, policy=policy)
            self._stack.push_async_callback(_close, model)
        return self._models[spec, base_url]

    def _check_protocol(self, spec: str, base_url: str) -> None:
        """Raises BadInput where *base_url* would be the server of two protocols: a key would go to the wrong one."""
        needed = parse_spec(spec).base_url_protocol(ModelOptions(base_url))
        if not needed:
            return
        protocol, other = self._protocols.setdefault(base_url, (needed, spec))
        if needed != protocol:
            raise BadInput(
                f"--base-url {base_url} is one server, but {spec} needs the {needed} protocol and {other} the "
                f"{protocol} protocol: give each role its own (--base-url ROLE=URL)"
            )


async def _close(model: ChatModel) -> None:
    """Closes a model within a deadline, so that a server that hangs cannot keep the run from ending."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_S):
            await model.aclose()


def _policy(config: RunConfig, suite: str, models: _Models) -> Policy:
    if plays_oracle(config, suite):
        spec = config.policy if config.policy in SPECS else "oracle"
        return DemonstrationPolicy(oracle_policy(spec, suite, LANGUAGES[config.language]), profile_of(config, suite))
    if config.policy in NOT_MODELS:
        raise BadInput(f"policy {config.policy!r} needs a policy object from Python, or a suite that ships solvers")
    vision = policy_vision(config)
    try:
        model = models.get(config.policy, "policy")
    except UnknownModel as error:
        raise UnknownModel(f"{error}; policies for demonstrations are {' and '.join(SPECS)}") from error
    profile = profile_of(config, suite)
    check_grounder(config, profile, toolset=isinstance(model, ToolModel))
    _check_tools(config, profile, toolset=isinstance(model, ToolModel))
    if isinstance(model, ToolModel):
        return ToolsetPolicy(model, thinking=_policy_budget(config), deadline_s=config.deadline_s_of("policy"))
    style, thoughts = profile.style, _thoughts(config)
    return ModelPolicy(
        model,
        LANGUAGES[config.language],
        style,
        temperature=config.temperature,
        retry_temperature=config.retry_temperature,
        seed=config.seed,
        deadline_s=config.deadline_s_of("policy"),
        vision=vision,
        max_actions=config.max_actions_per_turn if style == "full" else 1,
        rationale_chars=_rationale_chars(config, model, profile),
        thinking=_policy_budget(config),
        constrained=_is_constrained(config, style),
        thoughts=thoughts is not None,
        asks_thought=thoughts == "asked",
        profile=profile,
        described=None if config.grounder is None else DESCRIBING[config.language],
        exact_ratings=judge_parts(config, rater_named(config))[0] == "state",
    )


def _check_tools(config: RunConfig, profile: Profile, *, toolset: bool) -> None:
    """Raises BadInput for a policy whose prompts do not list tools."""
    if config.tools and (toolset or profile.style == "compact"):
        has = "acts with its vendor's tools" if toolset else "has compact prompts, which list no tools"
        raise BadInput(f"tools {', '.join(config.tools)}: the policy {config.policy} {has}; use another policy")


def _thoughts(config: RunConfig) -> Thoughts | None:
    if config.thoughts == "auto":
        return thoughts_of_spec(config.policy)
    return None if config.thoughts == "none" else config.thoughts


def _policy_budget(config: RunConfig) -> Budget | None:
    return None if config.policy_thinking is None else budget_in_tokens(config.policy_thinking)


def _grounder(config: RunConfig, models: _Models) -> ModelGrounder | None:
    if config.grounder is None:
        return None
    spec = spec_of(config, "grounder")
    if not spec:
        raise BadInput(f"grounder {config.grounder!r} needs a vision-language model")
    return make_grounder(config, spec, models.get(spec, "grounder"))


def _is_constrained(config: RunConfig, style: Style) -> bool:
    if config.constrained != "auto":
        return config.constrained == "on"
    if style == "compact":  # such models were trained to write valid actions
        return False
    with suppress(UnknownModel):  # the model was made by other means
        return parse_spec(config.policy).constrained
    return False


def confirms_stop(config: RunConfig, suite: str) -> bool:
    """Whether the policy is asked again where it stops while a milestone is open."""
    rater, _ = judge_parts(config, rater_named(config))
    rated = rater != "none" and (rater != "state" or config.planner == "reference")
    if config.planner == "none" or not rated or not config.show_plan or config.confirm_stop == "off":
        return False
    if config.confirm_stop == "on":
        return True
    if plays_oracle(config, suite) or config.policy in NOT_MODELS:
        return False
    return profile_of(config, suite).style == "full"


def _rationale_chars(config: RunConfig, model: ChatModel, profile: Profile) -> int:
    if profile.style == "compact" or config.expert is not None:  # an expert's labels have no reasons
        return 0
    if config.rationale != "auto":
        return config.rationale
    if thinks(model, _policy_budget(config)) or answers_without_reasons(config.policy):
        return 0
    return RATIONALE_CHARS if profile.rationale_chars is None else profile.rationale_chars


def _planner(config: RunConfig, models: _Models) -> Planner:
    name, spec = PLANNERS.split(config.planner)[0], spec_of(config, "planner")
    settings = PlannerSettings(
        k=config.k,
        budget=_budget(config, "planner"),
        seed=config.seed,
        shuffle_examples=config.shuffle_examples,
        deadline_s=config.deadline_s_of("planner"),
    )
    with _naming_entries(PLANNERS, "planner"):
        model = models.get(spec, "planner") if spec else None
        return make_planner(name or spec, model, settings, style=_role_style(config, spec))


def _budget(config: RunConfig, role: ModelRole) -> Budget:
    thinking = config.thinking_of(role)
    return "auto" if thinking is None else budget_in_tokens(thinking)


def _plans_in_full(config: RunConfig) -> bool:
    """Whether a large model plans."""
    spec = spec_of(config, "planner")
    return bool(spec) and not _is_compact(config, spec)


def _style(config: RunConfig, spec: str) -> Style:
    """Prompt style of *spec*: the configured one for the policy, else the one that its checkpoint declares."""
    if config.policy == spec and config.profile != AUTO:
        return named(config.profile).style
    return style_of_spec(spec) or "full"


def _is_compact(config: RunConfig, spec: str) -> bool:
    """Whether *spec* plans and rates with compact prompts. A large planner beside a small policy does not."""
    return _style(config, spec) == "compact"


def _role_style(config: RunConfig, spec: str) -> RoleStyle:
    """The prompts of a planner or AutoRater with the model *spec*; without a model any."""
    if not spec or spec in NOT_MODELS:
        return "full"
    if _is_compact(config, spec):
        return "compact"
    own = config.policy == spec and config.profile != AUTO
    return (named(config.profile) if own else profile_of_spec(spec)).role_style


def _rater(config: RunConfig, models: _Models) -> AutoRater:
    name, spec = judge_parts(config, rater_named(config))
    settings = RaterSettings(budget=_budget(config, "rater"), deadline_s=config.deadline_s_of("rater"))
    with _naming_entries(JUDGES, "judge"):
        model = models.get(spec, "rater") if spec else None
        return make_rater(name or spec, model, settings, style=_role_style(config, spec))


def _compares(config: RunConfig, models: _Models) -> FuzzyJudge | None:
    """Uses the judge's model to compare answers by meaning, for checkers that need it. A model that answers with one
    word cannot."""
    name, spec = judge_parts(config, config.judge)
    if not spec or name in OUTCOME_ONLY or _is_compact(config, spec):
        return None
    return ModelFuzzyJudge(models.get(spec, "judge"), FuzzySettings(deadline_s=config.deadline_s_of("judge")))


def _judge(config: RunConfig, models: _Models) -> OutcomeJudge | None:
    """A small model gets no outcome to judge: it was trained to rate milestones only."""
    name, spec = judge_parts(config, config.judge)
    if not name and _is_compact(config, spec):
        return None
    settings = JudgeSettings(budget=_budget(config, "judge"), deadline_s=config.deadline_s_of("judge"))
    return make_judge(name or spec, models.get(spec, "judge") if spec else None, settings)


@contextmanager
def _naming_entries(registry: Registry[Any], role: str) -> Generator[None]:
    """Adds to an unknown model spec the names that *role* may have beside it."""
    try:
        yield
    except UnknownModel as error:
        raise UnknownModel(f"{error}; or as {role} {', '.join((*registry.forms, 'same'))}") from error
