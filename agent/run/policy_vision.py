"""Which roles of a run are shown pictures, and in which coordinates its policy answers."""

from __future__ import annotations

from agent.config import SHOWN, RunConfig
from envs.core.errors import BadInput
from models.vision.checkpoints import vision_profile
from models.vision.profiles import VisionProfile


def policy_vision(config: RunConfig) -> VisionProfile | None:
    """The profile of a policy that is shown pictures; None where it is shown none.

    Raises BadInput if its model is known to read text only, :class:`models.base.ModelUnavailable` for an unknown
    profile.
    """
    if config.screenshots not in SHOWN:
        return None
    profile = vision_profile(config.policy, config.vision_profile)
    if profile is None:
        raise BadInput(
            f"--screenshots {config.screenshots} shows images to the policy, and {config.policy} reads text only: "
            "use --screenshots steps to store them, or off"
        )
    return profile


def is_shown_pictures(config: RunConfig, spec: str) -> bool:
    """Whether a planner, AutoRater or judge with the model *spec* (empty for one without a model) is shown the pictures
    of the view: where the run shows them, and the model is not known to read text only. Pictures that are only stored,
    or that only the grounder or a tool set needs, are not shown."""
    return config.screenshots in SHOWN and vision_profile(spec) is not None
