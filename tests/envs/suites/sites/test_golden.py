"""Golden states: the environment of the processes that build and serve a site."""

from __future__ import annotations

import os
from pathlib import Path

from envs.suites.sites import golden


def test_child_processes_import_this_copy_of_the_package() -> None:
    first = Path(golden.child_environment()["PYTHONPATH"].split(os.pathsep)[0])
    assert (first / "envs" / "suites" / "sites" / "golden.py").samefile(golden.__file__)
