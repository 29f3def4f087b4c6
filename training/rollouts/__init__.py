"""Rollouts for training, on this machine or on many: one protocol, two pools.

* :mod:`training.rollouts.pool`: what a pool promises, and the pool that is this process.
* :mod:`training.rollouts.ray_pool`: workers of a Ray cluster (extra `ray`), replaced when they die.
"""
