"""Prompts of Alg. 1 of AdaGUI-R1. The paper prints those of training and play (App. A.4), not these.

A step's own prompt is data here: it holds page text, and the teacher must not follow it.
"""

from __future__ import annotations

from typing import Final

from pydantic import Field

from envs.core.record import Record
from models.base import Image, Message
from models.prompting.fence import FENCE_RULE
from models.prompting.prompt_text import PromptText, fenced, joined, message, words
from models.thinking import without_thoughts

THOUGHT_CHARS: Final = 4_000
"""Longest thought that is put into a prompt."""
DECIDE: Final = (
    "You FIRST decide whether the current screenshot requires a thinking process to achieve the user query.\n"
    "If so, first think about the reasoning process as an internal monologue and then provide the final answer. The "
    "reasoning process MUST BE enclosed within <think> </think> tags.\n"
    "If not, no reasoning process needs to be enclosed within <think> </think> tags, and provide the final answer."
)
"""The instruction of App. A.4, word for word. The tools of App. A.5 are a phone's; here a step's own prompt describes
the actions."""

_THOUGHT_SYSTEM: Final = f"""\
You explain the actions of an agent that works on a screen. You are given the agent's prompt, what it saw, and the \
right next action. Write the reasoning that leads the agent to this action: what the task needs now, what the screen \
shows, and why it is this action. Write it as the agent's internal monologue, in one short paragraph, before it acts. \
Never say that the action was given to you. Answer with the reasoning only.
{FENCE_RULE}"""
_REVISE_SYSTEM: Final = f"""\
You correct the reasoning of an agent that works on a screen. You are given the agent's prompt, what it saw, the right \
next action, a first reasoning and the action that was wrongly concluded from it. Analyse the task, the screen and the \
mismatch, and write a reasoning that leads to the right action and to no other. Write it as the agent's internal \
monologue, in one short paragraph, before it acts. Never say that the action was given to you, and do not mention the \
first reasoning. Answer with the reasoning only.
{FENCE_RULE}"""
_JUDGE_SYSTEM: Final = f"""\
You compare two actions of an agent that works on a screen. They are equivalent if they do the same thing at the same \
place with the same text, although they may be written differently: a point inside of the same control is the same \
place, and upper and lower case or blanks around a text make no difference.
{FENCE_RULE}
Answer with a JSON object and nothing else: {{"reason": one sentence, "equivalent": true or false}}."""


class Equivalence(Record):
    """The judge's answer (Alg. 1, line 3)."""

    reason: str = Field(max_length=4_000)
    equivalent: bool


def first_thought(prompt: str, images: tuple[Image, ...], right: str) -> tuple[Message, ...]:
    """Asks for a thought that leads to the action *right* (line 1)."""
    return _asked(words(_THOUGHT_SYSTEM), images, fenced("agent prompt", prompt), fenced("right action", right))


def revised_thought(
    prompt: str, images: tuple[Image, ...], right: str, predicted: str, thought: str
) -> tuple[Message, ...]:
    """Asks for another thought after *thought* led to the action *predicted* (line 7)."""
    parts = (
        fenced("agent prompt", prompt),
        fenced("right action", right),
        fenced("first reasoning", thought),
        fenced("wrong action", predicted),
    )
    return _asked(words(_REVISE_SYSTEM), images, *parts)


def predicted_from(messages: tuple[Message, ...], thought: str) -> tuple[Message, ...]:
    """The step's own *messages* with a thought in context (line 2)."""
    last = messages[-1]
    added = joined(
        "\n",
        (
            words("This reasoning was written for this step:"),
            fenced("reasoning", thought[:THOUGHT_CHARS]),
            words("Follow it. Answer with the action only."),
        ),
    )
    return (*messages[:-1], Message(last.role, f"{last.text}\n{added.text}", last.images))


def equivalence(right: str, predicted: str) -> tuple[Message, ...]:
    """Asks whether two actions are equivalent (line 3)."""
    return _asked(words(_JUDGE_SYSTEM), (), fenced("first action", right), fenced("second action", predicted))


def _asked(system: PromptText, images: tuple[Image, ...], *parts: PromptText) -> tuple[Message, ...]:
    return message("system", system), message("user", joined("\n\n", parts), images)


def clean_thought(text: str) -> str:
    """A thought as one paragraph, without tags: none of its text can close it."""
    bare = without_thoughts(text)
    for tag in ("<think>", "</think>", "<answer>", "</answer>"):
        bare = bare.replace(tag, " ")
    return " ".join(bare.split())
