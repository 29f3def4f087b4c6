"""The report of runs: one self-contained HTML file (:func:`write_report`)."""

from agent.report.build import Report, write_report
from agent.report.pictures import Screenshots

__all__ = ["Report", "Screenshots", "write_report"]
