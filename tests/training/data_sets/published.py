"""Each data set in miniature: two rows of the published shape, with pictures made here."""

from __future__ import annotations

import gzip
import io
import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow
from PIL import Image
from pyarrow import parquet

from training.data_sets.tfrecord import masked_crc


def png(size: tuple[int, int], colour: str = "white") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, format="PNG")
    return out.getvalue()


def picture(path: Path, size: tuple[int, int], colour: str = "white") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png(size, colour))
    return path


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def screenspot(folder: Path) -> None:
    """SeeClick's files; boxes are left, top, width, height."""
    for platform, source, kind in (("mobile", "ios", "text"), ("desktop", "windows", "icon")):
        picture(folder / "screenspot_imgs" / f"{platform}.png", (200, 100))
        row = {
            "img_filename": f"{platform}.png",
            "bbox": [20, 10, 40, 20],
            "instruction": f"open the {platform} settings",
            "data_type": kind,
            "data_source": source,
        }
        write_json(folder / f"screenspot_{platform}.json", [row])


def screenspot_table(folder: Path) -> None:
    """The parquet of another publisher; boxes are left, top, right, bottom from 0 to 1."""
    common = {"data_type": "text", "bbox": [0.1, 0.1, 0.3, 0.3]}
    image = {"bytes": png((200, 100)), "path": None}
    rows: list[dict[str, Any]] = [
        {"file_name": "a.png", "instruction": "send", "data_source": "android", "image": image, **common},
        {"file_name": "b.png", "instruction": "fork", "data_source": "gitlab", "image": image, **common},
    ]
    write_parquet(folder / "data" / "test-00000-of-00001.parquet", rows)


def screenspot_v2(folder: Path) -> None:
    for platform, kind in (("mobile", "text"), ("web", "icon")):
        picture(folder / "screenspotv2_image" / f"{platform}.png", (200, 100))
        row = {
            "img_filename": f"{platform}.png",
            "bbox": [20, 10, 40, 20],
            "instruction": f"close the {platform} page",
            "data_type": kind,
            "data_source": "web",
        }
        write_json(folder / f"screenspot_{platform}_v2.json", [row])


def screenspot_pro(folder: Path) -> None:
    rows: list[dict[str, Any]] = []
    for number, kind in enumerate(("text", "icon")):
        name = f"vscode_macos/screenshot_{number}.png"
        picture(folder / "images" / name, (320, 180))
        rows.append(
            {
                "img_filename": name,
                "bbox": [20, 10, 60, 30],
                "instruction": "run the file",
                "instruction_cn": "运行文件",
                "id": f"vscode_macos_{number}",
                "application": "vscode",
                "platform": "macos",
                "img_size": [320, 180],
                "ui_type": kind,
                "group": "Dev",
            }
        )
    write_json(folder / "annotations" / "vscode_macos.json", rows)


def android_control(folder: Path) -> None:
    """An episode of two actions in a gzipped TFRecord file: a click into the smaller of two nodes, then a text."""
    nodes = (((0, 0, 100, 200), True), ((10, 20, 50, 60), True), ((12, 22, 40, 50), False))
    tree = b"".join(chunk(1, chunk(2, _rect(box)) + (number(23, 1) if seen else b"")) for box, seen in nodes)
    forest = chunk(1, chunk(5, b"Clock") + chunk(11, tree))
    actions = [{"action_type": "click", "x": 20, "y": 30}, {"action_type": "input_text", "text": "Ann"}]
    record = tf_example(
        {
            "episode_id": [7],
            "goal": [b"Set an alarm"],
            "screenshots": [png((100, 200), colour) for colour in ("white", "red", "blue")],
            "accessibility_trees": [forest, forest, b""],
            "screenshot_widths": [100, 100, 100],
            "screenshot_heights": [200, 200, 200],
            "actions": [json.dumps(action).encode() for action in actions],
            "step_instructions": [b"Open the clock", b"Type the name"],
        }
    )
    path = folder / "android_control-00000-of-00020"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(framed(record)))
    write_json(folder / "splits.json", {"train": [8], "validation": [], "test": [7]})


