"""Defines the arms: MiRA, its baselines and its ablations, as changes of one configuration.

All arms start from the same checkpoint and play equally many rollouts. docs/baselines.md lists the differences of each
from its published version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

Arm = Literal[
    "mira",
    "mira_anchored",
    "no_potential",
    "kl",
    "td_only",
    "no_filter",
    "webrl_paper",
    "webrl_code",
    "digirl",
    "awr",
    "filtered_bc",
    "mgrpo",
    "digirl_shaped",
    "mira_milestones",
    "mira_key_step",
    "mira_last_milestone",
    "mira_undiscounted",
    "mira_per_trajectory",
    "mira_group",
    "mira_group_value",
    "mira_credit",
]


@dataclass(frozen=True, slots=True)
class Recipe:
    """An arm's changes to :class:`training.loop.settings.LoopSettings`."""

    description: str
    changes: dict[str, Any] = field(default_factory=dict[str, Any])
    value: bool = True
    """The arm needs a value critic."""
    groups: bool = False
    """Advantages are relative to the attempts at the same task instance (:mod:`training.mira.group_advantages`)."""


_SPARSE: Final = {"alpha": 0.0}
_SEEN: Final = {"milestones": True}
_ALL_PERPLEXITIES: Final = {"low": 1.0, "high": 1e9}

ARMS: Final[dict[Arm, Recipe]] = {
    "mira": Recipe("potential-shaped reward, regression on advantages (Eq. 12)"),
    "mira_anchored": Recipe(
        "MiRA with an anchor: likelihood of successes added to the regression, failures at less weight",
        {"actor": {"objective": {"beta": 0.1, "negative_weight": 0.3, "anchor": 1.0}}},
    ),
    "no_potential": Recipe("MiRA without its potential critic", {"targets": _SPARSE}),
    "kl": Recipe(
        "MiRA's advantages, weighted likelihood (Eq. 15)", {"actor": {"objective": {"kind": "weighted", "beta": 0.5}}}
    ),
    "td_only": Recipe("MiRA with λ = 1: no Monte-Carlo term", {"targets": {"mix": 1.0}}),
    "no_filter": Recipe("MiRA replaying successes of any perplexity", {"replay": {"band": _ALL_PERPLEXITIES}}),
    "webrl_paper": Recipe(
        "log-ratio regression on the sparse reward; tasks filtered by value",
        {"targets": _SPARSE, "curriculum": {"value_band": {}, "explore_share": 0.0}},
    ),
    "webrl_code": Recipe(
        "as published: smooth L1 towards +1, only actions with a positive advantage",
        {
            "targets": {**_SPARSE, "value_target": "outcome", "advantage": "webrl_code"},
            "actor": {"objective": {"kind": "webrl_code", "beta": 1.0}, "keep": "positive"},
            "replay": {"unit": "step", "band": {"low": 1 / 0.95, "high": 1 / 0.5}},
            "curriculum": {"value_band": {}, "explore_share": 0.0},
        },
    ),
    "digirl": Recipe(
        "cloning after two filters by value",
        {"targets": _SPARSE, "actor": {"objective": {"kind": "cloning"}, "keep": "digirl"}},
    ),
    "awr": Recipe(
        "exp(A/β)-weighted likelihood with the plain return's advantage",
        {"targets": {**_SPARSE, "mix": 0.0}, "actor": {"objective": {"kind": "weighted", "beta": 0.5}}},
    ),
    "filtered_bc": Recipe(
        "cloning of successes",
        {"targets": _SPARSE, "actor": {"objective": {"kind": "cloning"}, "keep": "successes"}},
        value=False,
    ),
    "mgrpo": Recipe(
        "WebAgent-R1's M-GRPO: advantages within groups of attempts, clipped surrogate, no critic, no replay",
        {
            "targets": _SPARSE,
            "actor": {"objective": {"kind": "clipped"}},
            "rollouts": {"attempts": 8},
            "replay": {"per_new": 0.0},
            "curriculum": {"explore_share": 1.0, "rare_share": 0.0},
        },
        value=False,
        groups=True,
    ),
    "digirl_shaped": Recipe(
        "DigiRL's filters on the shaped reward",
        {"targets": {"alpha": 0.6}, "actor": {"objective": {"kind": "cloning"}, "keep": "digirl"}},
    ),
    "mira_milestones": Recipe(
        "MiRA whose critics see how many milestones are done", {"value": _SEEN, "potential": _SEEN}
    ),
    "mira_key_step": Recipe(
        "MiRA whose failures count from the failure analyzer's key step", {"actor": {"failures_from": "key_step"}}
    ),
    "mira_last_milestone": Recipe(
        "MiRA whose failures count after the last milestone gained", {"actor": {"failures_from": "last_milestone"}}
    ),
    "mira_undiscounted": Recipe("MiRA with γ = 1", {"targets": {"gamma": 1.0}}),
    "mira_per_trajectory": Recipe(
        "MiRA whose trajectories weigh the same (1/|τ|), not their steps", {"actor": {"normalizer": "trajectory"}}
    ),
    "mira_group": Recipe(
        "MiRA with the mean of all attempts at an instance as baseline (needs rollouts.attempts above 1)",
        {"targets": {"group_weight": 1.0}},
    ),
    "mira_credit": Recipe(
        "MiRA with γ = 1, a value critic that sees the milestones, and failures from the key step",
        {"targets": {"gamma": 1.0}, "value": _SEEN, "actor": {"failures_from": "key_step"}},
    ),
    "mira_group_value": Recipe("MiRA with half of that baseline and half of V", {"targets": {"group_weight": 0.5}}),
}
assert set(ARMS) == set(get_args(Arm))
