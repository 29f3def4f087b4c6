"""The answer of an open task as JSON that fits a schema of the user's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match

from envs.errors import BadInput

MAX_PROBLEM_CHARS = 300


class AnswerSchema:
    """A JSON Schema (2020-12); references to other documents are not followed."""

    def __init__(self, schema: Any) -> None:
        """Raises jsonschema's SchemaError."""
        Draft202012Validator.check_schema(schema)
        self._validator = Draft202012Validator(schema)
        self._text = json.dumps(schema, ensure_ascii=False)

    @classmethod
    def read(cls, path: Path) -> AnswerSchema:
        """Raises BadInput in one line where the file is missing, no JSON, or no schema."""
        try:
            return cls(json.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise BadInput(f"answer schema {str(path)!r} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise BadInput(f"answer schema {str(path)!r} is not JSON: {error}") from None
        except SchemaError as error:
            raise BadInput(f"answer schema {str(path)!r} is no JSON Schema: {error.message}") from None

    def asked(self, instruction: str) -> str:
        """*instruction* with what the answer must look like."""
        return f"{instruction} (Give the answer as JSON that fits this schema: {self._text})"

    def problem(self, answer: str | None) -> str | None:
        """Why *answer* does not fit, in one line for the policy; None if it does."""
        if answer is None:
            return "the answer is missing: give it as JSON that fits the schema"
        try:
            value = json.loads(answer)
        except ValueError as error:
            return f"the answer is not JSON: {error}"
        error = best_match(self._validator.iter_errors(value))
        if error is None:
            return None
        return f"the answer does not fit the schema at {error.json_path}: {error.message}"[:MAX_PROBLEM_CHARS]
