"""What is shipped and pinned: types in the wheel, and a lock file that fits the project."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.timing import HANG_S

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGES = ("agent", "envs", "judges", "models", "planners", "training")
LOCKED_EXTRAS = ("adapters", "arc", "dev", "docs", "gguf", "mcp", "serving", "sites", "training")
STALE = "requirements.lock does not fit pyproject.toml: run `make lock`"


def _locked() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [re.match(r"([\w.-]+)(?:\[[\w,]+\])?==([^\s;]+)", line) for line in lines]
    return {canonicalize_name(pin[1]): pin[2] for pin in pins if pin}


def test_the_lock_fits_the_project() -> None:
    wanted = [*PROJECT["dependencies"], *(one for extra in LOCKED_EXTRAS for one in _extra(extra))]
    locked = _locked()
    for requirement in map(Requirement, wanted):
        name = canonicalize_name(requirement.name)
        if name != canonicalize_name(PROJECT["name"]):
            assert name in locked, f"{name}: {STALE}"
            assert requirement.specifier.contains(locked[name], prereleases=True), f"{name} {locked[name]}: {STALE}"


def _extra(name: str) -> list[str]:
    return PROJECT["optional-dependencies"].get(name, [])


def test_the_lock_names_no_host_and_no_path() -> None:
    pinned = re.compile(r"[\w.-]+(\[[\w,-]+\])?==[\w.+!]+( ; [\w\s.'\"()<>=!-]+)?")
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#") and not pinned.fullmatch(line)] == []


def test_the_wheel_ships_the_types(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", reason="setuptools is not installed: no wheel can be built here")
    source = tmp_path / "source"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    code = f"from setuptools import build_meta; build_meta.build_wheel({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=source, check=True, capture_output=True, timeout=HANG_S)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    assert {f"{name}/py.typed" for name in PACKAGES} <= names
    assert not any(name.startswith(("tests/", "examples/", "scripts/", "docs/")) for name in names)
