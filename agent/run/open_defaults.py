"""Who plans and judges an open task where nobody has said: the one place that decides it.

A task in words ships no milestones and no checker, so the defaults of a suite (`reference`, `state`) leave it without a
plan and without a verdict. Where the policy is a model that can do both, it does: planner and judge are `same`.
"""

from __future__ import annotations

from agent.config import RunConfig
from models.base import ModelUnavailable
from models.local.prompt_style import style_of_spec
from models.provider_specs.embedded import EmbeddedSpec
from models.provider_specs.scripted import ScriptedSpec
from models.specs import parse_spec

_ROLES = ("planner", "judge")
_NO_MODEL = frozenset({"none", "reference", "state"})


def with_open_defaults(config: RunConfig) -> RunConfig:
    """*config* for an open task: `same` for each of planner and judge that was not set, if the policy can do it.

    What was set stays, `none` too; so does what a stored configuration says, because there everything is set.
    """
    unset = [role for role in _ROLES if role not in config.model_fields_set]
    return config.model_copy(update=dict.fromkeys(unset, "same")) if unset and _can_plan_and_judge(config) else config


def _can_plan_and_judge(config: RunConfig) -> bool:
    """The policy is a model, and no small one: not the embedded one, none that answers compact prompts, no script."""
    try:
        spec = parse_spec(config.policy)
    except ModelUnavailable:
        return False  # an oracle or a policy from Python; whatever else it is, making the policy says it
    if isinstance(spec, EmbeddedSpec | ScriptedSpec):
        return False
    style = style_of_spec(config.policy) if config.prompt_style == "auto" else config.prompt_style
    return style != "compact"


def roles_line(asked: RunConfig, config: RunConfig) -> str:
    """Who plays an open task, in one line: *config*, what was made of *asked*, and how to have it otherwise."""
    told = f"policy {config.policy}, planner {config.planner}, judge {config.judge}"
    unset = [role for role in _ROLES if role not in asked.model_fields_set]
    if chosen := [role for role in unset if getattr(config, role) == "same"]:
        off = " ".join(f"--{role} none" for role in chosen)
        return f"{told} (the default of an open task with this policy; {off} switches it off)"
    if missing := [role for role in unset if getattr(config, role) in _NO_MODEL]:
        lacks = " and ".join({"planner": "no plan", "judge": "no verdict"}[role] for role in missing)
        options = " and ".join(f"--{role}" for role in missing)
        return f"{told}: an open task has {lacks} this way; name a model with {options}"
    return told
