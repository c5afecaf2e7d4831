"""Operators over texts: words of any language, and patterns that cannot run away."""

from __future__ import annotations

import re
import time
import unicodedata
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tamis.errors import TamisError
from tamis.model.operator import Fault
from tamis.model.regular_expressions import LARGEST
from tamis.operators.packs import text_words
from tamis.operators.packs.text import (
    TextError,
    hasKeyword,
    hasPhrase,
    matchesPattern,
    pack,
    patternGroups,
    wordCount,
)
from tamis.operators.packs.text_words import WordCache, Words, folded
from tamis.operators.registry import Operators
from tamis.operators.runner import Runner
from tests.running import run_script

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
LATIN = st.text("ab cB'.,1é-", max_size=30)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        (" \n\t…!? ___ ''", ()),
        ("The end.", ("the", "end")),
        ("Don't, don’t; 'quoted' rock'n'roll", ("don't", "don't", "quoted", "rock'n'roll")),
        ("1,000.50 3. .5 a.b v2.0", ("1,000.50", "3", "5", "a", "b", "v2.0")),
        ("end.Next e.g. example.com", ("end", "next", "e", "g", "example", "com")),
        ("well-known snake_case #tag @you C++", ("well", "known", "snake_case", "tag", "you", "c")),
        (
            "Straße STRASSE ﬁre \uff26\uff55\uff4c\uff4c Ⅷ",
            ("strasse", "strasse", "fire", "full", "viii"),
        ),
        ("\U0001d400\u210c \u33c0", ("ah", "kω")),  # capitals only when written plainly
        ("e\u0301te\u0301 \u00e9t\u00e9", ("\u00e9t\u00e9",) * 2),
        ("soft\u00adhyphen e\u00ad\u0301", ("softhyphen", "\u00e9")),
        ("left\u200bright", ("left", "right")),
        ("\u00b4abc x", ("abc", "x")),
        ("हिन्दी में लिखा है।", ("हिन्दी", "में", "लिखा", "है")),
        (
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            ("\u0645\u06cc\u062e\u0648\u0627\u0647\u0645",),
        ),
        ("한국어 단어", ("한국어", "단어")),
        ("我在东京tokyo", ("我", "在", "东", "京", "tokyo")),
        ("東京タワーです", ("東", "京", "タワー", "で", "す")),
        ("ที่นี่abc", ("ที่", "นี่", "abc")),
        ("葛\U000e0100城", ("葛", "城")),
        ("🔥fire🔥", ("fire",)),
        ("Ünïcödé ΣΊΣΥΦΟΣ", ("ünïcödé", "σίσυφοσ")),
    ],
)
def test_words(text: str, words: tuple[str, ...]) -> None:
    assert Words(text).listed == words


@given(TEXT)
@example("e\u00ad\u0301")
@example("\u0345")
@example("\u017f\u0323\u0307 K")
def test_words_of_words_are_the_same(text: str) -> None:
    words = Words(text).listed
    assert Words(" ".join(words)).listed == words
    assert all(any(map(str.isalnum, word)) for word in words)


@given(TEXT)
def test_forms_of_a_text_have_the_same_words(text: str) -> None:
    words = Words(text).listed
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert Words(unicodedata.normalize(form, text)).listed == words
    assert folded(folded(text)) == folded(text)


@given(LATIN)
def test_plain_words_are_those_of_a_plain_pattern(text: str) -> None:
    spaced = re.sub(r"['.,]", " ", text)
    assert Words(spaced).listed == tuple(re.findall(r"[^\W_]+", spaced.lower()))


KEYWORDS = [
    ("fire", "FIRE!", True),
    ("fire", "firing, wildfire, fires", False),
    ("FIRE", "a fire", True),
    ("strasse", "Hauptstraße 5, Straße", True),
    ("don't", "I don’t", True),
    ("well-known", "it is Well-Known", True),
    ("well-known", "known well", False),
    ("东京", "我在东京", True),
    ("京东", "我在东京", False),
    ("cafe\u0301", "CAFÉ", True),
    ("cafe", "café", False),
    ("İstanbul", "i\u0307stanbul", True),
    ("3.14", "pi is 3.14, or so", True),
    ("14", "pi is 3.14", False),
    ("#fire", "no smoke without fire", True),
]
PHRASES = [
    ("traffic jam", "A Traffic  Jam.", True),
    ("traffic jam", "traffic and jam", False),
    ("jam traffic", "traffic jam", False),
    ("hello world", "hello, world", True),
    ("a a b", "a a a b", True),
    ("b a a", "a a b a", False),
    ("end", "the end", True),
    ("the end of", "the end", False),
]


