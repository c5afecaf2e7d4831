"""What people write who know another language: the place is marked, and a hint helps."""

from __future__ import annotations

import pytest

from tamis import Engine, Schema
from tamis.errors import ConditionError

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "price": "decimal",
            "title": "text",
            "sold": "boolean",
            "at": "timestamp",
            "colour": {"kind": "enumerated", "values": ["red", "dark blue"]},
            "seller.rating": "decimal",
            "items": {
                "kind": "structs",
                "attributes": {"sku": "text", "price": "decimal", "list_price": "decimal"},
            },
        }
    }
)
MISTAKES = [
    ('lower(title) = "a"', "lower(title)", "it has no functions"),
    ("lower(title)", "lower", "it has no functions"),
    ("at > now()", "(", "it has no functions"),
    ("!sold", "!", "write 'not'"),
    ("WHERE price < 5", "price", "the language sql"),
    ("SELECT * FROM lots", "*", "the language sql"),
    ('{"price": [5]}', "{", "the language eventbridge"),
    ("sold && sold", "&", "write 'and'"),
    ("sold || sold", "|", "write 'or'"),
    ("price =< 5", "<", "write <="),
    ("price => 5", ">", "write >="),
    ("price === 5", "=", "write ="),
    ("price !== 5", "=", "write !="),
    ("price ≤ 5", "≤", "write <="),
    ("price ≠ 5", "≠", "write !="),
    ("price < 1,000", ",", "no separators for thousands"),
    ("price < 1_000", "1_000", "write a number as 1000"),
    ("price < 5.", "5.", "write a number as 1000"),
    ("price < $5", "$", "without a unit"),
    ("price < 5€", "€", "without a unit"),
    ("price < +5", "+", "no plus sign"),
    ('price < "5"', '"5"', "write 5, without quotes"),
    ("sold = 1", "1", "write true or false"),
    ("sold = yes", "yes", "write true or false"),
    ("sold is true", "true", "write: sold = …"),
    ("sold is not true", "true", "write: sold != …"),
    ("title is missing", "missing", "write: title missing"),
    ("title != null", "null", "write title exists if there must be a value"),
    ("price not < 5", "<", "write: not price …"),
    ("price in 1, 2", "1", "as in: price in (1, 2)"),
    ("price in [1, 2]", "[", "in parentheses"),
    ("price between 1, 2", ",", None),
    ("title includes oak", "includes", "did you mean 'contains'?"),
    ("title startswith oak", "startswith", "did you mean 'starts with'?"),
    ("title begins with oak", "begins", "did you mean 'starts with'?"),
    ("title endswith oak", "endswith", "did you mean 'ends with'?"),
    ("title equals oak", "equals", "did you mean '='?"),
    ('title regex "a.*"', "regex", 'title like "%oak%", or matches "oa?k"'),
    ('title ilike "a%"', "ilike", "ignoring case"),
    ('title matches "a("', '"a("', None),
    ('title within "10.0.0.1/8"', '"10.0.0.1/8"', "write 10.0.0.0/8"),
    ('title within "oak"', '"oak"', "write a network as"),
    ('title has "oak"', '"oak"', 'write: title has substring "…"'),
    ("title has oak", "oak", "for one of several values: title contains …"),
    ('title has "substring" "oak"', '"substring"', 'write: title has substring "…"'),
    ('title = oak ignoring "case"', '"case"', None),
    ('title is "null"', '"null"', "write: title = …"),
    ('title is not "scalar"', '"scalar"', "write: title != …"),
    ("title of kind text", "text", "as in: price of kind (number, null)"),
    ("title subset (a)", "(", "write: title subset of (…)"),
    ("title superset of a", "a", "as in: price superset of (1, 2)"),
    ("price = 5 ignoring case", "=", "it has: =, !="),
    ("title < a ignoring case", "ignoring", None),
    ('title like "a\\\\" ignoring case', '"a\\\\"', "a literal backslash"),
    ('title ~ "a"', "~", "like"),
    ("title wants oak", "wants", "comparators: = != <"),
    ("title = \u201coak\u201d", "\u201c", "straight quotes"),
    ("colour = dark blue", "blue", 'goes in quotes: "dark blue"'),
    ("at > 2026/01/01", "2026", "2026-01-31"),
    ("at > 01.02.2026", "01.02.2026", "2026-01-31"),
    ("at > 1700000000", "1700000000", "2026-01-31"),
    ("1 < price < 5", "<", "price > 1 and price < 5"),
    ("5 < price", "5 < price", "an attribute comes first: price > 5"),
    ("exists title", "exists", "comes after the name"),
    ("not missing title", "missing", "comes after the name"),
    ("colour = red or blue", "blue", "for one of several values"),
    ("seller exists", "seller", "such as seller.rating"),
    ("price < 5;", ";", "one expression"),
    ("price < 5 # cheap", "#", "no comments"),
    ("price: 5", ":", "write = to compare"),
    ('{"price": 5}', "{", "a condition is text"),
    (".title = a", ".title", "dots join the parts of a name"),
    ("any i in items (i.sku = A)", "i", "write: some item in items"),
    ("every i in items (i.sku = A)", "i", "write: not some item in items (not …)"),
    ("no i in items (i.sku = A)", "i", "write: not some item in items (…)"),
    ("some items (sku = A)", "items", "as in: some item in items"),
    ("items[0].sku = A", "[", "some item in items"),
    ("some i in items (i.price < list_price)", "list_price", "write @i.list_price"),
    ("some i in items (i.price < @list_price)", "i.price < @list_price", "@i.list_price"),
    ("price < @items.price", "@items.price", "(item.… = @item.…)"),
]


@pytest.mark.parametrize(("text", "marked", "hint"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_the_place_is_marked_and_the_hint_helps(text: str, marked: str, hint: str | None) -> None:
    with pytest.raises(ConditionError) as caught:
        Engine(SCHEMA).subscribe(text)
    assert caught.value.span is not None
    start, end = caught.value.span
    assert text[start:end] == marked
    if hint is None:
        assert caught.value.hint is None
    else:
        assert hint in (caught.value.hint or "")
