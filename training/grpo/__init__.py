"""Group-relative policy optimization (GRPO) on single answers: SSL, GuirlVG, AdaGUI-R1 and LPO.

Examples (:mod:`training.grpo.examples`) → rewards (:mod:`training.grpo.rewards`) → TRL's trainer
(:mod:`training.grpo.trainer`) → a checkpoint (:mod:`training.grpo.run`), evaluated on held-out examples.
"""
