"""Training: improves a local policy from the traces of runs.

Data flows one way, package by package: :mod:`training.data` (traces → rows) → :mod:`training.mira` (rewards, advantages
and losses as pure functions) → :mod:`training.engine` (supervised fine-tuning, critics, actor) →
:mod:`training.serving` (a checkpoint that a server can load). :mod:`training.loop` runs the phases:
:mod:`training.rollouts` plays episodes, :mod:`training.loop.evaluation` measures, :mod:`training.loop.curriculum`
chooses the next phase's tasks. :mod:`training.embedded` trains the small model that ships in `models/embedded`.

Independent of the loop, GRPO trains on single completions: :mod:`training.grpo` (examples from traces → groups of
completions → a checkpoint) with :mod:`training.grpo.rewards` (pure functions) and :mod:`training.grpo.puzzles`
(small tasks).
"""
