"""Operators are found by name: given, registered, or of an installed package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from tamis.errors import OperatorError, TamisError
from tamis.operators import Operator, Operators, operator, registry
from tests.unit.operators.core import declared
from tests.unit.operators.packages import importable, install

MODULE = """
from tamis.operators import operator

@operator(name="packed.far", reads=("n",))
def far(n):
    return n > 100

@operator(name="packed.near", reads=("n",))
def near(n):
    return n < 10

number = 3
"""
POINTS = """[tamis.operators]
packed.far = a_pack.spatial:far
packed.near = a_pack.spatial:near
packed.other = a_pack.spatial:near
packed.number = a_pack.spatial:number
packed.none = a_pack.spatial:nowhere
packed.image = a_pack.vision:image
packed.named = a_pack.vision:image [seeing,much]
packed.bare = a_pack.bare:image
packed.broken = a_pack.broken:image
packed.refused = a_pack.refused:image
packed.twice = a_pack.spatial:far
"""


@pytest.fixture
def _packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two packages with operators, as if they were installed."""
    install(tmp_path, "a-pack", POINTS, "Provides-Extra: spatial\nProvides-Extra: vision\n")
    install(tmp_path, "b-pack", "[tamis.operators]\npacked.twice = b_pack:far\n")
    modules = {
        "spatial": MODULE,
        **dict.fromkeys(("vision", "bare"), "import no_such_library.deep\n"),
        "broken": "1 / 0\n",
        "refused": "from tamis.errors import TamisError\nraise TamisError('no data')\n",
    }
    with importable(tmp_path, "a_pack", modules, monkeypatch):
        yield


def _make(name: str, least: int = 0) -> Operator:
    return operator(name=name, reads=("n",))(lambda n: n > least)


def test_given_and_registered() -> None:
    @operator(reads=("n",))
    def registered(n: int) -> bool:
        return n > 0

    given = _make("mine")
    operators = Operators(given)
    assert operators["registered"] is registered
    assert operators["mine"] is given
    assert {"registered", "mine"} <= set(operators)
    assert len(operators) == len(list(operators))
    assert "registered" in operators
    assert "unknown" not in operators
    assert operators.get("unknown") is None
    with pytest.raises(KeyError):
        operators["unknown"]


def test_what_is_registered_later_is_found_too_and_may_be_run_again() -> None:
    operators = Operators()
    assert "again" not in operators
    first = _make("again", 1)
    assert operators["again"] is first
    assert operators.signatures["again"] is first.signature
    second = _make("again", 2)
    assert Operators()["again"] is second
    assert Operators(first)["again"] is first


def test_signatures() -> None:
    operators = Operators(_make("mine"))
    signatures = operators.signatures
    assert signatures["mine"] == operators["mine"].signature
    assert "unknown" not in signatures
    assert signatures.get("unknown") is None
    assert set(signatures) == set(operators)
    assert len(signatures) == len(operators)


def test_only_operators_can_be_given() -> None:
    with pytest.raises(OperatorError, match=r"is not an operator; @tamis\.operator makes one"):
        Operators(len)  # type: ignore[arg-type]
    with pytest.raises(OperatorError, match="two operators named 'mine'"):
        Operators(_make("mine"), _make("mine"))
    one = _make("mine")
    assert Operators(one, one)["mine"] is one


def test_operators_as_they_come() -> None:
    one, two = _make("one"), _make("two")
    assert Operators.of(one)["one"] is one
    for several in ([one, two], (each for each in (one, two)), {"one": one, "two": two}):
        found = Operators.of(several)
        assert (found["one"], found["two"]) == (one, two)
    assert Operators.of(())
    made = Operators(one)
    assert Operators.of(made) is made


@pytest.mark.parametrize(
    "given", [None, 3, "one", len, [[]], [None], {"other": 3}, {"uno": declared.sizes}]
)
def test_what_are_not_operators(given: Any) -> None:
    with pytest.raises(OperatorError, match=r"operators? (is|are|,)|not an operator|'uno' stands"):
        Operators.of(given)


def test_two_functions_of_one_name() -> None:
    @operator(name="shared", reads=("n",))
    def one(n: int) -> bool:
        return n > 1

    @operator(name="shared", reads=("n",))
    def two(n: int) -> bool:
        return n > 2

    assert "shared" in Operators()
    with pytest.raises(OperatorError, match=r"several operators named 'shared': .*one, .*two"):
        Operators()["shared"]
    assert Operators(two)["shared"] is two


@pytest.mark.usefixtures("_packages")
def test_installed_operators_are_listed_without_importing_them() -> None:
    operators = Operators()
    assert {"packed.far", "packed.near", "packed.image"} <= set(operators)
    assert "packed.far" in operators
    assert "packed.far" in operators.signatures
    assert not [name for name in sys.modules if name.startswith("a_pack")]
    far = operators["packed.far"]
    assert isinstance(far, Operator)
    assert far(101)
    assert operators["packed.far"] is far
    assert operators.signatures["packed.near"].reads == ("n",)


@pytest.mark.usefixtures("_packages")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "packed.image",
            (
                "operator 'packed.image' needs no_such_library, which is not installed; "
                "pip install 'a-pack[vision]' brings it"
            ),
        ),
        ("packed.named", "pip install 'a-pack[seeing,much]' brings it"),
        ("packed.bare", "operator 'packed.bare' needs no_such_library, which is not installed"),
        ("packed.broken", "cannot be loaded from a_pack.broken:image: ZeroDivisionError"),
        ("packed.none", "cannot be loaded from a_pack.spatial:nowhere: AttributeError"),
        ("packed.number", "a_pack.spatial:number (a-pack) is not an operator, but 3"),
        ("packed.other", "leads to an operator named 'packed.near'"),
        ("packed.twice", "several packages have an operator named 'packed.twice'"),
    ],
)
def test_installed_operators_that_cannot_be_loaded(name: str, why: str) -> None:
    operators = Operators()
    for _ in range(2):
        with pytest.raises(OperatorError) as caught:
            operators.signatures[name]
        assert why in str(caught.value)
        assert name != "packed.bare" or "pip" not in str(caught.value)
    assert operators["packed.near"](3)


@pytest.mark.usefixtures("_packages")
def test_an_installed_name_can_be_taken_over() -> None:
    mine = _make("packed.near")
    assert Operators()["packed.near"] is mine
    Operators()["packed.far"]  # imports the pack, and with it the other one
    assert Operators()["packed.near"] is mine
    assert len(registry._REGISTERED["packed.near"]) == 2
    with pytest.raises(TamisError, match="no data"):  # the pack speaks for itself
        Operators()["packed.refused"]


def test_what_tamis_itself_offers_is_there() -> None:
    assert {point.name for point in entry_points(group="tamis.operators")} <= set(Operators())
