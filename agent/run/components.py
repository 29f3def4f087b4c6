"""Builds the policy, planner and judges of a run from its configuration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from agent.config import RunConfig
from agent.episode.episode import AgentComponents
from agent.episode.policy import ModelPolicy, Policy
from agent.episode.prompts import Style
from agent.episode.structured_answers import AnswerSchema
from agent.run.demonstrations import DemonstrationPolicy
from agent.run.oracle import oracle_policy
from agent.run.oracle_tasks import SPECS, plays_oracle
from envs.core.action_languages import LANGUAGES
from envs.core.errors import BadInput
from envs.suites.webarena.evaluators import FuzzyJudge
from judges.autorater import RaterSettings
from judges.base import AutoRater, OutcomeJudge
from judges.fuzzy import FuzzySettings, ModelFuzzyJudge
from judges.outcome import JudgeSettings
from judges.registry import make_judge, make_rater
from models.base import ChatModel, UnknownModel
from models.local.prompt_style import style_of_spec
from models.prices import PRICES_VARIABLE
from models.specs import make_model, price_known
from models.transport import RetryPolicy
from planners.base import Planner
from planners.model_planner import PlannerSettings
from planners.registry import make_planner
from planners.replan_triggers import ReplanDetector

CLOSE_S = 5.0
"""Seconds that a model client gets to close."""
NOT_MODELS = frozenset({"none", "reference", "state", "same", "scripted", *SPECS})


@asynccontextmanager
async def open_team(config: RunConfig, suite: str, policy: Policy | None = None) -> AsyncGenerator[AgentComponents]:
    """Builds the agent components. Components with the same spec share one model; all models are closed at the end.

    *policy* replaces the configured one. Raises :class:`models.base.ModelUnavailable` or BadInput, in one line,
    before anything is sent or written.
    """
    async with AsyncExitStack() as stack:
        models = _Models(config, stack)
        yield AgentComponents(
            policy=policy if policy is not None else _policy(config, suite, models),
            planner=_planner(config, models),
            rater=_rater(config, models),
            judge=_judge(config, models),
            language=LANGUAGES[config.language],
            watch=ReplanDetector(),
            compares=_compares(config, models),
            answers=None if config.answer_schema is None else AnswerSchema.read(config.answer_schema),
        )


class _Models:
    """Creates one model per spec, so that components with the same spec share a client."""

    def __init__(self, config: RunConfig, stack: AsyncExitStack) -> None:
        self._config = config
        self._stack = stack
        self._models: dict[str, ChatModel] = {}

    def get(self, spec: str) -> ChatModel:
        if spec not in self._models:
            limited, base_url = self._config.limits.max_cost_usd > 0, self._config.base_url
            if limited and not price_known(spec, base_url=base_url):
                raise BadInput(
                    f"max_cost_usd cannot be enforced: the price of {spec} is not known"
                    + (" at that server" if base_url else "")
                    + f"; name a price table in {PRICES_VARIABLE}, or set no cost limit"
                )
            policy = RetryPolicy(window_s=self._config.retry_window_s)
            self._models[spec] = make_model(spec, base_url=self._config.base_url, policy=policy)
            self._stack.push_async_callback(_close, self._models[spec])
        return self._models[spec]


async def _close(model: ChatModel) -> None:
    """Closes a model within a deadline, so that a server that hangs cannot keep the run from ending."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_S):
            await model.aclose()


def _policy(config: RunConfig, suite: str, models: _Models) -> Policy:
    if plays_oracle(config, suite):
        spec = config.policy if config.policy in SPECS else "oracle"
        return DemonstrationPolicy(
            oracle_policy(spec, suite, LANGUAGES[config.language]),
            "compact" if config.prompt_style == "auto" else config.prompt_style,
        )
    if config.policy in NOT_MODELS:
        raise BadInput(f"policy {config.policy!r} needs a policy object from Python, or a suite that ships solvers")
    try:
        model = models.get(config.policy)
    except UnknownModel as error:
        raise UnknownModel(f"{error}; policies for demonstrations are {' and '.join(SPECS)}") from error
    return ModelPolicy(
        model,
        LANGUAGES[config.language],
        _style(config, config.policy),
        temperature=config.temperature,
        retry_temperature=config.retry_temperature,
        seed=config.seed,
        deadline_s=config.model_deadline_s,
        shows_pictures=config.screenshots == "marks",
    )


def _planner(config: RunConfig, models: _Models) -> Planner:
    if config.planner in ("none", "reference"):
        return make_planner(config.planner)
    spec = config.policy if config.planner == "same" else config.planner
    settings = PlannerSettings(k=config.k, budget=config.thinking, seed=config.seed, deadline_s=config.model_deadline_s)
    return make_planner(spec, models.get(spec), settings, compact=_is_compact(config, spec))


def _style(config: RunConfig, spec: str) -> Style:
    """Prompt style of *spec*: the configured one for the policy, else the one that its checkpoint declares."""
    if config.prompt_style != "auto" and config.policy == spec:
        return config.prompt_style
    return style_of_spec(spec) or "full"


def _is_compact(config: RunConfig, spec: str) -> bool:
    """Whether *spec* plans and rates with compact prompts. A large planner beside a small policy does not."""
    alone = config.policy in NOT_MODELS and config.prompt_style == "compact"
    return alone or _style(config, spec) == "compact"


def _judge_spec(config: RunConfig) -> str:
    """Spec of the judge, with `same` resolved to a model."""
    if config.judge != "same":
        return config.judge
    spec = config.policy if config.planner in NOT_MODELS else config.planner
    if spec in NOT_MODELS:
        raise BadInput("judge 'same' needs a model as planner or policy")
    return spec


def _rater(config: RunConfig, models: _Models) -> AutoRater:
    spec = _judge_spec(config)
    if spec in ("none", "state"):
        return make_rater(spec)
    settings = RaterSettings(budget=config.thinking, deadline_s=config.model_deadline_s)
    return make_rater(spec, models.get(spec), settings, compact=_is_compact(config, spec))


def _compares(config: RunConfig, models: _Models) -> FuzzyJudge | None:
    """Uses the judge's model to compare answers by meaning, for checkers that need it."""
    spec = _judge_spec(config)
    if not _can_judge(config, spec):
        return None
    return ModelFuzzyJudge(models.get(spec), FuzzySettings(deadline_s=config.model_deadline_s))


def _judge(config: RunConfig, models: _Models) -> OutcomeJudge | None:
    spec = _judge_spec(config)
    if not _can_judge(config, spec):
        return None
    return make_judge(spec, models.get(spec), JudgeSettings(budget=config.thinking, deadline_s=config.model_deadline_s))


def _can_judge(config: RunConfig, spec: str) -> bool:
    """Whether *spec* may judge outcomes. A small model rates milestones, but was not trained to judge outcomes."""
    return spec not in ("none", "state") and not _is_compact(config, spec)
