"""Options whose value holds for several roles or, as `ROLE=VALUE`, for one: `--base-url`, `--model-deadline`,
`--thinking` and `--reasoning`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, get_args

import typer

from agent.config import ROLES
from envs.core.errors import BadInput
from models.base import Effort
from models.thinking import STATIC_BUDGETS

_METAVAR: Final = "[ROLE=]VALUE"
_EFFORTS: Final = get_args(Effort)

BaseUrl = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[ROLE=]URL",
        help="Server URL for openai: specs (vLLM, llama.cpp, Ollama), or for anthropic: or litellm: specs. For every "
        "role, or for one: grounder=http://127.0.0.1:8001/v1; repeatable.",
    ),
]
ModelDeadline = Annotated[
    list[str] | None,
    typer.Option(
        metavar=_METAVAR,
        help="Timeout of one model call in seconds, retries included; one attempt gets 60 % of it, all of it "
        "with local: and embedded. For every role, or "
        "for one: planner=300; repeatable; default: 120.",
    ),
]
Thinking = Annotated[
    list[str] | None,
    typer.Option(
        metavar=_METAVAR,
        help="Thinking budget in tokens: 0, 256, 1024, 4096, 8192, 16384, or auto. For planner, rater and judge, or "
        "for one role: policy=1024; repeatable; default: auto.",
    ),
]
Reasoning = Annotated[
    list[str] | None,
    typer.Option(
        metavar=_METAVAR,
        help="Reasoning effort in place of --thinking: none, minimal, low, medium, high, xhigh or max, as far as the "
        "model has it. For the same roles; repeatable.",
    ),
]
PolicyThinking = Annotated[
    str | None,
    typer.Option(help="Thinking budget of the policy, like --thinking policy=…; unset: its model's default."),
]


def base_urls(texts: Sequence[str] | None) -> dict[str, str]:
    """The servers of `--base-url` by key of a :class:`agent.config.RunConfig`. Raises BadInput for an unknown role."""
    return _by_key("--base-url", texts, "base_url")


def role_values(
    model_deadline: Sequence[str] | None,
    thinking: Sequence[str] | None,
    reasoning: Sequence[str] | None,
    policy_thinking: str | None,
) -> dict[str, Any]:
    """Values of a :class:`agent.config.RunConfig` by key.

    Raises BadInput for an unknown role or a wrong value, and if two options say how much a role thinks."""
    budgets = _by_key("--thinking", thinking, "thinking")
    if policy_thinking is not None:
        if "policy_thinking" in budgets:
            raise BadInput("--thinking policy=… and --policy-thinking are both given: leave one out")
        budgets["policy_thinking"] = policy_thinking
    efforts = _by_key("--reasoning", reasoning, "thinking")
    if both := budgets.keys() & efforts.keys():
        roles = min(both).removesuffix("_thinking") if min(both) != "thinking" else "planner, rater and judge"
        raise BadInput(f"--thinking and --reasoning are both given for {roles}: leave one out")
    return {
        **{
            key: _seconds(text) for key, text in _by_key("--model-deadline", model_deadline, "model_deadline_s").items()
        },
        **{key: _budget(text) for key, text in budgets.items()},
        **{key: _effort(text) for key, text in efforts.items()},
    }


def _by_key(option: str, texts: Sequence[str] | None, common: str) -> dict[str, str]:
    """The texts of *option* by the key that each sets; a later one replaces an earlier one of the same key."""
    keys: Mapping[str, str] = {role: f"{role}_{common.removeprefix('model_')}" for role in ROLES}
    values: dict[str, str] = {}
    for text in texts or ():
        role, equals, value = text.partition("=")
        if not equals or "/" in role:  # an equals sign within an address
            values[common] = text
        elif role in keys:
            values[keys[role]] = value
        else:
            raise BadInput(f"{option} {text!r}: {role!r} is not a role: use {', '.join(ROLES[:-1])} or {ROLES[-1]}")
    return values


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise BadInput(f"--model-deadline {text!r} is not a number of seconds above 0")
    return seconds


def _budget(text: str) -> int | str:
    if text == "auto" or (text.isascii() and text.isdigit() and int(text) in STATIC_BUDGETS):
        return text if text == "auto" else int(text)
    if text in _EFFORTS:
        raise BadInput(f"--thinking {text!r} is an effort, not a number of tokens: write --reasoning {text}")
    raise BadInput(f"--thinking {text!r} is not one of: auto, {', '.join(map(str, STATIC_BUDGETS))} tokens")


def _effort(text: str) -> str:
    if text not in _EFFORTS:
        hint = ": give tokens with --thinking" if text == "auto" or text.isdigit() else ""
        raise BadInput(f"--reasoning {text!r} is not one of: {', '.join(_EFFORTS)}{hint}")
    return text
