"""What a full prompt asks of the answer: one action or several, and a line of reasoning before them."""

from __future__ import annotations

from typing import Final

from models.prompting.prompt_text import NOTHING, PromptText, joined, number, words

_ONE: Final = words("1. Answer with one action.")


def repaired_kind(most: int) -> PromptText:
    """Completes "Answer again with"."""
    return (
        words("exactly one action.")
        if most == 1
        else joined("", (words("one action, or up to "), number(most), words(".")))
    )


def action_rule(most: int) -> PromptText:
    """The rule on the number of actions of an answer, at most *most*."""
    if most == 1:
        return _ONE
    several = (
        words("1. Answer with one action, or up to "),
        number(most),
        words(
            " that fill in a form, one a line; what opens, sends or ends something comes last. The rest is dropped "
            "once one fails or changes more than its own control."
        ),
    )
    return joined("", several)


def rationale_rule(chars: int) -> PromptText:
    """The request for a line of reasoning of at most *chars* characters; nothing for 0."""
    if not chars:
        return NOTHING
    asked = (
        words("Before the action write one line that begins with `# Thought:` and has at most "),
        number(chars),
        words(" characters: what the page tells about the goal, what is left to do, and why this action is next."),
    )
    return joined("", asked)
