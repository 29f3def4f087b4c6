"""Imports logs of other tools as traces: WebArena's rendered logs and BrowserGym/AgentLab experiment folders.

Fields that a log does not contain stay empty (milestones, token ids, durable keys of frames). Unknown entries become
events in the trace and are never guessed. Nothing in a foreign file is executed: pickles are read without their
classes, links are not followed, and :func:`import_folder` bounds time and memory.
"""

from envs.importing.agentlab import read_agentlab
from envs.importing.bounded import READERS, Format, ImportBounds, import_folder
from envs.importing.episodes import ForeignEpisode, write_episodes
from envs.importing.webarena import read_webarena

__all__ = [
    "READERS",
    "ForeignEpisode",
    "Format",
    "ImportBounds",
    "import_folder",
    "read_agentlab",
    "read_webarena",
    "write_episodes",
]
