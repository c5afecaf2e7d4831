"""Options are declared once: what validates them, reads them from text and documents them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tamis.errors import MatcherError
from tamis.match.base import Matcher
from tamis.match.lesubscribe.naive import Naive
from tamis.match.options import Option, choice, chosen, flag, real_number, whole_number
from tamis.match.registry import create, matcher_class, matchers
from tests.running import run_script

OPTIONS = [
    pytest.param(matcher_class(name), option, id=f"{name}-{option.name}")
    for name in matchers()
    for option in matcher_class(name).options().values()
]


class Sized(Naive):
    """One option of each kind."""

    size = whole_number(3, "how large", least=2, most=9)
    share = real_number(0.5, "how much", least=0, most=1)
    deep = flag(False, "how deep")
    shape = choice("round", "which shape", "round", "square", "flat")


def test_a_matcher_has_its_options_as_attributes() -> None:
    matcher = Sized(size=4, deep=True)
    assert (matcher.size, matcher.share, matcher.deep, matcher.shape) == (4, 0.5, True, "round")
    assert matcher.given == {"size": 4, "deep": True}
    assert list(Sized.options()) == ["size", "share", "deep", "shape"]
    assert Naive.options() == {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"size": 1}, "size must be a whole number from 2 to 9, got 1"),
        ({"size": 10}, "size must be a whole number from 2 to 9, got 10"),
        ({"size": 2.0}, "size must be a whole number from 2 to 9, got 2.0"),
        ({"size": True}, "got True"),
        ({"size": "4"}, "got '4'"),
        ({"share": -0.1}, "share must be a number from 0 to 1, got -0.1"),
        ({"share": float("nan")}, "got nan"),
        ({"deep": 1}, "deep must be True or False, got 1"),
        ({"shape": "odd"}, "shape must be one of round, square, flat, got 'odd'"),
        ({"shape": None}, "got None"),
        ({"siz": 4}, "Sized has no option 'siz'; did you mean 'size'.*it takes: size, share, deep"),
    ],
)
def test_wrong_values_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(MatcherError, match=message):
        Sized(**wrong)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("size=7", 7),
        ("share=1", 1.0),
        ("deep=yes", True),
        ("deep=False", False),
        ("shape=flat", "flat"),
        *((text, None) for text in ("size=four", "size=1", "size=", "share=much", "deep=perhaps")),
    ],
)
def test_values_are_read_from_text_or_refused(text: str, value: object) -> None:
    name, _, given = text.partition("=")
    option = chosen(Sized, name)
    if value is not None:
        assert option.parse(given) == value
    else:
        with pytest.raises(MatcherError, match=f"{name} must be .*, got "):
            option.parse(given)


@pytest.mark.parametrize("name", ["clear", "clauses", "tally", "schema", "scheduler"])
def test_an_option_cannot_hide_what_a_matcher_or_an_engine_has(name: str) -> None:
    with pytest.raises(MatcherError, match=f"cannot name an option '{name}'"):
        type("Hides", (Naive,), {name: flag(True, "whether")})


def test_declarations_that_contradict_themselves() -> None:
    with pytest.raises(MatcherError, match="default 0 of an option is not a whole number from 1"):
        whole_number(0, "how many", least=1)
    with pytest.raises(MatcherError, match="default 'z' of an option is not 'a' or 'b'"):
        choice("z", "which", "a", "b")
    with pytest.raises(MatcherError, match=r"Plain.size replaces an option; declare the option"):
        type("Plain", (Sized,), {"size": 5})


@pytest.mark.parametrize(("kind", "option"), OPTIONS)
def test_a_number_that_is_too_large_is_refused(kind: type[Matcher], option: Option[Any]) -> None:
    if "whole number" in option.values:
        with pytest.raises(MatcherError, match=f"{option.name} must be a whole number"):
            kind(**{option.name: 2**64})


@pytest.mark.parametrize(("kind", "option"), OPTIONS)
def test_every_option_is_declared_well(kind: type[Matcher], option: Option[Any]) -> None:
    assert option.validate(option.default) == option.default
    assert re.fullmatch(r"[a-z].*[^.]", option.meaning), "a sentence without capital and full stop"
    with pytest.raises(MatcherError, match=f"{option.name} must be {re.escape(option.values)}"):
        option.validate(object())
    if isinstance(option.default, str | int | float):
        assert option.parse(str(option.default)) == option.default


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("hanson", {"access": "best"}, "'selective', 'first' or a function"),
        ("gough", {"order": "random"}, "one of selective, popular, schema, or a list"),
        ("gough", {"order": [1, 1]}, "list of distinct numbers"),
        ("aguilera", {"aggressive": True}, "successors=True"),
        ("counting-list", {"max_bytes": 5}, "no option 'max_bytes'"),
        ("tamis", {"threads": -1}, "threads must be a whole number from 0"),
    ],
)
def test_what_matchers_refuse(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(MatcherError, match=message):
        create(name, **options)


def test_an_order_of_attributes_is_read_from_text() -> None:
    order = chosen(matcher_class("gough"), "order")
    assert (order.parse("popular"), order.parse("5,3")) == ("popular", [5, 3])


def test_reading_the_registry_imports_no_compiler() -> None:
    code = (
        "import sys; from tamis.match.registry import entry; entry('dexin');"
        "from tamis.cli.main import tamis; tamis.main(['matchers'], standalone_mode=False);"
        "sys.exit('numba' in sys.modules)"
    )
    done = run_script(code, check=False)
    assert done.returncode == 0, done.stderr
    assert "dexin" in done.stdout
