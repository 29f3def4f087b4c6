"""MiRA (milestones → potential critic → shaped reward → regression policy update), its baselines and its ablations.

The mathematics first, as pure functions: :mod:`training.mira.progress`, :mod:`training.mira.advantages`,
:mod:`training.mira.losses`, :mod:`training.mira.replay`.
"""
