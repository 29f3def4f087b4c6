"""Golden states: each site's database and files, built once for its sources and versions, and kept in a cache."""

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
"""What each site stands on; another version means another golden state."""
SERVING = ("time-machine", "waitress")

Told = Callable[[str], None]


def sites_home() -> Path:
    """`$XDG_CACHE_HOME/mira/sites`, by default below `~/.cache`."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "mira" / "sites"


def missing_packages(name: SiteName) -> tuple[str, ...]:
    """Packages of the extra `sites` that this site needs and this installation lacks."""
    return tuple(package for package in (*PACKAGES[name], *SERVING) if not _version(package))


def golden_folder(name: SiteName) -> Path:
    """Where the golden state of these very sources and versions is kept. Raises BadInput without the extra."""
    missing = missing_packages(name)
    if missing:
        raise BadInput(f"the site {name} needs {', '.join(missing)}: pip install 'mira-web[sites]'")
    return sites_home() / "golden" / f"{name}-{_fingerprint(name)}"


async def build_golden(name: SiteName, told: Told = lambda line: None) -> Path:
    """The golden folder, built if it is not there yet; one process builds, others wait for it.

    *told* gets the builder's lines of progress. Raises BadInput and ResetFailed.
    """
    folder = golden_folder(name)
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = await asyncio.to_thread(_locked, folder.with_suffix(".lock"))
    try:
        if not folder.exists():
            await _build(name, folder, told)
    finally:
        os.close(lock)
    return folder


async def _build(name: SiteName, folder: Path, told: Told) -> None:
    waiting_for(f"building the site {name}, which is done once")
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
                    told(lines[-1])
                    waiting_for(f"building the site {name}, which is done once: {lines[-1]}")
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
    """Of a building or serving process: finds this very package, writes nothing into a home."""
    package_root = str(HERE.parents[2])
    known = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (package_root, known))),
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "ignore",
        "TZ": "UTC",
    }


def _locked(path: Path) -> int:
    """An open file that holds the lock until it is closed."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _fingerprint(name: SiteName) -> str:
    """12 hex digits over everything that decides the golden state."""
    told = hashlib.sha256()
    shared = [HERE / "clock.py", HERE / "building.py", *sorted((HERE / "apps").glob("*.py"))]
    own = sorted(path for path in (HERE / "apps" / name).rglob("*") if path.suffix != ".pyc" and path.is_file())
    for path in (*shared, *own):
        told.update(str(path.relative_to(HERE)).encode() + b"\0" + path.read_bytes() + b"\0")
    for package in PACKAGES[name]:
        told.update(f"{package}={_version(package)}\n".encode())
    return told.hexdigest()[:12]