def gui_odyssey(folder: Path) -> None:
    steps: list[dict[str, Any]] = [
        {"step": 0, "screenshot": "e1_0.png", "action": "CLICK", "info": [[500, 250]], "ps": ""},
        {"step": 1, "screenshot": "e1_1.png", "action": "SCROLL", "info": [[500, 800], [500, 200]], "ps": ""},
    ]
    steps[0]["sam2_bbox"] = [400, 200, 600, 300]
    episode = {
        "episode_id": "e1",
        "device_info": {"product": "x", "w": 100, "h": 200, "device_name": "Pixel Fold"},
        "task_info": {"category": "Multi_Apps", "app": ["Clock"], "instruction": "Set a reminder"},
        "step_length": 2,
        "steps": steps,
    }
    write_json(folder / "annotations" / "e1.json", episode)
    for number in (0, 1):
        picture(folder / "screenshots" / f"e1_{number}.png", (100, 200))
    write_json(folder / "splits" / "random_split.json", {"train": [], "test": ["e1.json"]})


def aitz(folder: Path) -> None:
    base = {"episode_id": "GENERAL-1", "instruction": "Find hotels", "episode_length": 2, "coat_action_think": "…"}
    places = json.dumps([[20, 10, 40, 30], [0, 0, 200, 100]])
    steps = [
        {"step_id": 0, "result_action_type": 4, "result_action_text": "", "coat_action_desc": "click on the icon."},
        {"step_id": 1, "result_action_type": 3, "result_action_text": "hotels", "coat_action_desc": 'input "hotels"'},
    ]
    touched = {"result_touch_yx": "[0.2, 0.25]", "result_lift_yx": "[0.2, 0.25]"}
    for number, step in enumerate(steps):
        name = f"general/GENERAL-1/GENERAL-1_{number}.png"
        picture(folder / "test" / name, (100, 200))
        step |= {**base, "image_path": name, "ui_positions": places, **touched}
    write_json(folder / "test" / "general" / "GENERAL-1" / "GENERAL-1.json", steps)


def omniact(folder: Path) -> None:
    """A web page whose files are named otherwise than its row says, with a script of two lines."""
    home = folder / "data" / "web" / "shop"
    picture(home / "screen1.png", (200, 100))
    write_json(home / "screen1_boxes.json", {"0": {"top_left": [20, 10], "bottom_right": [60, 30], "label": "Cart"}})
    script = 'Task: Buy the lamp\nOutput Script:\npyautogui.click(40.0,20.0)\npyautogui.write("lamp")\n'
    (home / "task_1.txt").write_text(script)
    row = {"task": "data/web/shop/task_1.txt", "image": "data/web/shop/screen_1.png"}
    write_json(folder / "test.json", {"0": row | {"box": "data/web/shop/screen_1.json"}})


def mind2web(folder: Path) -> None:
    attributes = json.dumps({"backend_node_id": "5", "bounding_box_rect": "20.5,10,40,20", "class": "b"})
    hidden = json.dumps({"backend_node_id": "6", "bounding_box_rect": "-1,-1,-1,-1"})
    reprs = ["[button]  Search -> CLICK", "[textbox]  City -> TYPE: Rome"]
    rows: list[dict[str, Any]] = []
    for index, (kind, value) in enumerate((("CLICK", ""), ("TYPE", "Rome"))):
        candidates = [json.dumps({"tag": "button", "attributes": text}) for text in (hidden, attributes)]
        rows.append(
            {
                "action_uid": f"uid-{index}",
                "annotation_id": "ann-1",
                "confirmed_task": "Find a flat in Rome",
                "operation": json.dumps({"original_op": kind, "op": kind, "value": value}),
                "pos_candidates": candidates,
                "neg_candidates": [],
                "target_action_index": str(index),
                "target_action_reprs": reprs[index],
                "action_reprs": reprs,
                "website": "flats",
                "screenshot": {"bytes": png((200, 100)), "path": None},
            }
        )
    write_parquet(folder / "data" / "test_task-00000-of-00001.parquet", rows)


def gui_r1_3k(folder: Path) -> None:
    image = {"bytes": png((200, 100)), "path": None}
    common = {"image": image, "history": "None", "task_type": "high"}
    rows: list[dict[str, Any]] = [
        {
            "instruction": "Open mail",
            "gt_action": "click",
            "gt_bbox": [0.1, 0.2, 0.3, 0.4],
            "gt_input_text": "no input text",
        },
        {"instruction": "Read on", "gt_action": "scroll", "gt_bbox": [-100.0, -100.0], "gt_input_text": "DOWN"},
    ]
    write_parquet(folder / "train.parquet", [row | common for row in rows])


