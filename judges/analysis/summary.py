"""The outcome summary (MiRA paper, §4.1): "only judge, never guess".

Built from what the task's checker said and how the episode ended. A milestone counts here only where the checker looked
at it; what a model rated on the way is not repeated as a fact.
"""

from __future__ import annotations

from collections.abc import Iterator

from envs.core.tasks import MilestoneCheck
from envs.core.trace import EndedBy, Footer, Header, Rating
from envs.core.trace_reader import Trace
from envs.observer.page_text import one_line

_ENDED: dict[EndedBy, str] = {
    "stop": "The agent ended the episode itself",
    "world": "The task's world ended the episode on the agent's last action",
    "max_steps": "The episode ran into its limit of steps",
    "max_seconds": "The episode ran into its limit of seconds",
    "max_tokens": "The episode ran into its limit of tokens",
    "max_cost": "The episode ran into its limit of cost",
    "declined": "What the agent wanted to do was not approved",
    "error": "The episode was ended by an error",
    "interrupted": "The episode was interrupted",
}
_ANSWER_CHARS = 200
_EVIDENCE_CHARS = 80


def summarize(trace: Trace) -> str:
    """Sentences: what was achieved, what was not, how it ended, the final check. Raises ValueError without a footer."""
    footer = trace.footer
    if footer is None:
        raise ValueError("an episode without an end has no outcome")
    return " ".join([*_milestones(trace.header, footer), _ending(footer), _final(footer)])


def achieved(footer: Footer) -> tuple[bool, ...]:
    """The milestones at the end: by the checker where it looked, else as rated."""
    if footer.milestone_checks is not None:
        return tuple(check.achieved for check in footer.milestone_checks)
    return footer.rating.z if footer.rating is not None else ()


def _milestones(header: Header, footer: Footer) -> Iterator[str]:
    names = [milestone.text for milestone in header.reference_milestones]
    checks = footer.milestone_checks or _rated_by_state(footer.rating)
    if not names or len(checks) != len(names):
        return
    for met, word in ((True, "Achieved"), (False, "Not achieved")):
        told = [_told(name, check) for name, check in zip(names, checks, strict=True) if check.achieved == met]
        if told:
            yield f"{word}: {'; '.join(told)}."


def _rated_by_state(rating: Rating | None) -> tuple[MilestoneCheck, ...]:
    if rating is None or rating.source != "state":
        return ()
    return tuple(MilestoneCheck(achieved=met, evidence="") for met in rating.z)


def _told(name: str, check: MilestoneCheck) -> str:
    name = name.rstrip(".")
    return f"{name} ({one_line(check.evidence, _EVIDENCE_CHARS)})" if check.evidence else name


def _ending(footer: Footer) -> str:
    steps = f"after {footer.totals.steps} steps" if footer.totals.steps != 1 else "after 1 step"
    answer = f", answering {one_line(footer.answer, _ANSWER_CHARS)!r}" if footer.answer else ""
    error = f" ({one_line(footer.error)})" if footer.error else ""
    return f"{_ENDED[footer.ended_by]} {steps}{answer}{error}."


def _final(footer: Footer) -> str:
    who = "Final check" if footer.judged_by != "judge" else "Outcome judge, without a checker"
    said = footer.score.evidence if footer.score is not None else footer.verdict
    if footer.outcome == "unjudged":
        return "Final check: nobody judged it."
    if footer.outcome == "broken":
        return f"Final check: NOT DONE, the episode is broken{f' ({one_line(said)})' if said else ''}."
    word = "FAILED" if footer.outcome == "failure" else footer.outcome.upper()
    return f"{who}: {word}{f' ({one_line(said)})' if said else ''}."
