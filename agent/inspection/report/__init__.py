"""Writes the report of runs, one self-contained HTML file (:func:`write_report`), and analyzes failures for it
(:func:`explain_failures`)."""

from agent.inspection.report.build import Report, write_report
from agent.inspection.report.failure_analyses import explain_failures
from agent.inspection.report.pictures import Screenshots

__all__ = ["Report", "Screenshots", "explain_failures", "write_report"]
