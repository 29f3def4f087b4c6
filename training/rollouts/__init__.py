"""Rollouts for training on many machines. On one machine the training loop uses `mira run`'s code.

* :mod:`training.rollouts.pool`: splits a selection into shards.
* :mod:`training.rollouts.ray_pool`: workers of a Ray cluster (extra `ray`), which are replaced after a crash.
"""
