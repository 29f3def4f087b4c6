"""The reader of TFRecord files and of protobuf messages, on bytes written by others where there are any."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

from envs.core.errors import BadInput
from tests.training.data_sets.published import chunk, framed, number, tf_example, varint
from training.data_sets.protobuf import DamagedMessage, fields, packed, signed
from training.data_sets.tfrecord import features, masked_crc, read_examples


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"\x00" * 32, 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"123456789", 0xE3069283),
    ],
)
def test_the_checksum_is_the_masked_crc_32c(data: bytes, crc: int) -> None:
    """RFC 3720, App. B.4; the mask is TFRecord's: rotated right by 15 bits, plus a constant."""
    masked = masked_crc(data)
    turned = (masked - 0xA282EAD8) & 0xFFFFFFFF
    assert (turned >> 17 | turned << 15) & 0xFFFFFFFF == crc


def test_values_of_the_encoding_specification() -> None:
    """Protocol Buffers, Encoding: 150 is 96 01; "testing" in field 2; 3, 270 and 86942 packed; −2 in ten bytes."""
    assert list(fields(b"\x08\x96\x01\x12\x07testing")) == [(1, 150), (2, b"testing")]
    assert list(packed(b"\x03\x8e\x02\x9e\xa7\x05")) == [3, 270, 86942]
    ((_, value),) = fields(b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01")
    assert isinstance(value, int) and signed(value) == -2
    assert list(fields(b"\x0d" + struct.pack("<f", 1.0) + b"\x11" + struct.pack("<d", 1.0))) == [
        (1, 0x3F800000),
        (2, 0x3FF0000000000000),
    ]


def test_the_protobuf_package_writes_the_same_messages() -> None:
    """Of the package that training installs: a message type made here, written by it, read by us."""
    pool_module = pytest.importorskip("google.protobuf.descriptor_pool")
    from google.protobuf import descriptor_pb2, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    kind = file.message_type.add(name="Node")
    kind.field.add(name="id", number=1, type=3, label=1)
    kind.field.add(name="name", number=7, type=9, label=1)
    kind.field.add(name="seen", number=23, type=8, label=1)
    kind.field.add(name="children", number=25, type=5, label=3)
    pool = pool_module.DescriptorPool()
    pool.Add(file)
    node = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Node"))(
        id=-5, name="Åre", seen=True, children=[1, 300]
    )
    found = dict(fields(node.SerializeToString()))
    assert isinstance(found[1], int) and signed(found[1]) == -5
    assert found[7] == "Åre".encode() and found[23] == 1
    assert isinstance(found[25], bytes) and list(packed(found[25])) == [1, 300]


@pytest.mark.parametrize("zipped", [True, False])
def test_several_records(tmp_path: Path, zipped: bool) -> None:
    records = [tf_example({"episode_id": [n], "goal": [b"a", b"bc"]}) for n in (1, 1 << 40)]
    data = b"".join(map(framed, records))
    path = tmp_path / "records"
    path.write_bytes(gzip.compress(data) if zipped else data)
    assert [dict(one) for one in read_examples(path)] == [
        {"episode_id": (1,), "goal": (b"a", b"bc")},
        {"episode_id": (1 << 40,), "goal": (b"a", b"bc")},
    ]


def test_integers_may_be_unpacked_and_floats_are_left_out() -> None:
    unpacked = chunk(3, number(1, 5) + number(1, 6))
    floats = chunk(2, chunk(1, struct.pack("<f", 1.5)))
    table = b"".join(
        chunk(1, chunk(1, name) + chunk(2, value)) for name, value in ((b"ids", unpacked), (b"scores", floats))
    )
    assert features(chunk(1, table)) == {"ids": (5, 6)}


@pytest.mark.parametrize("cut", [1, 5, 11, 13, 30])
def test_a_cut_file_is_an_error(tmp_path: Path, cut: int) -> None:
    data = framed(tf_example({"goal": [b"a goal that is long enough"]}))
    (tmp_path / "records").write_bytes(data[:-cut])
    with pytest.raises(BadInput, match="records is not a readable TFRecord file"):
        list(read_examples(tmp_path / "records"))


@pytest.mark.parametrize("data", [b"\x08", b"\x0a\x05ab", b"\x0b", varint(1 << 70), b"\x09\x00", b"\x80" * 11])
def test_a_damaged_message_is_an_error(data: bytes) -> None:
    with pytest.raises(DamagedMessage):
        list(fields(data))
