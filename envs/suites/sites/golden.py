"""Builds and caches golden states: each site's database and files, one build per version of sources and packages."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from envs.core.errors import BadInput, ResetFailed
from envs.core.wait_notices import waiting_for
from envs.suites.sites.kinds import SiteName

BUILD_S = 900.0
HERE = Path(__file__).parent
PACKAGES: dict[SiteName, tuple[str, ...]] = {
    "shop": ("django-oscar", "Django"),
    "forum": ("django-spirit", "Django"),
    "code": ("trac",),
    "cms": ("wagtail", "Django"),
    "map": ("osmium", "networkx"),
}
"""Packages of each site. Another version gives another golden state."""
SERVING = ("time-machine", "waitress")

ReportLine = Callable[[str], None]
"""Receives one line of progress."""


def sites_home() -> Path:
    """`$XDG_CACHE_HOME/mira/sites`, by default below `~/.cache`."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "mira" / "sites"


def missing_packages(name: SiteName) -> tuple[str, ...]:
    """Packages of the extra `sites` that this site needs and that are not installed."""
    return tuple(package for package in (*PACKAGES[name], *SERVING) if not _version(package))


def golden_folder(name: SiteName) -> Path:
    """The cache folder for the golden state of the current sources and versions.

    Raises BadInput if the extra `sites` is not installed."""
    missing = missing_packages(name)
    if missing:
        raise BadInput(f"the site {name} needs {', '.join(missing)}: pip install '.[sites]' in the clone of Mira")
    return sites_home() / "golden" / f"{name}-{_fingerprint(name)}"


async def build_golden(name: SiteName, report: ReportLine = lambda line: None) -> Path:
    """Returns the golden folder and builds it if it is missing. One process builds, others wait for it.

    *report* receives the builder's lines of progress. Raises BadInput and ResetFailed.
    """
    folder = golden_folder(name)
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = await asyncio.to_thread(_locked, folder.with_suffix(".lock"))
    try:
        if not folder.exists():
            await _build(name, folder, report)
    finally:
        os.close(lock)
    return folder


async def _build(name: SiteName, folder: Path, report: ReportLine) -> None:
    waiting_for(f"building the site {name} (once)")
    with _part(folder) as part:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "envs.suites.sites.building",
            name,
            str(part),
            cwd=part,
            env=child_environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        lines: list[str] = []
        try:
            async with asyncio.timeout(BUILD_S):
                assert process.stdout is not None
                async for raw in process.stdout:
                    lines.append(raw.decode("utf-8", "replace").rstrip())
                    report(lines[-1])
                    waiting_for(f"building the site {name} (once): {lines[-1]}")
                code = await process.wait()
        except BaseException:
            if process.returncode is None:
                process.kill()
            raise
        if code != 0:
            log = folder.with_suffix(".log")
            log.write_text("\n".join(lines), encoding="utf-8")
            raise ResetFailed(f"building the site {name} failed: {(lines or ['no output'])[-1][:300]} (log: {log})")
        part.rename(folder)


@contextmanager
def _part(folder: Path) -> Generator[Path]:
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def child_environment() -> dict[str, str]:
    """The environment variables of a building or serving process. They make it import this copy of the package."""
    package_root = str(HERE.parents[2])
    inherited = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (package_root, inherited))),
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "ignore",
        "TZ": "UTC",
    }


def _locked(path: Path) -> int:
    """Locks *path* and returns its file descriptor. Closing the descriptor releases the lock."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _fingerprint(name: SiteName) -> str:
    """A hash (12 hex digits) of all sources and package versions that determine the golden state."""
    digest = hashlib.sha256()
    shared = [HERE / "clock.py", HERE / "building.py", *sorted((HERE / "apps").glob("*.py"))]
    own = sorted(path for path in (HERE / "apps" / name).rglob("*") if path.suffix != ".pyc" and path.is_file())
    for path in (*shared, *own):
        digest.update(str(path.relative_to(HERE)).encode() + b"\0" + path.read_bytes() + b"\0")
    for package in PACKAGES[name]:
        digest.update(f"{package}={_version(package)}\n".encode())
    return digest.hexdigest()[:12]
