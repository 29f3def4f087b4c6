"""Writes `model.onnx`, the graph of a Llama checkpoint with a KV cache: `python -m training.embedded.onnx_graph`.

The graph is built node by node from operators of the ONNX standard (opset 23), about thirty for a layer, and holds no
weights: it names the tensors of `model.safetensors` in the same folder by their offsets. A retrained checkpoint of the
same shape therefore needs no other graph; :func:`training.embedded.export.export` writes it all the same. Inputs and
outputs are described where they are used, in :mod:`models.local.embedded_onnx`.
"""

from __future__ import annotations

import argparse
import json
import struct
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from models.embedded import embedded_dir
from models.local.embedded_onnx import GRAPH

OPSET: Final = 23
IR_VERSION: Final = 11
WEIGHTS: Final = "model.safetensors"
_DTYPES: Final = {"F16": TensorProto.FLOAT16, "F32": TensorProto.FLOAT}
_HEADER: Final = 8
"""A safetensors file begins with the length of its JSON header, as a little-endian uint64."""


class _Builder:
    """Collects nodes and initializers; each method returns the name of what it adds."""

    def __init__(self, weights: Path) -> None:
        with weights.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(_HEADER))
            self._tensors: dict[str, dict[str, Any]] = json.loads(file.read(length))
        self._begins = _HEADER + length
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def node(self, kind: str, inputs: list[str], output: str, *more: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output, *more], **attributes))
        return output

    def constant(self, name: str, values: Any) -> str:
        self.initializers.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def weight(self, name: str, *, transposed: bool = False) -> str:
        """A tensor of the checkpoint as float32. Both conversions happen once, when the session is made."""
        if all(tensor.name != name for tensor in self.initializers):
            self.initializers.append(self._outside(name))
            self.node("Cast", [name], f"{name}.float", to=TensorProto.FLOAT)
        if not transposed:
            return f"{name}.float"
        return self.node("Transpose", [f"{name}.float"], f"{name}.transposed", perm=[1, 0])

    def linear(self, of: str, name: str, *, bias: bool) -> str:
        product = self.node("MatMul", [of, self.weight(f"{name}.weight", transposed=True)], f"{name}.product")
        return self.node("Add", [product, self.weight(f"{name}.bias")], f"{name}.sum") if bias else product

    def norm(self, of: str, name: str, epsilon: float) -> str:
        return self.node("RMSNormalization", [of, self.weight(f"{name}.weight")], f"{name}.normed", epsilon=epsilon)

    def _outside(self, name: str) -> onnx.TensorProto:
        entry = self._tensors[name]
        begin, end = entry["data_offsets"]
        tensor = TensorProto(name=name, data_type=_DTYPES[entry["dtype"]], dims=entry["shape"])
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", WEIGHTS), ("offset", self._begins + begin), ("length", end - begin)):
            tensor.external_data.add(key=key, value=str(value))
        return tensor


