"""Lists what installed packages add to Mira: providers, planners, judges, suites, tools, rewards and data sets."""

from __future__ import annotations

from agent.episode.tools import TOOLS
from agent.run.suites import SUITES
from judges.registry import JUDGES
from models.registry import DATA_SETS, REWARDS, STEP_REWARDS, AddedEntry, added_names
from models.specs import PROVIDERS
from planners.registry import PLANNERS


def added_entries() -> list[AddedEntry]:
    """The entries of all groups. Imports each to report what is broken, except rewards and data sets, which only
    training imports."""
    checked = [entry for registry in (PROVIDERS, PLANNERS, JUDGES, SUITES, TOOLS) for entry in registry.added()]
    return [*checked, *(entry for group in (REWARDS, STEP_REWARDS, DATA_SETS) for entry in added_names(group))]
