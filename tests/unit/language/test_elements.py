"""`some item in items (…)`: parsing, printing and mistakes."""

from __future__ import annotations

import pytest

from tamis import Schema
from tamis.errors import ConditionError, LimitError
from tamis.language import parse, to_text
from tamis.language.normal_form import check_size
from tamis.language.type_check import check
from tamis.model.condition import And, Call, Comparison, Condition, Not, Or, Predicate, Some
from tamis.testing import cases

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "price": "decimal",
            "tags": "text",
            "items": {
                "kind": "structs",
                "attributes": {
                    "sku": "text",
                    "qty": "integer",
                    "list-price": "decimal",
                    "price": "decimal",
                    "sold": "boolean",
                    "lines": {"kind": "structs", "attributes": {"n": "integer"}},
                },
            },
        }
    }
)


def test_the_variable_is_not_in_the_names_of_the_condition() -> None:
    parsed = parse("some item in items (item.sku = A1 and item.qty >= 2)", SCHEMA)
    wanted = And((Predicate("sku", "=", "A1"), Predicate("qty", ">=", 2)))
    assert parsed == Some("item", "items", wanted)
    assert to_text(parsed) == "some item in items (item.sku = A1 and item.qty >= 2)"


@pytest.mark.parametrize(
    "text",
    [
        "some i in items (i.sold)",
        "not some i in items (not i.sold)",
        "price > 5 or SOME i IN items (i.qty in (1, 2))",
        "some i in items (i.price < 2 * @`i.list-price`)",
        "some i in items (`i.list-price` > 3 or (i.qty = 1 and i.sku missing))",
        "some o in items (some l in o.lines (l.n > 3) and not some o in o.lines (o.n = 1))",
        "items exists and not items missing",
    ],
)
def test_printing_gives_the_same_condition(text: str) -> None:
    parsed = parse(text, SCHEMA)
    assert parse(to_text(parsed), SCHEMA) == parsed


def test_random_conditions_are_printed_and_parsed() -> None:
    chooser = cases.RandomChooser(8)
    seen = 0
    while seen < 40:
        condition = cases.condition(chooser)
        if "Some(" in repr(condition):
            assert parse(to_text(condition)) == condition
            seen += 1


def test_some_is_still_a_name() -> None:
    schema = Schema.from_dict({"attributes": {"some": "integer", "x": "text"}})
    assert isinstance(parse("some in (1, 2) and some = 3", schema), And)
    assert parse("x = some") == Predicate("x", "=", "some")


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("items = 5", "elements would be mixed", "some item in items (item.… = …)"),
        ("items.sku = A1", "elements would be mixed", "some item in items (item.sku = A1)"),
        ("items.lines.n = 1", "elements would be mixed", "some item in items"),
        ("items contains 3", "elements would be mixed", "some item in items"),
        ("price < @items", "elements would be mixed", "(item.… = @item.…)"),
        ("price < @items.qty", "elements would be mixed", "(item.… = @item.…)"),
        ("some i in items (price > 3)", "'price' is not an attribute of 'i'", "one element only"),
        ("some i in items (i.price > @price)", "'price' is not an attribute of 'i'", ""),
        ("some i in items (i)", "'i' is not an attribute of 'i'", "i.name"),
        ("some i in items (i.skuu = A1)", "unknown attribute 'i.skuu'", "did you mean 'sku'"),
        ("some i in items (i.event_type = x)", "unknown attribute 'i.event_type'", ""),
        ("some i in items (i.sku < @i.event_type)", "unknown attribute 'i.event_type'", ""),
        ("some i in items (i.qty = x)", "'i.qty' is integer: 'x' is text", ""),
        ("some i in items (i.sku = i.qty)", "'i.qty' is an attribute", "write @i.qty"),
        ("some i in items (i.sku = null)", "not an absent value", "write i.sku missing"),
        ('some i in items (i.sku contains "a")', "'i.sku' has one value", "i.sku has substring"),
        ("some i in items (i.lines = 3)", "'i.lines' is a list of structs", "some item in i.lines"),
        ("some i in items (near(3))", "cannot call operators", "beside"),
        ("some i in items (?x > 3)", "cannot call operators", ""),
        ("some i in tags (i.a = 1)", "'tags' is text, not a list of structs", "tags = …"),
        ("some i in item (i.a = 1)", "unknown attribute 'item'", "did you mean 'items'"),
        ("some i in items (some l in items (l.qty = 1))", "not an attribute of 'i'", ""),
        ("some i in items i.qty = 1", "in parentheses", "as in: some item"),
        ("some i in (1, 2)", "expected a list of structs", "as in: some item"),
        ("some a.b in items (a.b.qty = 1)", "expected a name for the element", ""),
        ("some i in items (i.qty = 1", "expected a closing parenthesis", ""),
    ],
)
def test_mistakes_are_named(text: str, what: str, hint: str) -> None:
    with pytest.raises(ConditionError, match=what) as error:
        parse(text, SCHEMA)
    assert error.value.span is not None
    assert hint in str(error.value)


def test_conditions_built_by_programs_are_checked_too() -> None:
    inner: list[tuple[Condition, str]] = [
        (Call("near", (3,)), "cannot call operators"),
        (Predicate("qtty", "=", 1), "unknown attribute"),
        (Some("l", "lines", Predicate("m", "=", 1)), "unknown attribute 'l.m'"),
        (Or((Predicate("qty", "=", 1), Not(Predicate("lines", "=", 1)))), "list of structs"),
    ]
    for condition, what in inner:
        with pytest.raises(ConditionError, match=what):
            check(Some("i", "items", condition), SCHEMA)
    with pytest.raises(ConditionError, match="is not a condition"):
        check_size(Some("i", "items", 5))  # type: ignore[arg-type]


def test_limits_count_what_is_inside() -> None:
    many = And(tuple(Predicate("qty", "=", n) for n in range(10_001)))
    with pytest.raises(LimitError, match="predicates"):
        check_size(Some("i", "items", many))
    deep: Condition = Predicate("n", "=", 1)
    for _ in range(101):
        deep = Some("i", "lines", deep)
    with pytest.raises(LimitError, match="nested deeper"):
        check_size(deep)
    with pytest.raises(LimitError, match="nested deeper"):
        parse("some i in items (" * 101 + "i.n = 1" + ")" * 101)


def test_attributes_of_an_element_are_compared() -> None:
    parsed = parse("some i in items (i.price < @i.qty)", SCHEMA)
    assert isinstance(parsed, Some)
    assert isinstance(parsed.condition, Comparison)
    assert to_text(parsed) == "some i in items (i.price < @i.qty)"
