"""Every text of an observation or a result is masked. The tests walk the types, so a new field is included."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from envs.core.actions import ActionResult
from envs.core.observation import Observation
from envs.security.allowlist import Origins
from envs.security.masking import masked_observation, masked_result
from envs.security.secrets import SecretVault

CANARY = "kestrel7-quartz"
MADE_BY_MIRA = {
    "document": "the browser's id of a document",
    "elements.key.frame": "numbers of frames",
    "elements.key.role": "a closed set in the observer",
    "elements.key.digest": "a hash",
    "elements.states": "a closed set in the observer",
    "downloads.sha256": "a hash",
}
"""Texts in which no page can write, with the reason."""


def filled(hint: Any) -> Any:
    """A value of this type with the canary in every text."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return args[0]
    if origin in (Union, types.UnionType):
        return filled(next(arg for arg in args if arg is not type(None)))
    if origin in (tuple, frozenset):
        kinds = args[:1] if origin is frozenset or Ellipsis in args else args
        return origin(filled(kind) for kind in kinds)
    assert isinstance(hint, type), hint
    if hint is str:
        return CANARY
    if issubclass(hint, Enum):
        return next(iter(hint))
    if named := fields_of(hint):
        return hint(**{name: filled(kind) for name, kind in named.items()})
    assert hint in (bytes, int, float, bool), f"teach this test to fill {hint}"
    return hint()


def fields_of(kind: type) -> dict[str, Any]:
    if issubclass(kind, BaseModel):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    return get_type_hints(kind) if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields") else {}


def texts(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text below *value*, with the names of the fields that lead to it."""
    if isinstance(value, str) and not isinstance(value, Enum):
        yield path, value
    elif named := fields_of(type(value)):
        for name in named:
            yield from texts(getattr(value, name), f"{path}.{name}".lstrip("."))
    elif isinstance(value, tuple | frozenset):
        for item in cast("Sequence[object]", value):
            yield from texts(item, path)


def unmasked(value: object) -> set[str]:
    return {path for path, text in texts(value) if CANARY in text}


HELD = SecretVault({"PW": (CANARY, Origins())})


def test_every_text_of_an_observation_is_masked() -> None:
    """Symptom: the label of a canvas with a secret stood in the prompt."""
    seen: Observation = filled(Observation)
    assert {"text", "surfaces.name", "elements.cues", "dialog.message", "blocked.origin"} <= unmasked(seen), "control"
    assert unmasked(masked_observation(seen, HELD)) <= MADE_BY_MIRA.keys() | {"digest"}
    assert "digest" not in unmasked(masked_observation(dataclasses.replace(seen, dialog=None), HELD))


def test_every_text_of_a_result_is_masked() -> None:
    result: ActionResult = filled(ActionResult)
    assert {"message", "held_requests.method", "downloads.path"} <= unmasked(result), "control"
    assert unmasked(masked_result(result, HELD)) <= MADE_BY_MIRA.keys()
