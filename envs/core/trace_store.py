"""Public names for traces on disk: writer, readers, blob store, hash chain and run lock.

The records are in :mod:`envs.core.trace`.
"""

from __future__ import annotations

from envs.core.blobs import BlobStore
from envs.core.run_lock import RunLock, RunLocked
from envs.core.trace_chain import Seal, check_chain, check_unedited, edited_message
from envs.core.trace_reader import (
    Step,
    Summary,
    Trace,
    has_header,
    iter_lines,
    read_element_keys,
    read_summary,
    read_trace,
)
from envs.core.trace_writer import TraceWriter, now

__all__ = [
    "BlobStore",
    "RunLock",
    "RunLocked",
    "Seal",
    "Step",
    "Summary",
    "Trace",
    "TraceWriter",
    "check_chain",
    "check_unedited",
    "edited_message",
    "has_header",
    "iter_lines",
    "now",
    "read_element_keys",
    "read_summary",
    "read_trace",
]
