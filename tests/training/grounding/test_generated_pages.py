"""Instructions of generated pages name exactly one control; templates, splits and options. No browser."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from envs.core.errors import BadInput
from training.grounding.controls import (
    Asks,
    Container,
    Control,
    by_function,
    by_name,
    by_relation,
    count_matches,
    instructions,
    is_unambiguous,
)
from training.grounding.layouts import generate, layout
from training.grounding.site_pages import page_form
from training.grounding.templates import (
    ViewSize,
    generated_templates,
    miniwob_templates,
    parse_sizes,
    parse_sources,
    split_of,
)
from training.grounding.vocabulary import CONCEPTS, LANGUAGES

SEEDS = range(150)


def _delete(number: int, *containers: Container) -> Control:
    function = CONCEPTS["delete"].function
    return Control(
        id=str(number),
        role="button",
        name="Delete",
        icon=True,
        concept="delete",
        function=function,
        containers=containers,
    )


ANN, BEN = Container(kind="row", label="Ann"), Container(kind="row", label="Ben")


def test_a_name_or_a_function_that_two_controls_have_is_refused_and_their_rows_tell_them_apart() -> None:
    ann, ben = _delete(1, ANN), _delete(2, BEN)
    page = (ann, ben)
    assert count_matches(by_name(ann), page) == count_matches(by_function(ann), page) == 2
    assert not is_unambiguous(by_name(ann), ann, page) and not is_unambiguous(by_function(ann), ann, page)
    related = by_relation(ann, ANN)
    assert related.words == 'the "Delete" icon in the row of "Ann"'
    assert is_unambiguous(related, ann, page) and not is_unambiguous(related, ben, page)
    assert is_unambiguous(by_function(ann), ann, (ann,)) and by_function(ann).words.startswith("the icon to remove")


def test_names_that_a_person_reads_as_equal_count_as_equal() -> None:
    saved = Control(id="1", role="button", name="Save  all")
    for other in ("save all", "Save all ", "SAVE\nALL"):
        twin = Control(id="2", role="link", name=other)  # a person cannot see which of them is a link
        assert not is_unambiguous(by_name(saved), saved, (saved, twin))
    two_tables = (_delete(1, ANN), _delete(2, Container(kind="row", label="ANN")))
    assert not is_unambiguous(by_relation(two_tables[0], ANN), two_tables[0], two_tables)


def test_each_kind_of_instruction_is_possible_on_many_pages_and_matches_its_control() -> None:
    kinds: Counter[tuple[Asks, bool]] = Counter()
    for number in SEEDS:
        page = generate(0, number, "0")
        assert len({control.id for control in page.controls}) == len(page.controls)
        for control in page.controls:
            for instruction in instructions(control):
                assert instruction.matches(control)
                kinds[instruction.asks, is_unambiguous(instruction, control, page.controls)] += 1
    assert all(kinds[asks, True] > len(SEEDS) for asks in Asks), kinds
    assert kinds[Asks.NAME, False] and kinds[Asks.FUNCTION, False], "the generator makes pages with distractors"


def test_a_page_holds_an_element_for_each_of_its_controls() -> None:
    for number in SEEDS:
        page = generate(3, number, "0")
        written = re.findall(r"data-control=(?:&quot;|\")(c\d+)", page.html)
        assert sorted(written) == sorted(control.id for control in page.controls)


def test_pages_depend_on_their_seed_alone_and_templates_differ() -> None:
    assert generate(1, 2, "a") == generate(1, 2, "a")
    assert layout(1, 2) == layout(1, 2)
    assert generate(1, 2, "a") != generate(1, 2, "b") and generate(1, 2, "a") != generate(2, 2, "a")
    shapes = {layout(0, number) for number in range(300)}
    assert len(shapes) > 290
    assert {how for shape in shapes for how in shape.wrapped} == {"plain", "shadow", "frame"}
    spoken = {re.findall(r'lang="(\w+)"', generate(0, number, "0").html)[0] for number in SEEDS}
    assert spoken == set(LANGUAGES)


def test_no_two_concepts_have_a_function_or_within_a_language_a_label_in_common() -> None:
    functions = [concept.function for concept in CONCEPTS.values()]
    assert len(set(functions)) == len(functions)
    for language in LANGUAGES:
        labels = Counter(concept.labels[language].casefold() for concept in CONCEPTS.values())
        assert [label for label, count in labels.items() if count > 1] == []


def test_a_template_is_in_one_split_whatever_else_is_rendered() -> None:
    few, many = generated_templates(20), generated_templates(400)
    assert [split_of(each, 0) for each in few] == [split_of(each, 0) for each in many][:20]
    shares = Counter(split_of(each, 0) for each in many)
    assert shares["train"] > 280 and shares["validation"] > 20 and shares["test"] > 20
    assert [split_of(each, 0) for each in many] != [split_of(each, 1) for each in many]


def test_versions_of_one_miniwob_page_are_one_template() -> None:
    by_page = {each.page: each.id for each in miniwob_templates()}
    assert len(by_page) > 100
    assert by_page["click-tab"] == by_page["click-tab-2-easy"] == "miniwob/click-tab"
    assert by_page["email-inbox-forward-nl"] == by_page["email-inbox"]
    assert by_page["click-button"] != by_page["click-checkboxes"]


def test_sizes_and_sources() -> None:
    assert parse_sizes("1280x800, 390x844@2.5") == (ViewSize(1280, 800, 1), ViewSize(390, 844, 2.5))
    assert ViewSize(1280, 800, 1).zoomed(260) == ViewSize(426, 266, 3)
    assert parse_sources("miniwob,generated") == ("generated", "miniwob")


@pytest.mark.parametrize("text", ["", "1280", "1280x800@9", "50x50", "300x300,300x300", "300x300@0"])
def test_bad_sizes(text: str) -> None:
    with pytest.raises(BadInput, match="--sizes"):
        parse_sizes(text)


@pytest.mark.parametrize("text", ["", "web", "generated,web"])
def test_bad_sources(text: str) -> None:
    with pytest.raises(BadInput, match="--sources"):
        parse_sources(text)


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/", "/"),
        ("/catalogue/the-oak-table_17/", "/catalogue/*/"),
        ("/search/?q=lamp&page=2", "/search/?page&q"),
        ("/catalogue/the-oak-table_17/reviews/", "/catalogue/*/reviews/"),
    ],
)
def test_pages_of_one_form_are_one_template(path: str, form: str) -> None:
    assert page_form(path) == form
