"""Default planner and judge of an open task.

An open task has no milestones and no checker, so the defaults of a suite (`reference`, `state`) give it neither a plan
nor a verdict. If the policy is a large model, planner and judge therefore default to `same`: the policy's model. A
small general model (a short prompt profile) does neither: Qwen2.5-Coder-0.5B gave no verdict on 49 of 60 episodes,
because it contradicted itself (docs/results/judge_agreement.md).
"""

from __future__ import annotations

from contextlib import suppress

from agent.config import RunConfig
from agent.profiles.names import AUTO
from agent.profiles.profile import named, profile_of_spec
from models.base import ModelUnavailable
from models.provider import ModelSpec
from models.providers.embedded import EmbeddedSpec
from models.providers.scripted import ScriptedSpec
from models.specs import parse_spec

_ROLES = ("planner", "judge")
_LARGE = "--policy openai:gpt-4o"
_NO_MODEL = frozenset({"none", "reference", "state"})


def with_open_defaults(config: RunConfig) -> RunConfig:
    """Returns *config* with planner and judge set to `same` where they were unset and the policy can plan and judge.

    Explicit values stay, including `none`. A stored configuration sets every field, so it does not change.
    """
    unset = [role for role in _ROLES if role not in config.model_fields_set]
    return config.model_copy(update=dict.fromkeys(unset, "same")) if unset and _can_plan_and_judge(config) else config


def _can_plan_and_judge(config: RunConfig) -> bool:
    """Whether the policy is a large model: not the embedded one, no script, and not one with compact or short
    prompts."""
    spec = _policy_spec(config)
    if spec is None or isinstance(spec, EmbeddedSpec | ScriptedSpec):
        return False
    if config.profile != AUTO:
        return named(config.profile).role_style == "full"
    return profile_of_spec(config.policy).role_style == "full"


def _policy_spec(config: RunConfig) -> ModelSpec | None:
    """The policy's spec; None for an oracle or a policy from Python. A wrong spec is reported when the policy is
    built."""
    with suppress(ModelUnavailable):
        return parse_spec(config.policy)
    return None


def roles_line(requested: RunConfig, config: RunConfig) -> str:
    """Describes in one line the policy, planner and judge of an open task, and the options that change them.

    *config* is *requested* with its defaults filled in."""
    grounder = f", grounder {config.grounder}" if config.grounder is not None else ""
    line = f"policy {config.policy}{grounder}, planner {config.planner}, judge {config.judge}"
    if isinstance(_policy_spec(config), EmbeddedSpec):
        return f"{line}: this is a small model that knows short forms; a website needs a large one, e.g. {_LARGE}"
    unset = [role for role in _ROLES if role not in requested.model_fields_set]
    if chosen := [role for role in unset if getattr(config, role) == "same"]:
        off = " ".join(f"--{role} none" for role in chosen)
        return f"{line} (the default of an open task with this policy; {off} switches it off)"
    if missing := [role for role in unset if getattr(config, role) in _NO_MODEL]:
        missing_parts = " and ".join({"planner": "no plan", "judge": "no verdict"}[role] for role in missing)
        options = " and ".join(f"--{role}" for role in missing)
        return f"{line}: an open task has {missing_parts} with this configuration; name a model with {options}"
    return line
