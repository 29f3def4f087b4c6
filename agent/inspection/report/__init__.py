"""The report of runs: one self-contained HTML file (:func:`write_report`), with why episodes failed
(:func:`explained`)."""

from agent.inspection.report.build import Report, write_report
from agent.inspection.report.explaining import explained
from agent.inspection.report.pictures import Screenshots

__all__ = ["Report", "Screenshots", "explained", "write_report"]