@pytest.mark.parametrize(
    ("operator", "words", "text", "expected"),
    [*((hasKeyword, *case) for case in KEYWORDS), *((hasPhrase, *case) for case in PHRASES)],
)
def test_keywords_and_phrases(operator: Any, words: str, text: str, expected: bool) -> None:
    assert operator([text], words) == [expected]


@given(st.lists(st.sampled_from("ab"), max_size=8), st.lists(st.sampled_from("ab"), min_size=1))
def test_a_phrase_is_a_run_of_words(text: list[str], run: list[str]) -> None:
    expected = any(text[at : at + len(run)] == run for at in range(len(text)))
    assert hasPhrase([" ".join(text)], " ".join(run)) == [expected]


@given(TEXT)
def test_every_word_of_a_text_is_a_keyword(text: str) -> None:
    for word in Words(text).listed:
        assert hasKeyword([text], word) == [True]


def test_patterns() -> None:
    texts = ["flight AB12 and flight CD3", "Flight AB", "", "zürich 🔥"]
    assert matchesPattern(texts, r"flight [A-Z]+\d") == [True, False, False, False]
    assert matchesPattern(texts, r"(?i)^FLIGHT") == [True, True, False, False]
    assert matchesPattern(texts, "") == [True] * 4
    assert matchesPattern(texts, r"\p{So}") == [False, False, False, True]
    assert patternGroups(texts, r"flight ([A-Z]+)(\d)") == [["AB", "CD"], [], [], []]
    assert patternGroups(texts, r"(ü.)|zzz") == [[], [], [], ["ür"]]
    assert patternGroups(["b1 a1 b1"], r"([ab])1") == [["b", "a"]]  # each once
    assert patternGroups(["ab"], r"a|(b)") == [["b"]]  # a group that took no part
    assert patternGroups(["aé"], r"(x*)") == [[""]]


@given(st.text("ab1 é", max_size=12), st.sampled_from(["(a+)", "([ab])1", "(é?)b", "a(.)", "(b|)"]))
def test_groups_are_those_of_python(text: str, pattern: str) -> None:
    expected = {match.group(1) for match in re.finditer(pattern, text)}
    (found,) = patternGroups([text], pattern)
    assert set(found) == expected
    assert matchesPattern([text], pattern) == [bool(re.search(pattern, text))]


def test_time_does_not_explode() -> None:
    assert matchesPattern(["a" * 50_000], r"(?:a+)+b") == [False]
    assert matchesPattern(["a" * 5_000 + "!"], r"^(?:a|a)*$") == [False]


OPERATORS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "hasKeyword": (hasKeyword, ("ab",)),
    "hasPhrase": (hasPhrase, ("a b",)),
    "wordCount": (wordCount, ()),
    "matchesPattern": (matchesPattern, ("a+b",)),
    "patternGroups": (patternGroups, ("(a+)b?",)),
}


@pytest.mark.parametrize("which", OPERATORS)
@settings(max_examples=50)
@given(given=st.lists(LATIN | TEXT | st.sampled_from([7, None, b"ab"]), max_size=6))
def test_a_batch_is_the_same_as_one_by_one(which: str, given: list[Any]) -> None:
    operator, arguments = OPERATORS[which]
    one_by_one = [operator([each], *arguments)[0] for each in given]
    batch = operator(given, *arguments)
    assert list(map(repr, batch)) == list(map(repr, one_by_one))


@pytest.mark.parametrize(
    ("operator", "arguments", "said"),
    [
        (hasKeyword, ("traffic jam",), "has several words; use hasPhrase"),
        (hasKeyword, ("",), "'' contains no word"),
        (hasKeyword, ("!?",), "'!?' contains no word; use matchesPattern"),
        (hasPhrase, ("...",), "contains no word"),
        (matchesPattern, ("(",), "missing )"),
        (matchesPattern, (r"(a)\1",), "no backreferences"),
        (matchesPattern, ("a(?=b)",), "look-around"),
        (matchesPattern, ("(?:.{0,100}){0,9}z",), f"at most {LARGEST}"),
        (matchesPattern, ("a{5000}",), "repetition size"),
        (matchesPattern, ("x" * 50_000,), "is too large"),
        (patternGroups, ("abc",), "has no group; put (…) around the part that you want"),
        (patternGroups, ("(",), "missing )"),
    ],
)
def test_mistakes_of_subscribers(operator: Any, arguments: tuple[str, ...], said: str) -> None:
    free = [None for each in operator.signature.parameters if each.free]
    refusal = operator.check([*arguments, *free])
    assert said in refusal
    assert len(refusal) < 300
    with pytest.raises(TextError) as refused:
        operator(["a text"], *arguments)
    assert str(refused.value) == refusal
    assert isinstance(refused.value, TamisError)
    assert isinstance(refused.value, ValueError)


