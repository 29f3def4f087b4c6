"""Analyzes a failed trace against its reference successes: returns a :class:`judges.analysis.records.Analysis`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envs.core.trace import Footer
from envs.core.trace_reader import Trace
from judges.analysis.align import Aligned, Alignment, AlignRules, reference_of
from judges.analysis.history import History, history_of
from judges.analysis.meaning import Meaning, Question
from judges.analysis.moves import Reference
from judges.analysis.pages import Pages
from judges.analysis.records import Analysis, Comparison
from judges.analysis.rules import Case, FailureRules, explain, settled
from judges.analysis.summary import achieved, summarize

_ROUNDS = 4
"""Maximum number of alignments with a model's verdicts: each may move the divergence to other undecided moves."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A trace and its page texts."""

    trace: Trace
    pages: Pages


class Analyzer:
    """Explains failures. One instance serves any number of traces."""

    def __init__(
        self,
        rules: FailureRules | None = None,
        alignment: AlignRules | None = None,
        meaning: Meaning | None = None,
    ) -> None:
        """*meaning* decides on moves that keys, addresses and texts leave undecided; without it a threshold does."""
        self._rules = rules or FailureRules()
        self._alignment = alignment or AlignRules()
        self._meaning = meaning

    def reference(self, success: Recorded) -> Reference:
        """Prepares a success of the same task for comparison."""
        trace = success.trace
        return reference_of(trace.header.episode_id, settled(trace.steps), success.pages)

    async def analyze(self, failed: Recorded, references: Sequence[Reference] = ()) -> Analysis:
        """*references* are successes of the same task. Raises ValueError if *failed* has no footer or did not fail, and
        :class:`judges.analysis.meaning.MeaningFailed` if a model gave no verdict."""
        trace, footer = failed.trace, failed.trace.footer
        if footer is None:
            raise ValueError("an episode without an end is not known to have failed")
        header = trace.header
        history = history_of(settled(trace.steps), failed.pages)
        answers: dict[Question, bool] = {}
        nearest = (await self._nearest(failed, history, references, answers)) if references else None
        comparison = nearest.comparison if nearest is not None else None
        return Analysis(
            run_id=header.run_id,
            episode_id=header.episode_id,
            task=header.task,
            attempt=header.attempt,
            category=header.category,
            policy=trace.policy,
            outcome=footer.outcome,
            ended_by=footer.ended_by,
            steps=len(trace.steps),
            summary=summarize(trace),
            failure=explain(_case(failed, history, footer, comparison, references), self._rules),
            divergence=comparison.divergence if comparison is not None else None,
            nearest=comparison.reference if comparison is not None else None,
            pairs=comparison.pairs if comparison is not None else (),
            references=len(references),
            asked=len(answers),
        )

    async def _nearest(
        self, failed: Recorded, history: History, references: Sequence[Reference], answers: dict[Question, bool]
    ) -> Aligned | None:
        """Aligns, lets the model decide on undecided moves near the divergence, and aligns again."""
        alignment = Alignment(history.steps, failed.pages, self._alignment, answers, history)
        nearest = alignment.nearest(references)
        for _ in range(_ROUNDS if self._meaning is not None else 0):
            if nearest is None or not nearest.undecided:
                break
            for question in sorted(nearest.undecided):
                assert self._meaning is not None
                answers[question] = await self._meaning.same(failed.trace.header.instruction, question)
            nearest = alignment.nearest(references)
        return nearest


def _case(
    failed: Recorded, history: History, footer: Footer, nearest: Comparison | None, references: Sequence[Reference]
) -> Case:
    return Case(
        steps=history.steps,
        ended_by=footer.ended_by,
        outcome=footer.outcome,
        instruction=failed.trace.header.instruction,
        final=achieved(footer),
        error=footer.error,
        nearest=nearest,
        usual=[reference.done for reference in references],
        history=history,
    )
