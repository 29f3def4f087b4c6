"""From a training checkpoint back to serving: folders that `vllm serve` takes as they are, and a server that reloads.

* :mod:`training.serving.export`: merged weights, or an adapter beside its base; `mira export`.
* :mod:`training.serving.verify`: loads an export back and compares its logits with the checkpoint it was made of.
* :mod:`training.serving.reload`: puts a new adapter into a running vLLM between two phases.

Promised: an export is whole or absent, and its manifest holds the hash of every file. Not promised: that a server can
run the model's architecture; vLLM's own list says which it can.
"""
