"""Files of examples: written examples are read back, and errors name the line."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from envs.core.errors import BadInput
from training.grpo.examples import (
    Example,
    Facts,
    count_shared_prompts,
    examples_digest,
    read_example_files,
    read_examples,
    write_examples,
)
from training.grpo.rewards import GridTarget, PointTarget


def example(name: str, text: str = "what?", image: Path | None = None) -> Example:
    target = GridTarget(rows=("1",)) if image is None else PointTarget(box=(1, 1, 9, 9), size=(20, 20))
    return Example(name=name, messages=(("user", text),), target=target, image=image)


def line(**changes: object) -> str:
    return json.dumps({**json.loads(example("a").model_dump_json()), **changes})


def test_written_examples_are_read_back(tmp_path: Path) -> None:
    (tmp_path / "shots").mkdir()
    (tmp_path / "shots" / "a.png").write_bytes(b"picture")
    config = (example("a", image=tmp_path / "shots" / "a.png"), example("b", "two\nlines \u2028"))
    write_examples(tmp_path / "sets" / "train.jsonl", config)
    read = read_examples(tmp_path / "sets" / "train.jsonl")
    assert read == config
    assert (read[0].picture, read[1].picture) == (b"picture", None)


def test_images_go_with_their_file(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.png").write_bytes(b"picture")
    write_examples(tmp_path / "one" / "train.jsonl", [example("a", image=tmp_path / "one" / "a.png")])
    (tmp_path / "one").rename(tmp_path / "two")
    assert read_examples(tmp_path / "two" / "train.jsonl")[0].picture == b"picture"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("", "holds no examples", id="nothing"),
        pytest.param("\n\n", "holds no examples", id="empty lines"),
        pytest.param(line() + "\n{", r"e\.jsonl:2: not an example", id="half a line"),
        pytest.param(line(goal="x"), r":1: not an example: unknown key 'goal'", id="unknown key"),
        pytest.param(line(messages=[]), ":1: not an example: key 'messages'", id="no message"),
        pytest.param(line(target={"kind": "chess"}), ":1: not an example: key 'target'", id="unknown target"),
        pytest.param(
            line(target={"kind": "maze", "rows": ["S#G"], "path": "RR"}), "does not lead from S to G", id="wrong target"
        ),
        pytest.param(line() + "\n\n" + line(), r":3: the name 'a' comes twice", id="twice"),
        pytest.param(line(image="gone.png"), r"gone\.png' does not exist", id="no image"),
    ],
)
def test_invalid_files_of_examples(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "e.jsonl").write_text(text)
    with pytest.raises(BadInput, match=says) as caught:
        read_examples(tmp_path / "e.jsonl")
    assert "\n" not in str(caught.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        read_examples(tmp_path / "nowhere.jsonl")


def test_several_files(tmp_path: Path) -> None:
    for name, names in (("one", "ab"), ("two", "cd"), ("three", "ea")):
        write_examples(tmp_path / name, [example(one) for one in names])
    assert [one.name for one in read_example_files([tmp_path / "two", tmp_path / "one"])] == ["c", "d", "a", "b"]
    with pytest.raises(BadInput, match="'a' is in an earlier file, too"):
        read_example_files([tmp_path / "one", tmp_path / "three"])


def test_questions_that_two_sets_share(tmp_path: Path) -> None:
    first, second = tmp_path / "1.png", tmp_path / "2.png"
    first.write_bytes(b"one picture")
    second.write_bytes(b"another picture")
    one = [example("a", "x"), example("b", "y"), example("c", "z", image=first)]
    other = [example("d", "y"), example("e", "z", image=second)]
    assert count_shared_prompts(one, other) == 1, "the same words about another picture are another question"


def test_a_picture_that_two_commands_stored_is_one_picture(tmp_path: Path) -> None:
    """`mira train examples` and `mira data import` store pictures in a folder beside each file of examples."""
    for name in ("train", "held_out"):
        picture = tmp_path / f"{name}-images" / "3f2a.png"
        picture.parent.mkdir()
        picture.write_bytes(b"one picture")
        write_examples(tmp_path / f"{name}.jsonl", [example(name, "where?", image=picture)])
    train, held_out = (read_examples(tmp_path / f"{name}.jsonl") for name in ("train", "held_out"))
    assert train[0].image != held_out[0].image
    assert count_shared_prompts(held_out, train) == 1


def test_a_run_on_examples_without_facts_continues_on_the_same_with_facts(tmp_path: Path) -> None:
    """The digest is that of the records as they were before facts, which the folders of runs hold."""
    stored = '{"name":"a","messages":[["user","?"]],"target":{"kind":"grid","rows":["12"]},"image":null}'
    example = Example.model_validate_json(stored)
    before = example.model_dump_json(exclude={"facts", "thought", "preparation"})
    assert list(json.loads(before)) == ["name", "messages", "target", "image"]
    known = example.model_copy(update={"facts": Facts(subject="it", template="page")})
    assert examples_digest([example]) == examples_digest([known]) == hashlib.sha256(before.encode()).hexdigest()[:16]
    write_examples(tmp_path / "new.jsonl", [known])
    assert read_examples(tmp_path / "new.jsonl") == (known,)