def visualwebbench(folder: Path) -> None:
    """A row of each grounding subtask; options are shares of the picture, or pixels of it."""
    shares = [[0.1 * place, 0.1, 0.1 * place + 0.08, 0.3] for place in range(8)]
    pixels = [[20.0 * place, 10.0, 20.0 * place + 16, 30.0] for place in range(8)]
    for subtask, key, options, right in (
        ("element_ground", "elem_desc", shares, 2),
        ("action_ground", "instruction", pixels, 7),
    ):
        row: dict[str, Any] = {
            "id": f"{subtask}_1",
            "task_type": subtask,
            "website": "https://shop.example",
            "image": {"bytes": png((200, 100), "red"), "path": None},
            "image_size": [200, 100],
            "raw_image": {"bytes": png((200, 100)), "path": None},
            "options": options,
            key: f"the cart of {subtask}",
            "answer": right,
        }
        write_parquet(folder / subtask / "test-00000-of-00001.parquet", [row])


def visualwebbench_texts(folder: Path) -> None:
    """Two rows of each subtask on texts."""
    rows: dict[str, list[dict[str, Any]]] = {
        "web_caption": [{"answer": "Shop new phones. Free delivery."}, {"answer": "News of the day"}],
        "heading_ocr": [{"answer": "New phones"}, {"answer": "News"}],
        "webqa": [
            {"question": "What does delivery cost?", "answer": ["nothing", "free"]},
            {"question": "Who wrote it?", "answer": ["Ada"]},
        ],
        "element_ocr": [
            {"elem_desc": "a paragraph", "bbox": [0.1, 0.2, 0.5, 0.25], "answer": "Free delivery in Rome"},
            {"elem_desc": "a line", "bbox": [0.0, 0.5, 1.0, 0.6], "answer": "All rights reserved"},
        ],
        "action_prediction": [
            {"elem_desc": "the cart", "bbox": [0.8, 0.0, 0.9, 0.1], "options": list("stuvwxyz"), "answer": 3},
            {
                "elem_desc": "a link",
                "bbox": [0.1, 0.1, 0.2, 0.2],
                "options": [f"{a}. {a}s" for a in "ABCD"],
                "answer": 0,
            },
        ],
    }
    common = {"website": "https://shop.example", "image_size": [200, 100]}
    for subtask, own in rows.items():
        made = [
            {"id": f"{subtask}_{place}", "task_type": subtask, "image": {"bytes": png((200, 100)), "path": None}}
            | common
            | row
            for place, row in enumerate(own)
        ]
        write_parquet(folder / subtask / "test-00000-of-00001.parquet", made)


def own_folder(folder: Path) -> None:
    picture(folder / "shots" / "cart.png", (200, 100))
    lines = ["picture,instruction,left,top,right,bottom,role,platform"]
    lines += ["shots/cart.png,the checkout button,20,10,60,30,text,web", "shots/cart.png,the cart,80,10,120,30,,"]
    (folder / "labels.csv").write_text("\n".join(lines))


BUILDERS: Mapping[str, Callable[[Path], None]] = {
    "screenspot": screenspot,
    "screenspot-v2": screenspot_v2,
    "screenspot-pro": screenspot_pro,
    "android-control": android_control,
    "gui-odyssey": gui_odyssey,
    "aitz": aitz,
    "omniact": omniact,
    "mind2web": mind2web,
    "gui-r1-3k": gui_r1_3k,
    "visualwebbench": visualwebbench,
    "folder": own_folder,
}
"""By the name of the importer."""


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def number(field: int, value: int) -> bytes:
    """A varint field of a protobuf message."""
    return varint(field << 3) + varint(value)


def chunk(field: int, data: bytes) -> bytes:
    """A text or message field of a protobuf message."""
    return varint(field << 3 | 2) + varint(len(data)) + data


def _rect(box: tuple[int, int, int, int]) -> bytes:
    return b"".join(number(field, value) for field, value in enumerate(box, 1) if value)  # proto3 omits zeros


def tf_example(features: Mapping[str, list[int] | list[bytes]]) -> bytes:
    table = b""
    for name, values in features.items():
        if isinstance(values[0], bytes):
            feature = chunk(1, b"".join(chunk(1, value) for value in values if isinstance(value, bytes)))
        else:
            feature = chunk(3, chunk(1, b"".join(varint(value) for value in values if isinstance(value, int))))
        table += chunk(1, chunk(1, name.encode()) + chunk(2, feature))
    return chunk(1, table)


def framed(record: bytes) -> bytes:
    """A record of a TFRecord file."""
    length = struct.pack("<Q", len(record))
    return length + struct.pack("<I", masked_crc(length)) + record + struct.pack("<I", masked_crc(record))