def test_right_constants_pass_and_wrong_ones_are_quiet(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert hasKeyword.check(["fire"]) is None
    assert hasPhrase.check(["traffic jam"]) is None
    assert matchesPattern.check(["a|b"]) is None
    assert patternGroups.check(["(a)", None]) is None
    assert patternGroups.check(["(a)", "a"]) is None
    assert wordCount.check([None]) is None
    assert matchesPattern.check(["("]) is not None
    assert capfd.readouterr() == ("", "")


def test_other_values_than_text_leave_the_rest_of_the_batch_alone() -> None:
    for operator in (hasKeyword, matchesPattern):
        given = Runner().call(operator, [("fire",), (7,), ("\ud800",), ("ice",)], ["fire"])
        assert given[0] == ((),)
        assert isinstance(given[1], Fault)
        assert "expected text, got 7" in given[1].reason
        assert given[3] == ()
    assert isinstance(given[2], Fault)
    assert "lone surrogate" in given[2].reason


def test_rows_of_what_is_given() -> None:
    assert Runner().call(wordCount, [("",), ("one two",)], [None]) == [((0,),), ((2,),)]
    groups = Runner().call(patternGroups, [("a1 b2 a1",), ("",)], [r"([ab])\d", None])
    assert groups == [(("a",), ("b",)), ()]


def test_words_are_found_once_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    class Counted(Words):
        def __init__(self, text: str) -> None:
            found.append(text)
            super().__init__(text)

    monkeypatch.setattr(text_words, "Words", Counted)
    text = "a text that no other test has asked about"
    for n in range(1000):
        hasKeyword([text], f"word{n}")
        hasPhrase([text, text], f"no word{n}")
    wordCount([text])
    assert found == [text]


def test_memory_is_bounded() -> None:
    memory = WordCache(characters=10)
    for text in ("one two", "three", "four", "one two", "far more than there is room for", "six"):
        assert memory(text).listed == Words(text).listed
        assert len(memory) <= 3
    assert memory("six") is memory("six")


def test_packs_side_by_side() -> None:
    packed = {each.name: each for each in pack(attribute="mail.body", prefix="body_")}
    assert list(packed) == [f"body_{each.name}" for each in pack()]
    keyword = packed["body_hasKeyword"]
    assert keyword.signature.reads == ("mail.body",)
    assert keyword(mail_body=["a fire"], word="fire") == [True]
    assert Runner().call(keyword, [("a fire",)], ["fire"]) == [((),)]
    assert hasKeyword.signature.reads == ("text",)


def test_known_by_name_and_called() -> None:
    operators = Operators(*pack(attribute="body", prefix="body_"))
    with Runner() as runner:
        for name in ("matchesPattern", "body_matchesPattern"):
            found = runner.call(operators[name], [("a fire",), ("ice",)], ["fi?re"])
            assert found == [((),), ()]
        assert runner.report().faults == 0


def test_the_interpreter_ends_though_a_pattern_is_still_looked_for() -> None:
    # A thread that comes back from RE2 to an interpreter that is gone takes the process down.
    script = """
        from tamis.operators import Runner
        from tamis.operators.packs.text import pack

        groups = pack(prefix="slow_")[3]
        groups.timeout = 0.05
        text = "flight ab " * 3_000_000
        (fault,) = Runner().call(groups, [(text,)], ("flight ([a-z]+)", None))
        print(fault.kind)
    """
    ended = run_script(script, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "timeout\n", "")


def test_a_pattern_that_nobody_waits_for_is_given_up() -> None:
    groups = pack(prefix="slow_")[3]
    groups.timeout = 0.05
    with Runner(left=1) as runner:
        (fault,) = runner.call(groups, [("flight ab " * 1_000_000,)], ("flight ([a-z]+)", None))
        assert isinstance(fault, Fault)
        assert fault.kind == "timeout"
        # To find all of them would take about ten seconds.
        for _ in range(200):
            if runner.report()[groups.name].set_aside_for is None:
                break
            time.sleep(0.01)
        assert runner.call(groups, [("flight cd",)], ("flight ([a-z]+)", None)) == [(("cd",),)]
