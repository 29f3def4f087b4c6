"""Evaluates a policy on single steps without training: `mira eval planning`.

rules          when a step is right: OS-Atlas (Type, GR, SR), AITZ (TM, EM), Mind2Web (Ele.Acc, Op.F1, Step SR)
answers        answers of a model, or of a file
report         the metrics with their intervals
picturing      the report of pages: numbers, and both actions on each screenshot
"""
