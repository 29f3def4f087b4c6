"""Rollouts for training on many machines; on this one the loop plays them as `mira run` does.

* :mod:`training.rollouts.pool`: shards of a selection.
* :mod:`training.rollouts.ray_pool`: workers of a Ray cluster (extra `ray`), replaced when they die.
"""
