"""The outcome summary (MiRA paper, §4.1): "only judge, never guess".

Built from the checker's result and the ending of the episode. A milestone counts only if the checker checked it;
ratings of a model are not reported as facts.
"""

from __future__ import annotations

from collections.abc import Iterator

from envs.core.tasks import MilestoneCheck
from envs.core.trace import EndedBy, Footer, Header, Rating
from envs.core.trace_reader import Trace
from envs.observer.page_text import one_line

_ENDED: dict[EndedBy, str] = {
    "stop": "The agent ended the episode itself",
    "environment": "The environment ended the episode on the agent's last action",
    "max_steps": "The episode ran into its limit of steps",
    "max_seconds": "The episode ran into its limit of seconds",
    "max_tokens": "The episode ran into its limit of tokens",
    "max_cost": "The episode ran into its limit of cost",
    "declined": "An action of the agent was not approved",
    "error": "The episode was ended by an error",
    "interrupted": "The episode was interrupted",
}
_ANSWER_CHARS = 200
_EVIDENCE_CHARS = 80


def summarize(trace: Trace) -> str:
    """Achieved and open milestones, the ending and the final check in sentences. Raises ValueError without a footer."""
    footer = trace.footer
    if footer is None:
        raise ValueError("an episode without an end has no outcome")
    return " ".join([*_milestones(trace.header, footer), _ending(footer), _final(footer)])


def achieved(footer: Footer) -> tuple[bool, ...]:
    """The milestones at the end: from the checker if it checked them, else from the rating."""
    if footer.milestone_checks is not None:
        return tuple(check.achieved for check in footer.milestone_checks)
    return footer.rating.z if footer.rating is not None else ()


def _milestones(header: Header, footer: Footer) -> Iterator[str]:
    names = [milestone.text for milestone in header.reference_milestones]
    checks = footer.milestone_checks or _rated_by_state(footer.rating)
    if not names or len(checks) != len(names):
        return
    for met, word in ((True, "Achieved"), (False, "Not achieved")):
        sentences = [
            _with_evidence(name, check) for name, check in zip(names, checks, strict=True) if check.achieved == met
        ]
        if sentences:
            yield f"{word}: {'; '.join(sentences)}."


def _rated_by_state(rating: Rating | None) -> tuple[MilestoneCheck, ...]:
    if rating is None or rating.source != "state":
        return ()
    return tuple(MilestoneCheck(achieved=met, evidence="") for met in rating.z)


def _with_evidence(name: str, check: MilestoneCheck) -> str:
    name = name.rstrip(".")
    return f"{name} ({one_line(check.evidence, _EVIDENCE_CHARS)})" if check.evidence else name


def _ending(footer: Footer) -> str:
    steps = f"after {footer.totals.steps} steps" if footer.totals.steps != 1 else "after 1 step"
    answer = f", answering {one_line(footer.answer, _ANSWER_CHARS)!r}" if footer.answer else ""
    error = f" ({one_line(footer.error)})" if footer.error else ""
    return f"{_ENDED[footer.ended_by]} {steps}{answer}{error}."


def _final(footer: Footer) -> str:
    source = "Final check" if footer.judged_by != "judge" else "Outcome judge, without a checker"
    evidence = footer.score.evidence if footer.score is not None else footer.verdict
    if footer.outcome == "unjudged":
        return "Final check: not judged."
    if footer.outcome == "broken":
        return f"Final check: NOT DONE{f' ({one_line(evidence)})' if evidence else ''}."
    word = "FAILED" if footer.outcome == "failure" else footer.outcome.upper()
    return f"{source}: {word}{f' ({one_line(evidence)})' if evidence else ''}."
