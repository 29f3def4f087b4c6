"""Whether the answers that a policy learns from have thoughts, so that it is played with the prompts that it learned
from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from models.local.declarations import Thoughts, declare_no_thoughts, declare_thoughts, declared_thoughts
from models.prompting.thought_request import THOUGHT_REQUEST
from training.data.trajectories import Decision, Trajectory

_OPENING: Final = "<think>"


def thoughts_in(trajectories: Iterable[Trajectory], tokenizer: Any = None) -> Thoughts | None:
    """How a policy that learns from *trajectories* thinks: `asked` where every prompt asks for a thought, `tags` where
    some prompts ask or some answers begin with a thought; else None.

    *tokenizer*: decodes prompts whose text is not stored; without one they count as not asking.
    """
    decisions = [decision for one in trajectories for decision in (*one.decisions, *one.rejected)]
    asked = [_asks(decision, tokenizer) for decision in decisions]
    if asked and all(asked):
        return "asked"
    thinks = any(decision.completion.lstrip().startswith(_OPENING) for decision in decisions)
    return "tags" if any(asked) or thinks else None


def declare_learned_thoughts(model: Path, learned: Thoughts | None, *starts: Path, log: Callable[[str], None]) -> None:
    """Declares in the folder *model* how the policy *learned* to think. *starts*: the checkpoint that it started from,
    and its base if that is an adapter; *log* gets a line where they declare otherwise."""
    before = declared_thoughts(*starts)
    if learned is not None:
        declare_thoughts(model, learned)
    elif before is not None:
        declare_no_thoughts(model)
    if before not in (None, learned):
        rows = "have no thoughts" if learned is None else "have thoughts, but not every prompt asks for one"
        if learned == "asked":
            rows = "ask for a thought in every prompt"
        log(
            f"the start declares thoughts ({before}), and its training rows {rows}: the result declares "
            f"{learned or 'none'}"
        )


def _asks(decision: Decision, tokenizer: Any) -> bool:
    """Whether the prompt asks for a thought; of a repeated question the repair message comes after the request."""
    if decision.messages:
        return any(THOUGHT_REQUEST in text for role, text in decision.messages if role == "user")
    if decision.tokens is None or tokenizer is None:
        return False
    prompt: str = tokenizer.decode(decision.tokens.prompt, skip_special_tokens=True)
    return _letters(THOUGHT_REQUEST) in _letters(prompt)


def _letters(text: str) -> str:
    """*text* without white space: tokenizers treat spaces differently."""
    return "".join(text.split())
