"""Answers in a folder, written as they come, so that an interrupted evaluation continues."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import ValidationError

from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput
from envs.core.record import Record
from training.step_accuracy.answers import StepAnswer, read_answers

ANSWERS: Final = "predictions.jsonl"
_ASKED: Final = "asked.json"


class Asked(Record):
    """What the answers of a folder depend on."""

    policy: str
    profile: str
    max_tokens: int
    examples: str
    """:func:`training.grpo.examples.examples_digest`."""


class StoredAnswers:
    """Answers by name of the example; in memory alone without a folder."""

    def __init__(self, out: Path | None, asked: Asked) -> None:
        """Raises BadInput if *out* holds other files, or answers to other questions."""
        self.given: dict[str, StepAnswer] = {}
        self._file = None if out is None else out / ANSWERS
        if out is None or self._file is None:
            return
        if (out / _ASKED).is_file():
            _check(out / _ASKED, asked)
        elif out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise BadInput(f"--out {str(out)!r} holds other files: name a new folder")
        else:
            out.mkdir(parents=True, exist_ok=True)
            write_atomically(out / _ASKED, asked.model_dump_json(indent=1) + "\n")
        if self._file.is_file():
            _drop_cut_line(self._file)
            self.given = read_answers(self._file)

    def add(self, answer: StepAnswer) -> None:
        """Keeps *answer*."""
        self.given[answer.name] = answer
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{answer.model_dump_json()}\n")


def _check(file: Path, asked: Asked) -> None:
    try:
        before = Asked.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        raise BadInput(f"{str(file)!r} holds no settings of an evaluation: name a new folder") from None
    if changed := [name for name, value in asked if value != getattr(before, name)]:
        names = " and ".join(changed)
        raise BadInput(f"--out {str(file.parent)!r} was begun with another {names}: name a new folder")


def _drop_cut_line(file: Path) -> None:
    """Removes a last line whose writer was killed."""
    text = file.read_text(encoding="utf-8", errors="replace")
    if not text.endswith("\n"):
        write_atomically(file, text[: text.rfind("\n") + 1])
