"""Failure analysis (MiRA paper, §4): outcome summary, category by prioritised rules, key decision step.

It reads traces only and uses a model only if one is passed. It does not decide whether an episode failed: the checker
does. :func:`explain` applies the rules to steps. :class:`Analyzer` takes traces and reference successes and returns an
:class:`Analysis`.
"""

from judges.analysis.analyzer import Analyzer, Recorded
from judges.analysis.moves import Reference
from judges.analysis.pages import Pages
from judges.analysis.records import Analysis, Comparison, Divergence
from judges.analysis.rules import Case, FailureRules, explain

__all__ = [
    "Analysis",
    "Analyzer",
    "Case",
    "Comparison",
    "Divergence",
    "FailureRules",
    "Pages",
    "Recorded",
    "Reference",
    "explain",
]