def build_graph(folder: Path) -> onnx.ModelProto:
    """The graph of the Llama checkpoint in *folder*. Raises ValueError for a checkpoint of another kind."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    _check(config)
    graph = _Builder(folder / WEIGHTS)
    embeddings = graph.weight("model.embed_tokens.weight")
    hidden = graph.node("Gather", [embeddings, "input_ids"], "embedded")
    angles = _angles(graph, config)
    for layer in range(config["num_hidden_layers"]):
        hidden = _layer(graph, config, layer, hidden, angles)
    last = graph.node("Gather", [hidden, graph.constant("last", np.array([-1]))], "last_hidden", axis=1)
    normed = graph.norm(last, "model.norm", config["rms_norm_eps"])
    graph.node("MatMul", [normed, graph.weight("model.embed_tokens.weight", transposed=True)], "logits")
    inputs, outputs = _signature(config)
    made = helper.make_graph(graph.nodes, "llama", inputs, outputs, graph.initializers)
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(made, opset_imports=opsets, ir_version=IR_VERSION, producer_name="mira")


def write_graph(folder: Path) -> Path:
    """Writes the graph beside the weights in *folder*. The same folder gives the same bytes."""
    file = folder / GRAPH
    file.write_bytes(build_graph(folder).SerializeToString(deterministic=True))
    return file


def _check(config: dict[str, Any]) -> None:
    wanted: dict[str, Any] = {
        "model_type": "llama",
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "attention_bias": True,
        "mlp_bias": False,
    }
    if odd := [name for name, value in wanted.items() if config.get(name) != value]:
        raise ValueError(f"the graph of a checkpoint with another {', '.join(odd)} is not known")
    if config["rope_parameters"]["rope_type"] != "default":
        raise ValueError("the graph of a checkpoint with scaled positions is not known")


def _angles(graph: _Builder, config: dict[str, Any]) -> tuple[str, str]:
    """(cosines, sines) of rotary positions, both [B, Q, head size / 2]."""
    size, theta = config["head_dim"], config["rope_parameters"]["rope_theta"]
    frequencies = (1.0 / theta ** (np.arange(0, size, 2) / size)).astype(np.float32)
    positions = graph.node("Cast", ["position_ids"], "positions.float", to=TensorProto.FLOAT)
    column = graph.node("Unsqueeze", [positions, graph.constant("axis", np.array([2]))], "positions.column")
    angle = graph.node("Mul", [column, graph.constant("frequencies", frequencies)], "angles")
    return graph.node("Cos", [angle], "cosines"), graph.node("Sin", [angle], "sines")


def _layer(graph: _Builder, config: dict[str, Any], layer: int, hidden: str, angles: tuple[str, str]) -> str:
    name, epsilon, heads = f"model.layers.{layer}", config["rms_norm_eps"], config["num_attention_heads"]
    key_heads = config["num_key_value_heads"]
    normed = graph.norm(hidden, f"{name}.input_layernorm", epsilon)
    query, key, value = (graph.linear(normed, f"{name}.self_attn.{one}_proj", bias=True) for one in "qkv")
    query = graph.node("RotaryEmbedding", [query, *angles], f"{name}.query", num_heads=heads)
    key = graph.node("RotaryEmbedding", [key, *angles], f"{name}.key", num_heads=key_heads)
    attended = graph.node(
        "Attention",
        [query, key, value, "mask", f"past_key_{layer}", f"past_value_{layer}"],
        f"{name}.attended",
        f"key_{layer}",
        f"value_{layer}",
        q_num_heads=heads,
        kv_num_heads=key_heads,
    )
    attention = graph.linear(attended, f"{name}.self_attn.o_proj", bias=True)
    hidden = graph.node("Add", [hidden, attention], f"{name}.after_attention")
    normed = graph.norm(hidden, f"{name}.post_attention_layernorm", epsilon)
    gate = graph.linear(normed, f"{name}.mlp.gate_proj", bias=False)
    activated = graph.node("Mul", [gate, graph.node("Sigmoid", [gate], f"{name}.sigmoid")], f"{name}.silu")
    inner = graph.node("Mul", [activated, graph.linear(normed, f"{name}.mlp.up_proj", bias=False)], f"{name}.inner")
    return graph.node("Add", [hidden, graph.linear(inner, f"{name}.mlp.down_proj", bias=False)], f"{name}.output")


def _signature(config: dict[str, Any]) -> tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
    """(inputs, outputs)."""
    heads, size = config["num_key_value_heads"], config["head_dim"]
    make = helper.make_tensor_value_info
    inputs = [make(name, TensorProto.INT64, ["B", "Q"]) for name in ("input_ids", "position_ids")]
    inputs.append(make("mask", TensorProto.BOOL, ["B", 1, "Q", "K"]))
    outputs = [make("logits", TensorProto.FLOAT, ["B", 1, config["vocab_size"]])]
    for layer in range(config["num_hidden_layers"]):
        for name in ("key", "value"):
            inputs.append(make(f"past_{name}_{layer}", TensorProto.FLOAT, ["B", heads, "P", size]))
            outputs.append(make(f"{name}_{layer}", TensorProto.FLOAT, ["B", heads, "K", size]))
    return inputs, outputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=embedded_dir(), help="checkpoint; the graph goes beside it")
    file = write_graph(parser.parse_args().folder)
    print(f"{file}: {file.stat().st_size:,} bytes")  # noqa: T201 - what was asked for


if __name__ == "__main__":
    main()
