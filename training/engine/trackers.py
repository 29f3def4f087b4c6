"""The experiment trackers of transformers that `report_to` names."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from envs.core.errors import BadInput
from models.optional import install_command

TENSORBOARD = "tensorboard"
"""Its name in `report_to`, its module, and its folder in the run's."""


def check_trackers(report_to: Sequence[str]) -> None:
    """Raises BadInput for a name that is no tracker of transformers, and for one whose library cannot be used."""
    if TENSORBOARD in report_to and find_spec(TENSORBOARD) is None:
        raise BadInput(f"report_to: tensorboard is not installed: {install_command('training')}")
    for name in tracker_names(report_to):
        known = _integrations().INTEGRATION_TO_CALLBACK
        if name not in known:
            raise BadInput(f"report_to: unknown tracker {name!r}; there are {', '.join(sorted(known))}")
        try:
            known[name]()  # as each stage does
        except (ImportError, RuntimeError, ValueError) as error:
            raise BadInput(f"report_to: {name} cannot be used: {' '.join(str(error).split())}") from error


def tracker_names(report_to: Sequence[str]) -> Sequence[str]:
    """The trackers of *report_to*. As in transformers, `all` alone stands for those that are installed, `none` alone
    for none."""
    if list(report_to) == ["all"]:
        return _integrations().get_available_reporting_integrations()
    return () if list(report_to) == ["none"] else report_to


def _integrations() -> Any:
    return import_module("transformers.integrations.integration_utils")
