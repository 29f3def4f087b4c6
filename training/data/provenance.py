"""Checks the origin of training traces: refuses edited ones and counts those whose origin is not certain."""

from __future__ import annotations

from dataclasses import dataclass

from envs.core.trace_store import Seal, Trace, check_unedited


@dataclass(slots=True)
class Provenance:
    """Counts of traces that were read for training."""

    traces: int = 0
    unchained: int = 0
    """Recorded before traces had a hash chain: edits cannot be detected."""
    foreign: int = 0
    """Not written on this machine, with a valid chain: an editor could have recomputed the chain."""

    def add(self, trace: Trace) -> None:
        """Raises TraceError, naming file and line, for a trace that was edited."""
        check_unedited(trace.path, trace.seal)
        self.count(trace.seal)

    def count(self, seal: Seal) -> None:
        """Counts a trace that is known to be unedited."""
        self.traces += 1
        self.unchained += not seal.chained
        self.foreign += seal.chained and not seal.own

    def notices(self) -> tuple[str, ...]:
        """One line for each kind with a count above 0."""
        lines = (
            (
                self.unchained,
                "have no hash chain (recorded by an older version): whether they were edited is not known",
            ),
            (self.foreign, "were not written on this machine: they are taken as they are"),
        )
        return tuple(f"{count} of {self.traces} traces {notice}" for count, notice in lines if count)
