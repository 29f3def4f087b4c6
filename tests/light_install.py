"""The core installation inside the full one: a child process in which every module of another distribution is missing.

What is missing is computed, not listed: the closure of `dependencies` in pyproject.toml stays, everything else that is
installed goes. A `sitecustomize` module takes it away before the child's first import, and in its children too.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from tests.timing import HANG_S

ROOT = Path(__file__).parents[1]
SITECUSTOMIZE = """
import importlib.metadata as metadata, json, pathlib, sys

missing = json.loads((pathlib.Path(__file__).parent / "missing.json").read_text())
for name in missing["modules"]:
    sys.modules[name] = None  # an import raises ModuleNotFoundError, importlib.util.find_spec finds nothing
from_name = metadata.Distribution.from_name


def known(name):
    if metadata.Prepared.normalize(name).replace("_", "-") in missing["distributions"]:
        raise metadata.PackageNotFoundError(name)
    return from_name(name)


metadata.Distribution.from_name = staticmethod(known)
"""


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(requirements: Iterable[str]) -> frozenset[str]:
    """Canonical names of the installed distributions that *requirements* bring, themselves included."""
    found: set[tuple[str, str]] = set()
    waiting = [(Requirement(line), "") for line in requirements]
    while waiting:
        requirement, asked = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": asked}):
            continue
        for extra in ("", *requirement.extras):
            known = (canonical(requirement.name), extra)
            if known in found or not _installed(requirement.name):
                continue
            found.add(known)
            waiting += [(Requirement(line), extra) for line in metadata.requires(requirement.name) or ()]
    return frozenset(name for name, _ in found)


def core_closure() -> frozenset[str]:
    return closure(project()["dependencies"])


def missing_modules() -> dict[str, list[str]]:
    """Top-level modules that no distribution of the core brings, and the distributions that bring them."""
    core = core_closure() | {canonical(project()["name"])}
    brought = {name: set(map(canonical, by)) for name, by in metadata.packages_distributions().items()}
    return {name: sorted(by) for name, by in sorted(brought.items()) if core.isdisjoint(by)}


def light_environ(folder: Path) -> dict[str, str]:
    """The environment of a child without the modules of the extras; its files go to *folder*."""
    return without_modules(folder, missing_modules())


def without_modules(folder: Path, missing: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The environment of a child without these modules and their distributions."""
    place = folder / "light"
    place.mkdir(parents=True, exist_ok=True)
    gone = {"modules": list(missing), "distributions": sorted(set(chain.from_iterable(missing.values())))}
    (place / "missing.json").write_text(json.dumps(gone), encoding="utf-8")
    (place / "sitecustomize.py").write_text(SITECUSTOMIZE, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(place), str(ROOT))), "COLUMNS": "200"}


def light_mira(folder: Path, *words: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """`mira WORDS` in *folder*."""
    return subprocess.run(
        [sys.executable, "-m", "agent.cli", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        cwd=folder,
        env=environ,
    )


def _installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
