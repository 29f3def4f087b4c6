"""Refuses checkpoints that could run code of their author.

Weights are read from safetensors only. Before transformers or PEFT read a folder, these are refused: pickled weights,
an index with pickled shards, a configuration that names such a file. `trust_remote_code` is always false, because its
default asks on a terminal.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, Final

LOCAL: Final[dict[str, Any]] = {"local_files_only": True, "trust_remote_code": False}
"""Options of every `from_pretrained` of transformers: no network, no code of the checkpoint."""
WEIGHTS: Final[dict[str, Any]] = {**LOCAL, "use_safetensors": True}
"""Options of those that read weights."""

PICKLES: Final = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"})
"""File suffixes of weights that `torch.load` reads."""
ADAPTER_CONFIG: Final = "adapter_config.json"
"""The file that marks a folder as a PEFT adapter."""
_SAFE: Final = ".safetensors"
_ADAPTER: Final = "adapter_model"
_NOT_WEIGHTS: Final = frozenset({"training_args.bin", "optimizer.pt", "optimizer.bin", "scheduler.pt", "scaler.pt"})
"""Files of a trainer beside the weights; they are not read."""


def weights_problem(folder: Path) -> str | None:
    """Why the weights of the checkpoint in *folder* are refused, in one line; None if they are accepted."""
    return _of_model(folder.resolve(), frozenset())


def adapter_problem(folder: Path) -> str | None:
    """Why the PEFT adapter in *folder* is refused, in one line; None if it is accepted."""
    if (folder / f"{_ADAPTER}{_SAFE}").is_file():
        return None
    pickled = next((name for name in _pickles(folder) if name.startswith(_ADAPTER)), None)
    if pickled is None:
        return f"{str(folder)!r} holds no {_ADAPTER}{_SAFE}"
    source, target = folder / pickled, folder / f"{_ADAPTER}{_SAFE}"
    code = (
        "import torch, safetensors.torch as s; "
        f"s.save_file(torch.load({str(source)!r}, weights_only=True), {str(target)!r})"
    )
    return _refusal(folder, pickled, code)


def _of_model(folder: Path, seen: frozenset[Path]) -> str | None:
    problem = _named_by_config(folder) or _shards(folder)
    if problem is None and (folder / ADAPTER_CONFIG).is_file():  # transformers reads the adapter and the base it names
        problem = adapter_problem(folder)
        base = Path(str(_json(folder / ADAPTER_CONFIG).get("base_model_name_or_path", ""))).resolve()
        if problem is None and base.is_dir() and base not in seen | {folder}:
            problem = _of_model(base, seen | {folder})
        return problem
    if problem is not None or any(folder.glob(f"*{_SAFE}")):
        return problem
    pickled = next(iter(_pickles(folder)), None)
    if pickled is None:
        return f"{str(folder)!r} holds no *{_SAFE}"
    code = (
        "from transformers import AutoModelForCausalLM as M; "
        f"M.from_pretrained({str(folder)!r}).save_pretrained({str(folder)!r})"
    )
    return _refusal(folder, pickled, code)


def _refusal(folder: Path, pickled: str, code: str) -> str:
    return (
        f"{str(folder)!r} holds no *{_SAFE} but a pickle ({pickled}), which is not read; convert it if you trust "
        f"its author: python -c {shlex.quote(code)}"
    )


def _pickles(folder: Path) -> list[str]:
    names = (path.name for path in folder.iterdir() if path.suffix in PICKLES) if folder.is_dir() else ()
    return sorted(name for name in names if name not in _NOT_WEIGHTS and not name.startswith("rng_state"))


def _named_by_config(folder: Path) -> str | None:
    named = _json(folder / "config.json").get("transformers_weights")
    if named is None or (
        isinstance(named, str) and "/" not in named and named.endswith((_SAFE, f"{_SAFE}.index.json"))
    ):
        return None
    return f"{str(folder / 'config.json')!r} names the weights {named!r}: they must be a {_SAFE} file beside it"


def _shards(folder: Path) -> str | None:
    """Checks the files that an index names, because transformers reads each by its suffix."""
    for index in sorted(folder.glob(f"*{_SAFE}.index.json")):
        shards = _json(index).get("weight_map")
        for name in shards.values() if isinstance(shards, dict) else ():
            if not (isinstance(name, str) and name.endswith(_SAFE) and Path(name).name == name):
                return f"{str(index)!r} names the shard {name!r}: shards must be {_SAFE} files beside it"
    return None


def _json(path: Path) -> dict[str, Any]:
    """The JSON object in *path*; empty if it holds none."""
    try:
        values: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}
