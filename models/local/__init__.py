"""Checkpoints in this process: loading, GGUF conversion, batch generation, the embedded model on ONNX Runtime."""
