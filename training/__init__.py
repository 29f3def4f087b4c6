"""Training: what makes a local policy better, from the traces that runs leave.

Data flows one way, room by room: :mod:`training.data` (traces → rows) → :mod:`training.mira` (rewards, advantages and
losses as pure functions) → :mod:`training.engine` (supervised start, critics, actor) → :mod:`training.serving` (a
checkpoint that a server takes as it is). :mod:`training.loop` goes round: :mod:`training.rollouts` plays,
:mod:`training.loop.evaluation` measures, :mod:`training.loop.curriculum` chooses the next phase's tasks.
:mod:`training.embedded` makes the small model that ships in `models/embedded`.

Beside the loop, answer by answer: :mod:`training.grpo` (examples from traces → groups of answers → a checkpoint) with
:mod:`training.grpo.rewards` (pure functions), :mod:`training.grpo.puzzles` and :mod:`training.toy_models` (small worlds
and models).
"""
