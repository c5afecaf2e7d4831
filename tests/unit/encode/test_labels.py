"""Labels: order kept, codes followed, memory given back, whatever the order of arrival."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tamis.encode.intervals import TEXT_BOTTOM, TEXT_TOP, after, before
from tamis.encode.labels import HIGHEST, LOWEST, Labels, Moved

texts = st.one_of(
    st.text(alphabet="ab\0\U0010ffff", max_size=3),
    st.integers(0, 300).map(lambda number: f"{number:03}"),
)


def ends(labels: Labels, text: str) -> tuple[int, int, int, int]:
    """All four codes that an interval may end with at a text."""
    low, high = before(text), after(text)
    return labels.lower(low), labels.lower(high), labels.upper(low), labels.upper(high)


def follow(moved: Moved | None, codes: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    if moved is None:
        return codes
    low = moved.follow_lower(np.array(codes[:2], np.int64)).tolist()
    high = moved.follow_upper(np.array(codes[2:], np.int64)).tolist()
    return (low[0], low[1], high[0], high[1])


def check_followed(labels: Labels, known: dict[str, tuple[int, int, int, int]]) -> None:
    for text, codes in known.items():
        expected = list(ends(labels, text))
        if text == "":  # the cut below every text is unbounded, and before("") is that cut
            expected[0] = codes[0]
        assert list(codes) == expected, text


class LabelsMachine(RuleBasedStateMachine):
    """Labels beside a plain counter, with every handed-out code following every move."""

    def __init__(self) -> None:
        super().__init__()
        self.labels = Labels()
        self.uses: Counter[str] = Counter()
        self.codes: dict[str, tuple[int, int, int, int]] = {}

    def added(self, new: Counter[str], moved: Moved | None) -> None:
        followed = {text: follow(moved, codes) for text, codes in self.codes.items()}
        check_followed(self.labels, followed)
        self.uses += new
        self.codes = {text: ends(self.labels, text) for text in self.uses}

    @rule(new=st.lists(texts, max_size=6))
    def add(self, new: list[str]) -> None:
        self.added(Counter(new), self.labels.add(Counter(new)))

    @rule(new=st.dictionaries(texts, st.integers(1, 3), max_size=6))
    def add_counted(self, new: dict[str, int]) -> None:
        self.added(Counter(new), self.labels.add(new))

    @rule(start=st.integers(0, 5))
    def add_many(self, start: int) -> None:
        many = [f"m{number:04}" for number in range(start * 40, start * 40 + 80)]
        self.added(Counter(many), self.labels.add(Counter(many)))

    @rule(stem=texts, count=st.integers(1, 50))
    def add_each_just_below_the_last(self, stem: str, count: int) -> None:
        for number in range(count):
            text = stem + chr(1000 - number)
            self.added(Counter([text]), self.labels.add(Counter([text])))

    @precondition(lambda self: self.uses)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        every = sorted(self.uses)
        gone = data.draw(st.lists(st.sampled_from(every), unique=True, max_size=len(every)))
        before_ = dict(self.codes)
        self.labels.drop(gone)
        self.uses -= Counter(gone)
        self.codes = {text: ends(self.labels, text) for text in self.uses}
        assert all(before_[text] == codes for text, codes in self.codes.items()), "none moved"

    @rule(values=st.lists(texts, max_size=8))
    def codes_keep_the_order(self, values: list[str]) -> None:
        constants = sorted(self.uses)
        every = sorted({*values, *constants})
        codes = self.labels.codes(every)
        for (left, low), (right, high) in pairwise(zip(every, codes, strict=True)):
            assert low <= high
            if left in self.uses or right in self.uses:
                assert low < high, "a constant is apart from all other texts"
        for text, code in zip(every, codes, strict=True):
            for constant in constants:
                lower, above, below, upper = ends(self.labels, constant)
                assert (text >= constant) == (code >= lower)
                assert (text > constant) == (code >= above)
                assert (text <= constant) == (code <= upper)
                if constant:
                    assert (text < constant) == (code <= below)

    @invariant()
    def is_sound(self) -> None:
        self.labels.check()
        assert len(self.labels) <= 2 * len(self.uses), "what nobody uses is forgotten in time"

    @invariant()
    def ends_lead_back_to_their_texts(self) -> None:
        for text in self.uses:
            if text:
                lower, above, below, upper = self.codes[text]
                assert self.labels.lower_text(lower) == self.labels.lower_text(above) == text
                assert self.labels.upper_text(below) == self.labels.upper_text(upper) == text


TestLabels = LabelsMachine.TestCase
TestLabels.settings = settings(max_examples=30, stateful_step_count=20)

ORDERS = {
    "ascending": [f"{n:05}" for n in range(500)],
    "descending": [f"{n:05}" for n in reversed(range(500))],
    "just below the previous": [f"x{n:05}" for n in reversed(range(500))],
    "always between the last two": [
        f"a{n:05}" if n % 2 == 0 else f"b{99999 - n:05}" for n in range(600)
    ],
    "prefixes": ["a" * n for n in range(1, 300)],
    "suffixes going down": ["b" * (300 - n) for n in range(1, 300)],
    "each just above the first": ["a", *("a" + "\0" * (300 - n) for n in range(299))],
}


@pytest.mark.parametrize("order", ORDERS)
def test_no_order_of_arrival_breaks_order_or_loses_a_code(order: str) -> None:
    labels = Labels()
    known: dict[str, tuple[int, int, int, int]] = {}
    for number, text in enumerate(ORDERS[order]):
        moved = labels.add(Counter([text]))
        if moved is not None:
            assert (np.diff(moved.old) > 0).all()
            assert (np.diff(moved.new) > 0).all()
            known = {other: follow(moved, codes) for other, codes in known.items()}
        known[text] = ends(labels, text)
        if number % 100 == 0:
            check_followed(labels, known)
    labels.check()
    check_followed(labels, known)


def test_bisecting_between_two_neighbours_forces_a_spread() -> None:
    labels = Labels()
    labels.add(Counter(["a", "b"]))
    known = {text: ends(labels, text) for text in ("a", "b")}
    moves = 0
    for number in range(200):
        # In turns below and above all that is left: the gap halves every time.
        text = "a" + "m" * (number // 2) + "az"[number % 2]
        moved = labels.add(Counter([text]))
        moves += moved is not None
        known = {other: follow(moved, codes) for other, codes in known.items()}
        known[text] = ends(labels, text)
    assert moves > 0
    check_followed(labels, known)


def test_constants_that_arrive_in_order_hardly_ever_move_others() -> None:
    for order in ([f"m{n:06}" for n in range(5000)], [f"m{n:06}" for n in range(5000, 0, -1)]):
        labels = Labels()
        labels.add(Counter(["a", "z"]))
        assert sum(labels.add(Counter([text])) is not None for text in order) < 50


def test_many_new_constants_find_room_between_the_old_ones() -> None:
    labels = Labels()
    old = [f"{n:05}" for n in range(0, 5000, 10)]
    labels.add(Counter(old))
    codes = labels.codes(old)
    assert labels.add(Counter([f"{n:05}" for n in range(5000) if n % 10])) is None
    assert labels.codes(old) == codes
    labels.check()


def test_unbounded_ends_never_move_and_codes_without_constants_are_alike() -> None:
    moved = Moved(np.array([LOWEST + 2, 0, HIGHEST - 2]), np.array([-5, 1, 5]))
    outer = np.array([LOWEST, HIGHEST], np.int64)
    assert moved.follow_lower(outer).tolist() == outer.tolist()
    assert moved.follow_upper(outer).tolist() == outer.tolist()
    labels = Labels()
    assert len(set(labels.codes(["", "a", "\U0010ffff"]))) == 1
    assert labels.lower(TEXT_BOTTOM) == LOWEST
    assert labels.upper(TEXT_TOP) == HIGHEST


def test_the_version_grows_with_a_new_constant_and_only_then() -> None:
    labels = Labels()
    labels.add(Counter(["a"]))
    first = labels.version
    labels.add(Counter(["a"]))
    labels.drop(["a"])
    assert labels.version == first
    labels.add(Counter(["b"]))
    assert labels.version > first


def test_other_threads_see_right_codes_while_constants_go() -> None:
    """`Engine.encode` takes no lock. When a constant is hashed, another thread may run."""
    seen: list[int] = []

    class Watched(str):
        __slots__ = ()

        def __hash__(self) -> int:
            if labels.known:
                seen.append(labels.code("k7x"))
            return str.__hash__(self)

    labels = Labels()
    labels.add({Watched(f"k{number}"): 1 for number in range(9)})
    low, high = labels.known["k7"], labels.known["k8"]
    seen.clear()
    labels.drop([f"k{number}" for number in range(6)])
    assert len(labels) == 3
    assert seen
    assert all(low < code < high for code in seen)
    labels.check()
