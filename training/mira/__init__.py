"""MiRA (milestones → potential critic → shaped reward → regression policy update), its baselines and its ablations.

This package holds the mathematics as pure functions: :mod:`training.mira.progress`, :mod:`training.mira.advantages`,
:mod:`training.mira.losses`, :mod:`training.mira.replay`.
"""
