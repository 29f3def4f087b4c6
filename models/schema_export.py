"""Exports a pydantic schema as JSON Schema that both OpenAI's strict mode and Gemini accept.

Strict mode requires closed objects and required properties, and refuses most constraints. The exported schema omits
those constraints; :mod:`models.structured` validates the answer with the full model.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from pydantic import BaseModel

_KEPT = frozenset({"$ref", "type", "enum", "const", "description", "required"})
"""Keywords copied unchanged. All others not handled below are dropped."""


@dataclass(frozen=True, slots=True)
class ExportedSchema:
    name: str
    json_schema: dict[str, Any]
    """Cached: treat as read-only."""
    strict: bool
    """False if a free-form mapping cannot be closed, which OpenAI's strict mode does not allow."""

    def described(self) -> str:
        """The instruction for servers without schema support; static text, for prefix caches."""
        text = json.dumps(self.json_schema, ensure_ascii=False, separators=(",", ":"))
        return f"Answer with one JSON object and nothing else. It must be valid under this JSON Schema:\n{text}"


@lru_cache(maxsize=256)
def exported(schema: type[BaseModel]) -> ExportedSchema:
    """The exported form of *schema*; always the same text for the same class."""
    full = schema.model_json_schema(mode="validation")
    definitions = cast("dict[str, Any]", full.get("$defs", {}))
    closed = _closed(full)
    if definitions:
        closed["$defs"] = {name: _closed(node) for name, node in definitions.items()}
    return ExportedSchema(schema.__name__, closed, strict=not _has_mapping(closed))


def _closed(node: dict[str, Any]) -> dict[str, Any]:
    out = {key: value for key, value in node.items() if key in _KEPT}
    if "properties" in node:
        properties = cast("dict[str, dict[str, Any]]", node["properties"])
        out["properties"] = {name: _closed(child) for name, child in properties.items()}
        out["required"] = list(properties)
        out["additionalProperties"] = False
    elif node.get("type") == "object":
        extra = node.get("additionalProperties", True)
        out["additionalProperties"] = _closed(cast("dict[str, Any]", extra)) if isinstance(extra, dict) else extra
    if "items" in node:
        out["items"] = _closed(node["items"])
    elif "prefixItems" in node:
        out["items"] = {"anyOf": [_closed(child) for child in node["prefixItems"]]}
    for key in ("anyOf", "oneOf", "allOf"):
        if key in node:
            out["anyOf"] = [_closed(child) for child in node[key]]
    return out


def _has_mapping(node: dict[str, Any]) -> bool:
    if node.get("additionalProperties", False) is not False:
        return True
    children: list[dict[str, Any]] = [*node.get("properties", {}).values(), *node.get("$defs", {}).values()]
    children += node.get("anyOf", [])
    children += [node["items"]] if "items" in node else []
    return any(_has_mapping(child) for child in children)
