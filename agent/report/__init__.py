"""The report of a run: one self-contained HTML file (:func:`write_report`)."""

from agent.report.build import write_report

__all__ = ["write_report"]
