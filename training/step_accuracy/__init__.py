"""Evaluates a policy on single steps without training: `mira eval planning` and `mira eval steps`.

rules          when a step is right: OS-Atlas (Type, GR, SR), AITZ (TM, EM), Mind2Web (Ele.Acc, Op.F1, Step SR)
answers        answers of a model, or of a file
report         the metrics with their intervals
recorded_steps how often a checkpoint repeats the actions of recorded runs
picturing      the report of pages: numbers, and both actions on each screenshot
"""
