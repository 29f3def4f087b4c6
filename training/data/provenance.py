"""Where the traces come from that are learned from: edited ones are refused, others are counted and named."""

from __future__ import annotations

from dataclasses import dataclass

from envs.core.trace_store import Seal, Trace, check_unedited


@dataclass(slots=True)
class Provenance:
    """Counts of traces that were read for training."""

    traces: int = 0
    unchained: int = 0
    """Recorded before traces had a hash chain: nothing shows whether they were edited."""
    foreign: int = 0
    """Whole, and not written on this machine: somebody could have edited them and computed their chain anew."""

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
        """One line for each kind that there is."""
        lines = (
            (
                self.unchained,
                "have no hash chain (recorded by an older version): whether they were edited is not known",
            ),
            (self.foreign, "were not written on this machine: they are taken as they are"),
        )
        return tuple(f"{count} of {self.traces} traces {what}" for count, what in lines if count)
