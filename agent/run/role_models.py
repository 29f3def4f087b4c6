"""The model of each role: its spec, its server, and whether its settings fit it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from agent.config import COVERED_KEYS, OWN_THINKING, ROLES, ModelRole, RunConfig
from agent.run.oracle_tasks import SPECS
from envs.core.errors import BadInput
from judges.registry import JUDGES, OUTCOME_ONLY
from models.base import ModelUnavailable
from models.provider import ModelOptions
from models.specs import SERVED, parse_spec
from models.thinking import Thinking, asks_to_think, effort_of
from planners.registry import PLANNERS

NOT_MODELS: Final = frozenset({"none", "reference", "state", "same", "scripted", *SPECS})


def spec_of(config: RunConfig, role: ModelRole) -> str:
    """The model spec of *role*; empty for a part without a model."""
    match role:
        case "policy":
            return "" if config.policy in NOT_MODELS else config.policy
        case "grounder":
            spec = config.policy if config.grounder == "same" else config.grounder or ""
            return "" if spec in NOT_MODELS else spec
        case "planner":
            spec = PLANNERS.split(config.planner)[1]
            return config.policy if spec == "same" else spec
        case "judge":
            return judge_parts(config, config.judge)[1]
        case "rater":
            return judge_parts(config, rater_named(config))[1]


def rater_named(config: RunConfig) -> str:
    """The rater of *config*: the one that it names, else its judge. Beside a judge of outcomes alone it is the
    planner's model, or `state` without one."""
    if config.rater is not None:
        return config.rater
    if not _judges_only(config):
        return config.judge
    return "same" if spec_of(config, "planner") else "state"


def _judges_only(config: RunConfig) -> bool:
    """Whether the judge rates no milestones, and no rater is named."""
    return config.rater is None and JUDGES.split(config.judge)[0] in OUTCOME_ONLY


def judge_parts(config: RunConfig, judge: str) -> tuple[str, str]:
    """The entry and the model spec of *judge*, one of them maybe empty. `same` is the planner's model, or the
    policy's. Raises BadInput where that is no model, and for `orm` without a model."""
    name, spec = JUDGES.split(judge)
    if name in OUTCOME_ONLY and not spec:
        raise BadInput(f"judge {judge!r} names no model: write {name}:MODEL, for example {name}:local:FOLDER")
    if spec != "same":
        return name, spec
    planner = PLANNERS.split(config.planner)[1]
    spec = config.policy if planner in ("", *NOT_MODELS) else planner
    if spec in NOT_MODELS:
        raise BadInput("judge 'same' needs a model as planner or policy")
    return name, spec


def base_url_of(config: RunConfig, role: ModelRole) -> str | None:
    """The server of *role*: its own, else that of the role whose model it shares, else the run's."""
    own: dict[ModelRole, str | None] = {
        "policy": config.policy_base_url,
        "planner": config.planner_base_url,
        "rater": config.rater_base_url,
        "judge": config.judge_base_url,
        "grounder": config.grounder_base_url,
    }
    shared = _shares_model_of(config, role)
    if own[role] is not None or shared is None:
        return config.base_url if own[role] is None else own[role]
    return base_url_of(config, shared)


def _shares_model_of(config: RunConfig, role: ModelRole) -> ModelRole | None:
    """The role whose model *role* shares by the name `same`, or by default; None if its model is named."""
    planner = PLANNERS.split(config.planner)[1]
    if role == "rater" and config.rater is None and not _judges_only(config):
        return "judge"
    if role in ("rater", "judge"):
        named = config.judge if role == "judge" else rater_named(config)
        plans = planner == "same" or planner not in ("", *NOT_MODELS)
        shared: ModelRole = "planner" if plans else "policy"
        return shared if JUDGES.split(named)[1] == "same" else None
    same = {"planner": planner == "same", "grounder": config.grounder == "same"}
    return "policy" if same.get(role, False) else None


def check_base_urls(config: RunConfig, before: RunConfig | None = None) -> None:
    """Raises BadInput where a role has a server of its own, but no model that uses it. Values that *before* has, too,
    are not checked."""
    for role in ROLES:
        url = getattr(config, f"{role}_base_url")
        if url is None or (before is not None and url == getattr(before, f"{role}_base_url")):
            continue
        if not _takes_server(config, role):
            raise BadInput(
                f"{role} {spec_of(config, role) or 'without a model'} uses no base URL, here {url}: "
                f"leave out --base-url {role}=…, or choose a model that takes a server: {SERVED}"
            )


def check_shared_base_url(config: RunConfig) -> None:
    """Raises BadInput where no model uses the run's `base_url`. Only for a value that was given for this run: in a
    configuration file it may be the default of several runs."""
    url = config.base_url
    if url is None or any(_takes_server(config, role) and base_url_of(config, role) == url for role in ROLES):
        return
    raise BadInput(
        f"--base-url {url}: no model of this run uses it ({_roles_line(config)}): leave it out, or choose a model "
        f"that takes a server: {SERVED}"
    )


