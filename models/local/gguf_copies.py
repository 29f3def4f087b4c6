"""A GGUF file as a transformers checkpoint: converted once and kept in the cache.

transformers reads a GGUF file in half a minute for half a billion parameters, and with some versions and kernels leaves
the weights in blocks that every pass unpacks again. A copy with plain weights loads in seconds and plays as any other
checkpoint. Quantized weights are stored as bfloat16, which is far finer than they are; others as float32.

    ~/.cache/mira/gguf/
    ├── NAME-DIGEST/        a copy, by the SHA-256 of the file: config.json, model.safetensors, tokenizer, source.json
    └── known/PATH.json     size, time and digest of a file, so that an unchanged one is not read again
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, redirect_stderr
from pathlib import Path
from typing import Any, Final

from models.base import ModelUnavailable
from models.local.gguf_header import GgufHeader, read_header
from models.local.safe_loading import LOCAL
from models.optional import install_command, missing_modules

SOURCE: Final = "source.json"
"""In a copy: which file it was made from."""
SUFFIX: Final = ".gguf"

Tell = Callable[[str], object]


def gguf_file(place: Path) -> Path | None:
    """The GGUF file that *place* is, or the one in the folder *place* where that is no checkpoint; else None. Raises
    :class:`ModelUnavailable` where a folder holds several."""
    if place.is_file():
        return place if place.suffix.lower() == SUFFIX else None
    if (place / "config.json").is_file():
        return None
    found = sorted(path for path in place.glob("*") if path.suffix.lower() == SUFFIX)
    if len(found) > 1:
        raise ModelUnavailable(
            f"{str(place)!r} holds {len(found)} GGUF files, name one: local:{found[0]} or {found[-1].name}"
        )
    return found[0] if found else None


def gguf_cache() -> Path:
    """`$XDG_CACHE_HOME/mira/gguf`, by default below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "mira" / "gguf"


def is_quantized_copy(folder: Path) -> bool:
    """Whether *folder* was made by `converted` of quantized weights."""
    try:
        values: dict[str, Any] = json.loads((folder / SOURCE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return values.get("dtype") == "bfloat16"


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def converted(file: Path, spec: str, tell: Tell = _say) -> Path:
    """The folder of *file*'s copy, made where it is missing; *tell* gets a message with its size and place.

    Processes that need the same copy make it once. Raises :class:`ModelUnavailable` in one line that begins with *spec*
    where the package `gguf` or room on the disk is missing, and where transformers cannot read the file.
    """
    cache = gguf_cache()
    try:
        header = read_header(file)
        digest = _digest(file, cache)[:16]
        if (made := next(cache.glob(f"*-{digest}"), None)) is not None:
            return made
        folder = cache / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', file.stem)}-{digest}"
        _check(header, spec)
        with _alone(cache):
            if not folder.is_dir():
                _make(file, header, folder, spec, tell)
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"{spec}: {' '.join(str(error).split())[:300]}") from error
    return folder


def _check(header: GgufHeader, spec: str) -> None:
    if missing_modules("gguf"):
        raise ModelUnavailable(f"{spec}: a GGUF file needs the package gguf: {install_command('gguf')}")
    if header.parts > 1:
        raise ModelUnavailable(
            f"{spec}: the model is split over {header.parts} GGUF files: join them with llama.cpp's gguf-split --merge"
        )


def _make(file: Path, header: GgufHeader, folder: Path, spec: str, tell: Tell) -> None:
    size = header.elements * (2 if header.quantized else 4)
    free = shutil.disk_usage(folder.parent).free
    if free < 1.05 * size:
        raise ModelUnavailable(
            f"{spec}: its copy takes {_amount(size)} and {str(folder.parent)!r} has {_amount(free)} left: make room, "
            "or set XDG_CACHE_HOME"
        )
    tell(f"{spec}: converting {_amount(file.stat().st_size)} of GGUF once, {_amount(size)} stay in {folder}")
    begun = time.monotonic()
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        _write(file, part, "bfloat16" if header.quantized else "float32")
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    tell(f"{spec}: converted in {time.monotonic() - begun:.0f} s; later runs read the copy")


def _write(file: Path, out: Path, dtype: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    given: dict[str, Any] = {"gguf_file": file.name, **LOCAL}
    with nullcontext() if sys.stderr.isatty() else redirect_stderr(io.StringIO()):  # a progress bar is for terminals
        tokenizer: Any = AutoTokenizer.from_pretrained(file.parent, **given)
        model: Any = AutoModelForCausalLM.from_pretrained(
            file.parent, dtype=getattr(torch, dtype), attn_implementation="sdpa", **given, **_dequantized()
        )
        tokenizer.save_pretrained(out)
        model.save_pretrained(out)
    values = {"file": str(file.resolve()), "bytes": file.stat().st_size, "dtype": dtype}
    (out / SOURCE).write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def _dequantized() -> dict[str, Any]:
    """What keeps transformers from leaving weights in GGUF's blocks; versions that never do have no such setting."""
    try:
        from transformers import GgufConfig
    except ImportError:
        return {}
    return {"quantization_config": GgufConfig(dequantize=True)}


def _digest(file: Path, cache: Path) -> str:
    """SHA-256 of *file*; one that has the size and time of the last call is not read again."""
    stat = file.stat()
    now = {"bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    known = cache / "known" / f"{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]}.json"
    try:
        values: dict[str, Any] = json.loads(known.read_text(encoding="utf-8"))
        if {name: values[name] for name in now} == now:
            return str(values["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # never read, or cut off
    with file.open("rb") as read:
        digest = hashlib.file_digest(read, "sha256").hexdigest()
    known.parent.mkdir(parents=True, exist_ok=True)
    unfinished = known.with_name(f"{known.name}.{os.getpid()}.part")
    unfinished.write_text(json.dumps({**now, "sha256": digest}), encoding="utf-8")
    unfinished.replace(known)
    return digest


@contextmanager
def _alone(cache: Path) -> Generator[None]:
    """One process converts at a time: a conversion takes as much memory as the model."""
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _amount(size: int) -> str:
    """`1.3 GB` or `491 MB`."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(1, round(size / 1e6))} MB"
