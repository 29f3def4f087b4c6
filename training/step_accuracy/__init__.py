"""Evaluates a policy on single steps without training: `mira eval planning`.

rules          when a step is right: OS-Atlas (Type, GR, SR), AITZ (TM, EM)
predictions    answers of a model, or of a file
report         the metrics with their intervals
"""
