"""Training: what makes a local policy better.

So far: :mod:`training.embedded`, the small model that ships in `models/embedded`, from scripted demonstrations to
supervised fine-tuning.
"""
