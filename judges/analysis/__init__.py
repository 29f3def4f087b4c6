"""Why an episode failed (SPEC §1.4): outcome summary, category by prioritised rules, key decision step.

Works on traces alone, asks no model unless one is given, and never decides whether an episode failed: that is the
checker's word. :class:`Analysis` is what comes out.
"""

from judges.analysis.records import Analysis, Divergence

__all__ = ["Analysis", "Divergence"]
