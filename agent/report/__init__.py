"""The report of runs: one self-contained HTML file (:func:`write_report`), with why episodes failed
(:func:`explained`)."""

from agent.report.build import Report, write_report
from agent.report.explaining import explained
from agent.report.pictures import Screenshots

__all__ = ["Report", "Screenshots", "explained", "write_report"]
