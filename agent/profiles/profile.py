"""A prompt profile: what the prompts of a policy contain, and which models get it.

Each profile is a TOML file in this folder. A model gets the profile that fits the name in its spec best:

* a pattern with more letters fits better than one with fewer; `*` alone fits every model;
* `up_to_billions` fits every name with a number of parameters up to it, such as `qwen2.5-coder-1.5b` or `smollm-360m`,
  and better than `*`. Of a checkpoint on this machine whose name says none, the parameters are counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, model_validator

from agent.profiles.names import FOLDER, OF_STYLE, profile_names
from envs.core.actions import Action
from envs.core.errors import BadInput
from envs.core.plain_values import checked, read_toml
from envs.core.record import Record
from models.base import ModelUnavailable
from models.local.declarations import PromptStyle, RoleStyle, declaration_of_spec, declare_style
from models.local.parameter_count import count_parameters
from models.providers.local import LocalSpec
from models.specs import checkpoint_folders, parse_spec

LARGE: Final = "large"
COMPACT: Final = "compact"

_HOLE = re.compile(r"#([1-9])")
_SIZE = re.compile(r"(?<![a-z0-9.])(\d{1,4}(?:\.\d{1,3})?)(b|m)(?![a-z0-9])")
"""A number of parameters in a name, in billions or millions."""


_PARTS: Final = frozenset(
    {"reference", "page_first", "history", "history_lines", "element_line", "last_steps", "examples"}
)
"""Fields that the fixed prompts, compact ones and those of large models, do not have."""


class ExampleStep(Record):
    """A small page and the answer to it."""

    page: tuple[str, ...] = Field(min_length=1)
    """Lines of the page; `#1` to `#9` stand for the numbers of controls."""
    milestone: str = ""
    """The milestone to work on, shown if the run has a plan; empty: none."""
    thought: str
    action: Action
    """The action of the answer; its `ref` is the digit of a `#1`."""

    @property
    def controls(self) -> int:
        """Number of controls on the page."""
        return max((int(digit) for line in self.page for digit in _HOLE.findall(line)), default=0)

    @model_validator(mode="after")
    def _names_its_control(self) -> ExampleStep:
        ref = getattr(self.action, "ref", None)
        if ref is not None and not 1 <= ref <= self.controls:
            raise ValueError(f"an action names control {ref}, which is not on the example's page")
        return self

    def numbered(self, numbers: Sequence[int]) -> tuple[tuple[str, ...], Action]:
        """The page and the answer with *numbers* in place of `#1`, `#2`, …"""
        page = tuple(_HOLE.sub(lambda hole: str(numbers[int(hole[1]) - 1]), line) for line in self.page)
        return page, _numbered(self.action, numbers)


class Variant(Record):
    """A goal and the steps towards it, on pages whose controls keep their numbers."""

    goal: str
    steps: tuple[ExampleStep, ...] = Field(min_length=1)


def _numbered(action: Action, numbers: Sequence[int]) -> Action:
    ref = getattr(action, "ref", None)
    return action if ref is None else action.model_copy(update={"ref": numbers[ref - 1]})


class Example(Record):
    """A worked example of one kind of task."""

    kind: str
    roles: tuple[str, ...] = ()
    """Roles of controls of which the shown page must have one; empty: every page."""
    words: tuple[str, ...] = ()
    """Words of goals of this kind, in lower case; `?` is one."""
    variants: tuple[Variant, ...] = Field(min_length=1)


class Profile(Record):
    """What the prompts of a policy contain. The defaults are the full prompts of large models."""

    name: str
    about: str
    models: tuple[str, ...] = ()
    """Patterns (`*` and `?`) of the names of models, in lower case."""
    up_to_billions: float = Field(default=0.0, ge=0)
    """Models with at most so many parameters get the profile, if their name says how many; 0: none."""
    style: PromptStyle
    language: Literal["program", "id"] | None = None
    """Action language, unless the run names one; None: the run's default."""
    rules: Literal["long", "short"] = "long"
    """`short` is the prompt of :mod:`agent.episode.short_prompts`; the fields below need it."""
    reference: Literal["long", "short"] = "long"
    """`short` lists the common actions, each with the roles that take it."""
    page_first: bool = False
    """The page comes before the actions that were done, so that prompts of one page begin alike."""
    history: Literal["words", "actions"] = "words"
    """How the actions that were done are written: in words, or as actions of the language."""
    history_lines: int = Field(default=0, ge=0)
    """Latest actions that are shown, the rest is counted; 0: as many as the run's `history_chars` permit."""
    rationale_chars: int | None = Field(default=None, ge=0, le=4_000)
    """Characters of the rationale with `rationale = "auto"`; None: the run's default."""
    element_line: bool = False
    """The answer names its control before the action, in the program style: a small model chooses a name more often
    correctly than a number. With constrained decoding the name implies the number."""
    last_steps: tuple[str, ...] = ()
    """With constrained decoding, a rationale must have one of these words after `To do:`, in lower case or capitalized,
    if the answer ends the task: small models end it with other steps still to do. Empty: no condition."""
    max_actions: int | None = Field(default=None, ge=1, le=20)
    """Most actions of an answer, unless the run says how many; None: the run's default."""
    max_notes: int | None = Field(default=None, ge=0, le=1_000)
    """Most notes, unless the run says how many; None: the run's default."""
    examples: tuple[Example, ...] = ()
    """Worked examples, of which a prompt shows one; none for no example."""

    @model_validator(mode="after")
    def _fixed_prompts_have_no_parts(self) -> Profile:
        parts = sorted(self.model_fields_set & _PARTS)
        if parts and not self.is_short:
            raise ValueError(f'{", ".join(parts)} need style = "full" and rules = "short"')
        return self

    @property
    def is_short(self) -> bool:
        """Whether its prompts are those of :mod:`agent.episode.short_prompts`."""
        return self.style == "full" and self.rules == "short"

    @property
    def role_style(self) -> RoleStyle:
        """The prompts of a model with this profile as planner or AutoRater."""
        return "short" if self.is_short else self.style

    @property
    def endings(self) -> tuple[str, ...]:
        """The words of `last_steps`, in lower case and capitalized."""
        return tuple(spelled for word in self.last_steps for spelled in (word, word.capitalize()))

    def fit(self, name: str, billions: float | None) -> int:
        """How well the profile fits the model *name* with so many *billions* of parameters, None if that is not known:
        -1 not at all, else higher is better."""
        lengths = [len(pattern.replace("*", "")) for pattern in self.models if fnmatchcase(name, pattern)]
        if self.up_to_billions and billions is not None and billions <= self.up_to_billions:
            lengths.append(1)
        return max(lengths, default=-1)


