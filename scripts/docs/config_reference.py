"""Generates the configuration reference from the records that read the files."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agent.config import RunConfig
from training.grpo.settings import GrpoSettings
from training.loop.settings import LoopSettings
from training.loop.sft import SupervisedSettings

FILES: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("Runs", "`mira run --config FILE`, and keyword arguments of `agent.run_task`", RunConfig),
    ("Supervised fine-tuning", "`mira train sft -c FILE` and `--set KEY=VALUE`", SupervisedSettings),
    ("MiRA and its baselines", "`mira train mira -c FILE` and `--set KEY=VALUE`", LoopSettings),
    ("GRPO", "`mira train grpo -c FILE` and `--set KEY=VALUE`", GrpoSettings),
)
INTRODUCTION = """# Configuration

Generated from the records that read the files. A file is TOML. A key with dots is a key in a table:
`limits.max_steps` is `max_steps` under `[limits]`. Below each key are its type and default. An unknown key is an
error. Options of a command override its file.
"""


class Key(NamedTuple):
    """One key of a configuration."""

    path: str
    type: str
    default: str
    text: str


def config_page() -> str:
    """Markdown of one page with every key of every configuration file."""
    parts = [INTRODUCTION]
    for title, reads, record in FILES:
        parts.append(f"\n## {title}\n\nRead by {reads}.\n")
        parts.append("| key, type, default | meaning |\n|---|---|")
        parts += [f"| `{key.path}`<br>{key.type}; {key.default} | {key.text} |" for key in keys(record)]
    return "\n".join(parts) + "\n"


def keys(record: type[BaseModel], prefix: str = "", defaults: BaseModel | None = None) -> Iterator[Key]:
    """All keys below *record*, in the order of their declaration; nested records in place."""
    texts = attribute_texts(record)
    for name, field in record.model_fields.items():
        path = f"{prefix}{name}"
        default = getattr(defaults, name) if defaults is not None else field.get_default(call_default_factory=True)
        records = [kind for kind in _kinds(field.annotation) if _is_record(kind)]
        text = texts.get(name, "")
        if not _is_record(field.annotation):
            yield Key(path, _type_text(field), _default_text(default, field), text)
        for kind in records:
            below = keys(kind, f"{path}.", default if isinstance(default, kind) else None)
            yield from below if len(records) == 1 else _of_kind(kind, below)


def _of_kind(record: type[BaseModel], below: Iterator[Key]) -> Iterator[Key]:
    """The keys of one of several tables that `kind` selects."""
    chosen = record.model_fields["kind"].default
    for key in below:
        if not key.path.endswith(".kind"):
            yield key._replace(type=f"with kind `{chosen}`: {key.type}")


@cache
def attribute_texts(record: type) -> dict[str, str]:
    """The docstring below each attribute of *record*, a model or dataclass, and of its bases, as a line of Markdown."""
    texts: dict[str, str] = {}
    for cls in reversed(record.__mro__):
        if not (is_dataclass(cls) or _is_record(cls)) or cls.__module__.partition(".")[0] == "pydantic":
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
        assert isinstance(body, ast.ClassDef)
        for node, after in zip(body.body, body.body[1:], strict=False):
            match node, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    texts[name] = cell(inspect.cleandoc(text))
                case _:
                    pass
    return texts


def markdown(text: str) -> str:
    """*text* of a docstring with its reStructuredText roles as Markdown code."""
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)


def cell(text: str) -> str:
    """*text* in one line of a table."""
    return " ".join(markdown(text).split()).replace("|", "\\|")


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, or the annotation alone."""
    if get_origin(annotation) in (Union, UnionType):
        return tuple(member for item in get_args(annotation) for member in _kinds(item))
    if get_origin(annotation) is not None and hasattr(annotation, "__metadata__"):
        return _kinds(get_args(annotation)[0])
    return (annotation,)


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _type_text(field: FieldInfo) -> str:
    bounds = [part for item in field.metadata if (part := _bound(item))]
    kinds = " or ".join(_kind_text(kind) for kind in _kinds(field.annotation))
    return f"{kinds}, {', '.join(bounds)}" if bounds else kinds


def _kind_text(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    if get_origin(kind) is tuple:
        return f"list of {_kind_text(get_args(kind)[0])}"
    if get_origin(kind) is dict:
        return "table"
    if _is_record(kind):
        chosen = kind.model_fields.get("kind")
        return f"table with kind `{chosen.default}`" if chosen else "table"
    names = {str: "text", int: "whole number", float: "number", bool: "true, false", NoneType: "unset"}
    return names.get(kind) or {"Path": "path"}.get(getattr(kind, "__name__", ""), getattr(kind, "__name__", str(kind)))


def _bound(constraint: Any) -> str:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    parts = [f"{sign} {getattr(constraint, name):g}" for name, sign in signs.items() if hasattr(constraint, name)]
    return ", ".join(parts)


def _default_text(value: Any, field: FieldInfo) -> str:
    if field.is_required() and not isinstance(value, (bool, int, float, str, tuple)):
        return "required"
    if value is None:
        return "unset"
    if isinstance(value, BaseModel):
        return "see below"
    if value in ((), "", {}):
        return "empty"
    plain = str(value).lower() if isinstance(value, bool) else list(value) if isinstance(value, tuple) else value
    return f"`{plain}`"