def check_changed_servers(
    config: RunConfig, before: RunConfig, changes: Mapping[str, Any], granted: Mapping[str, Any]
) -> None:
    """Checks the servers of a resumed run, whose configuration was *before*. Raises BadInput where no model uses the
    `base_url` of *changes*, and where a new model would send its key to a recorded server that another protocol used:
    such a server must be among *changes* or *granted*."""
    if changes.get("base_url") not in (None, before.base_url):
        check_shared_base_url(config)
    given = {values.get(key) for values in (changes, granted) for key in ("base_url", *COVERED_KEYS["base_url"])}
    spoken: dict[str | None, dict[str, str]] = {}
    for role in ROLES:
        if protocol := _protocol(before, role):
            spoken.setdefault(base_url_of(before, role), {})[protocol] = spec_of(before, role)
    for role in ROLES:
        url, protocol = base_url_of(config, role), _protocol(config, role)
        known = spoken.get(url, {})
        if url is not None and protocol and known and protocol not in known and url not in given:
            name, spec = next(iter(known.items()))
            raise BadInput(
                f"{role} {spec_of(config, role)} would send its key to {url}, where this run called {spec} "
                f"({name} protocol, not {protocol}): give --base-url {role}=URL"
            )


def _takes_server(config: RunConfig, role: ModelRole) -> bool:
    """Whether the model of *role* uses a base URL; True for a wrong spec."""
    return _protocol(config, role) != ""


def _protocol(config: RunConfig, role: ModelRole) -> str | None:
    """The protocol that the model of *role* speaks with the server of a base URL; empty if it uses none. None for a
    wrong spec, which is reported when the model is made."""
    spec = spec_of(config, role)
    with suppress(ModelUnavailable):
        return parse_spec(spec).base_url_protocol(ModelOptions(base_url_of(config, role))) if spec else ""
    return None


def _roles_line(config: RunConfig) -> str:
    """The parts of the run, those with a server of their own with its address."""
    parts: dict[ModelRole, str | None] = {
        "policy": config.policy,
        "planner": config.planner,
        "judge": config.judge,
        "rater": config.rater,
        "grounder": config.grounder,
    }
    own = {role: base_url_of(config, role) for role in ROLES if _takes_server(config, role)}
    places = {role: f" at {url}" for role, url in own.items() if url != config.base_url}
    return ", ".join(f"{role} {part}{places.get(role, '')}" for role, part in parts.items() if part is not None)


def check_constrained(config: RunConfig, before: RunConfig | None = None) -> None:
    """Raises BadInput where answers are to be limited by a grammar, but the policy's model is known to take none.
    Values that *before* has, too, are not checked."""
    if config.constrained != "on" or (before is not None and before.constrained == "on"):
        return
    spec = spec_of(config, "policy")
    with suppress(ModelUnavailable):  # a wrong spec is reported when the model is made
        if spec and not parse_spec(spec).takes_grammars(ModelOptions(base_url_of(config, "policy"))):
            raise BadInput(
                f"policy {spec} takes no grammar, so that --constrained on has no effect: leave it out, or choose "
                "local:DIR, vllm:URL#MODEL or a llama.cpp server (openai:MODEL with --base-url)"
            )


def check_thinking(config: RunConfig, before: RunConfig | None = None) -> None:
    """Raises BadInput where a role is to think, but its model is known not to: a value for that role alone, or the
    common value if no model of planner, rater and judge can use it. Values that *before* has, too, are not checked."""
    own: dict[ModelRole, Thinking | None] = {role: getattr(config, f"{role}_thinking") for role in ROLES}
    for role, thinking in own.items():
        if before is not None and thinking == getattr(before, f"{role}_thinking"):
            continue
        if thinking is not None and asks_to_think(thinking) and _ignores(config, role, thinking):
            raise BadInput(
                f"{role} {spec_of(config, role) or 'without a model'} does not use a thinking "
                f"{_unit(thinking)}, here {thinking}: leave it out{_or_an_effort(config, role, thinking)}"
            )
    if before is not None and config.thinking == before.thinking:
        return
    common: list[ModelRole] = [
        role for role in ROLES if role not in OWN_THINKING and own[role] is None and spec_of(config, role)
    ]
    if common and asks_to_think(config.thinking) and all(_ignores(config, role, config.thinking) for role in common):
        raise BadInput(
            f"no model of {', '.join(common)} uses a thinking {_unit(config.thinking)}, here {config.thinking}: "
            f"leave it out{_or_an_effort(config, common[0], config.thinking)}, or name another role (policy=VALUE)"
        )


def _ignores(config: RunConfig, role: ModelRole, thinking: Thinking) -> bool:
    spec = spec_of(config, role)
    if role == "judge" and JUDGES.split(config.judge)[0] in OUTCOME_ONLY:  # answers with one word
        return True
    with suppress(ModelUnavailable):  # a wrong spec is reported when the model is made
        return not spec or parse_spec(spec).ignores_thinking(thinking)
    return False


def _unit(thinking: Thinking) -> str:
    return "budget" if effort_of(thinking) is None else "effort"


def _or_an_effort(config: RunConfig, role: ModelRole, thinking: Thinking) -> str:
    """The advice to give an effort, where that is sent and the budget *thinking* is not."""
    helps = effort_of(thinking) is None and not _ignores(config, role, "low")
    return ", or give an effort (--reasoning)" if helps else ""
