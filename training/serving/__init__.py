"""Serves training checkpoints: exports for `vllm serve`, and adapter reloads on a running server.

* :mod:`training.serving.export`: merged weights, or an adapter beside its base; `mira export`.
* :mod:`training.serving.verify`: loads an export and compares its logits with those of the source checkpoint.
* :mod:`training.serving.reload`: loads a new adapter into a running vLLM between two phases.

Guarantees: an export is complete or absent, and its manifest has the hash of every file. Not guaranteed: that a server
supports the model's architecture; see vLLM's list.
"""
