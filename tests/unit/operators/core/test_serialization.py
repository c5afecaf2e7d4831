"""Operators travel: by name where they can be imported, else by value; or it is said why not."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from tamis.errors import OperatorError
from tamis.operators import Operators, operator
from tamis.operators.operator import Operator
from tamis.operators.packs import reasoning, spatial, text
from tamis.operators.packs.pack_operator import BatchOperator
from tamis.operators.packs.spatial_places import Places
from tamis.operators.registry import installed
from tests.running import run_script

WAYS = [pickle, cloudpickle]
NAMES = sorted(name for name, (point, *_) in installed().items() if "tamis.oper" in point.module)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_operators_of_the_packs_go_by_name(name: str, way: Any) -> None:
    assert len(NAMES) == 23
    made = Operators()[name]
    sent = way.dumps(made)
    assert len(sent) < 100
    assert pickle.loads(sent) is made


def test_they_are_found_in_a_process_that_has_not_imported_them(tmp_path: Path) -> None:
    (tmp_path / "all").write_bytes(pickle.dumps([Operators()[name] for name in NAMES]))
    script = f"""
        import pickle
        with open({str(tmp_path / "all")!r}, "rb") as file:
            print(*[each.name for each in pickle.load(file)])
    """
    assert run_script(script).stdout.split() == NAMES


DEPOTS = Places({"North": {"type": "Point", "coordinates": [-73.9, 40.9]}})
PACKS: list[tuple[Operator, ...]] = [
    spatial.pack(DEPOTS, attribute="van.position", prefix="depot_"),
    spatial.pack(prefix="other_"),
    text.pack(attribute="body", prefix="body_"),
    reasoning.pack(attribute="seen.what", prefix="city_"),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "made", [each for pack in PACKS for each in pack], ids=lambda one: one.name
)
def test_operators_of_packs_of_your_own(made: Operator, way: Any) -> None:
    again = pickle.loads(way.dumps(made))
    assert type(again) is type(made)
    for name in ("signature", "cost", "timeout", "run", "batch", "read_as", "kinds"):
        assert getattr(again, name) == getattr(made, name)


@pytest.mark.parametrize("way", WAYS)
def test_they_answer_alike(way: Any) -> None:
    within, far = pickle.loads(way.dumps(PACKS[0][1:3]))
    positions = [{"lat": 40.9, "lon": -73.9}, {"lat": 40.0, "lon": -73.9}]
    assert within(positions, "North", 10.0) == [True, False]
    assert far(positions, "North")[0] == 0
    assert within.check(("Nroth", 10.0)) is not None
    assert within.check(("North", 10.0)) is None
    has, *_ = pickle.loads(way.dumps(PACKS[2]))
    assert has(body=["a fire", "ice"], word="fire") == [True, False]


@pytest.mark.parametrize("way", WAYS)
def test_what_a_pack_shares_is_sent_once(way: Any) -> None:
    one, all_of_them = way.dumps(PACKS[0][:1]), way.dumps(PACKS[0])
    assert len(all_of_them) < 1.5 * len(one)
    again = pickle.loads(all_of_them)
    assert all(isinstance(each, BatchOperator) for each in again)
    assert Operators(*again)["depot_locIn"] is again[0]


def test_what_was_changed_since_stays_changed() -> None:
    made = text.pack(prefix="slow_")[3]
    made.timeout = 20.0
    assert pickle.loads(pickle.dumps(made)).timeout == 20.0


@pytest.mark.parametrize("way", WAYS)
def test_functions_that_cannot_be_imported_go_by_value(way: Any) -> None:
    bound = 3

    @operator(reads=("n",), gives={"x": "number"})
    def above(n: int) -> Any:
        return above is not None and n > bound

    again = pickle.loads(way.dumps(above))
    assert again is not above
    assert again.signature == above.signature
    assert (again(4), again(2)) == (True, False)
    assert again.kinds == ("number",)
    known = pickle.loads(way.dumps(Operators(above)))
    assert known["above"](4)
    assert not known["above"](2)


def test_functions_of_a_script() -> None:
    script = """
        import pickle
        from tamis.operators import operator

        LEAST = 3

        @operator(reads=("n",))
        def deep(n):
            return n <= LEAST or deep(n - 1)

        sent = pickle.dumps([deep, deep])
        one, two = pickle.loads(sent)
        print(one is two, one(5))
    """
    assert run_script(script).stdout == "True True\n"


@pytest.mark.parametrize("way", WAYS)
def test_functions_that_cannot_travel(way: Any) -> None:
    lock = threading.Lock()

    @operator(reads=("n",))
    def locked(n: int) -> bool:
        with lock:
            return True

    with pytest.raises(OperatorError) as caught:
        way.dumps(locked)
    assert str(caught.value) == (
        "operator 'locked' cannot be pickled: TypeError: cannot pickle '_thread.lock' object; "
        "move it to the top level of a module to have it pickled by name"
    )
    with pytest.raises(OperatorError, match="'locked' cannot be pickled"):
        way.dumps(Operators(locked))


def test_like_a_function_it_is_its_own_copy() -> None:
    made = operator(name="copied", reads=("n",))(lambda n: n > os.getpid())
    assert copy.copy(made) is made
    assert copy.deepcopy([made]) == [made]