def size_in_billions(name: str) -> float | None:
    """The largest number of parameters that *name* states, in billions; None without one."""
    sizes = [float(number) / (1 if unit == "b" else 1_000) for number, unit in _SIZE.findall(name.lower())]
    return max(sizes, default=None)


def read_profile(path: Path) -> Profile:
    """Reads and validates a profile. Raises BadInput, in one line."""
    values: dict[str, Any] = {"name": path.stem, **read_toml(path)}
    return checked(Profile, values, str(path))


@cache
def profiles() -> Mapping[str, Profile]:
    """The profiles by name."""
    return {name: read_profile(FOLDER / f"{name}.toml") for name in profile_names()}


def named(name: str) -> Profile:
    """The profile called *name*. Raises BadInput for an unknown name."""
    try:
        return profiles()[name]
    except KeyError:
        raise BadInput(f"unknown prompt profile {name!r}: use one of {', '.join(profiles())}") from None


def profile_of_spec(spec: str) -> Profile:
    """The profile that `auto` gives to a model spec: the one its checkpoint declares, else by its name and its number
    of parameters.

    Raises BadInput if it declares a profile that this version does not have."""
    style, declared = declaration_of_spec(spec)
    if style is not None:
        return named(declared or OF_STYLE[style])
    name = model_name(spec)
    billions = size_in_billions(name)
    if billions is None and (folders := checkpoint_folders(spec)):
        counted = count_parameters(folders[-1])
        billions = None if counted is None else counted / 1e9
    return max(profiles().values(), key=lambda profile: profile.fit(name, billions))


def declare_prompts(folder: Path, name: str) -> None:
    """Declares that the checkpoint in *folder* was trained on prompts of the profile *name*."""
    style = named(name).style
    declare_style(folder, style, "" if OF_STYLE[style] == name else name)


def model_name(spec: str) -> str:
    """The part of a spec that names the model, in lower case: what follows the last `/` or `#`, and for a folder its
    last three names, because checkpoints are called `checkpoint-100`.

    >>> model_name("vllm:http://127.0.0.1:8000/v1#Qwen/Qwen3-4B")
    'qwen3-4b'
    """
    kept = 1
    text = spec
    with suppress(ModelUnavailable):
        parsed = parse_spec(spec)
        kept, text = (3 if isinstance(parsed, LocalSpec) else 1), str(parsed)
    parts = re.split(r"[/\\#]", (text.partition(":")[2] or text).rstrip("/"))
    return "/".join(parts[-kept:]).lower()
