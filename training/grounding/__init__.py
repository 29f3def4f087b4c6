"""Examples of GUI grounding from pages that are rendered in Chromium, and the evaluation of models on such examples.

`mira data grounding` and `mira eval grounding` use it. Nothing here imports torch.
"""
