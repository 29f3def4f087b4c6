"""Chooses the prompt profile of a run's policy, once: the run records it, and a resumed run keeps it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from agent.config import RunConfig, parse_config
from agent.profiles.names import AUTO, OF_STYLE
from agent.profiles.profile import Profile, named, profile_of_spec
from agent.run.oracle_tasks import SPECS, plays_oracle
from models.local.declarations import style_of_spec

_SET_BY_PROFILES: Final = ("profile", "language", "max_actions_per_turn", "max_notes")


def with_profile(config: RunConfig, suite: str) -> RunConfig:
    """*config* with the profile that it chooses, and the settings of that profile which *config* leaves unset."""
    profile = _chosen(config, suite)
    settings: dict[str, Any] = {
        "language": profile.language,
        "max_actions_per_turn": profile.max_actions,
        "max_notes": profile.max_notes,
    }
    unset = {
        name: value for name, value in settings.items() if value is not None and name not in config.model_fields_set
    }
    return config.model_copy(update={"profile": profile.name, **unset})


def with_policy(config: RunConfig, before: str, suite: str, chosen: Collection[str] = ()) -> RunConfig:
    """*config* after its policy replaced *before*: what the profile of *before* set is set by that of the new policy.
    Values that differ from those of the old profile were given, and stay. So do those of the keys *chosen*."""
    values = config.resolved()
    rest = {name: value for name, value in values.items() if name not in _SET_BY_PROFILES}
    old = with_profile(parse_config(rest | {"policy": before}), suite)
    given = {name: values[name] for name in _SET_BY_PROFILES if name in chosen or values[name] != getattr(old, name)}
    return with_profile(parse_config(rest | given), suite)


def profile_of(config: RunConfig, suite: str) -> Profile:
    """The profile of a stored *config*; without one, as in older versions, the one that its model declares, or
    `large`."""
    if config.profile != AUTO:
        return named(config.profile)
    if plays_oracle(config, suite):
        return named(OF_STYLE["compact"])
    return named(OF_STYLE[style_of_spec(config.policy) or "full"])


def _chosen(config: RunConfig, suite: str) -> Profile:
    if config.profile == AUTO and not plays_oracle(config, suite) and config.policy not in ("scripted", *SPECS):
        return profile_of_spec(config.policy)
    return profile_of(config, suite)
