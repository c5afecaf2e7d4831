"""Random expressions of CESQL, and random context attributes.

Left out is what the Java library does against the specification, or what the specification leaves
open: see docs/coming-from-cesql.md.
"""

from __future__ import annotations

from random import Random

Attributes = dict[str, str | int | bool]

TYPED = {"subject": "text", "word": "text", "level": "integer", "depth": "integer",
         "urgent": "boolean"}  # fmt: skip
"""Attributes beside the required ones, with the type that a typed schema gives them."""
_WORDS = ("", "a", "A", "ab", "aB", "Test", "TEST", "stra\xdfe", "true", "FALSE", "5", "+5", "007",
          "-3", "12", "99999999999", "x%y", "x_y", "x\\y", "it's", ' a "b" ', "k\u212a", "\ufb03x",
          "2147483648", "-2147483649", "-", "\xc9t\xe9")  # fmt: skip
_NUMBERS = (0, 1, 2, 5, -1, -3, 7, 12, 23, 230, 100, -100)
_PATTERNS = ("", "%", "a%", "%b", "a_", "_", "__%", "%a%", "x\\%y", "x\\_y", "x\\y", "5%", "-_",
             "2_", "%s%", "it's%", "t%", "%e", "tr_e")  # fmt: skip
_LEVELS = {"or": 0, "and": 0, "xor": 0, "=": 1, "!=": 1, "<>": 1, "<": 1, "<=": 1, ">": 1,
           ">=": 1, "+": 2, "-": 2, "*": 3, "/": 3}  # fmt: skip
_SUFFIX, _PREFIX, _ATOM = 4, 5, 6

Written = tuple[str, int]
"""An expression, and how tightly it binds."""


def random_attributes(draw: Random, typed: bool) -> Attributes:
    """The context attributes of an event."""
    found: Attributes = {"id": draw.choice(("5", "e1", "true")), "source": draw.choice("ab/"),
                         "type": draw.choice(("ab", "aB", "Test"))}  # fmt: skip
    for name, usual in TYPED.items():
        kind = usual
        if draw.random() < 0.25:
            continue
        if not typed and name != "subject" and draw.random() < 0.4:
            kind = draw.choice(("text", "integer", "boolean"))
        if kind == "text":
            found[name] = draw.choice(_WORDS)
        else:
            found[name] = draw.choice(_NUMBERS) if kind == "integer" else draw.random() < 0.5
    return found


class ExpressionMaker:
    """Makes expressions with a source of random choices."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw

    def expression(self) -> str:
        """An expression, which is mostly a Boolean."""
        return self._boolean(3)[0]

    def _boolean(self, depth: int) -> Written:
        choice = self.draw.random()
        if depth and choice < 0.4:
            return self._logic(depth)
        if choice < 0.48:
            return f"NOT {self._in(self._boolean(max(depth - 1, 0)), _PREFIX)}", _PREFIX
        if choice < 0.5:
            return self._integer(2)
        if choice < 0.56:
            return f"EXISTS {self._name()}", _PREFIX
        return self._test()

    def _logic(self, depth: int) -> Written:
        # Chains of one operator mean the same from the left and from the right.
        sign = self.draw.choice(("and", "or", "xor"))
        parts = [self._boolean(depth - 1) for _ in range(self.draw.randint(2, 3))]
        return self.draw.choice((f" {sign} ", f" {sign.upper()} ")).join(
            self._in(part, 1) for part in parts
        ), 0

    def _test(self) -> Written:
        choice = self.draw.random()
        if choice < 0.25:
            return self._compare(self._text(2), ("=", "!=", "<>"), self._quoted())
        if choice < 0.45:
            return self._compare(self._integer(2), tuple(_LEVELS)[3:10], self._number())
        if choice < 0.55:
            value = self.draw.choice(
                (self._quoted(), self._number(), (self.draw.choice(("TRUE", "false")), _ATOM))
            )
            sides = [self._raw(), value]
            self.draw.shuffle(sides)
            return self._compare(sides[0], ("=", "!="), sides[1])
        if choice < 0.7:
            left = self._in(
                self._text(1) if self.draw.random() < 0.8 else self._integer(1), _SUFFIX
            )
            return f"{left}{self._not()} LIKE {self._literal(self.draw.choice(_PATTERNS))}", _SUFFIX
        if choice < 0.85:
            items = [self._item()[0] for _ in range(self.draw.randint(1, 3))]
            return f"{self._in(self._raw(), _SUFFIX)}{self._not()} IN ({', '.join(items)})", _SUFFIX
        if choice < 0.93:
            name = self.draw.choice(("IS_INT", "IS_BOOL", "BOOL", "bool"))
            return f"{name}({self._raw()[0]})", _ATOM
        return self._compare(self._raw(), ("=", "!=", "<", ">="), self._raw())

    def _not(self) -> str:
        return " NOT" if self.draw.random() < 0.3 else ""

    def _item(self) -> Written:
        return self.draw.choice((self._quoted, self._quoted, self._number, self._raw))()

    def _compare(self, left: Written, signs: tuple[str, ...], right: Written) -> Written:
        sign = self.draw.choice(signs)
        return f"{self._in(left, 2)} {sign} {self._in(right, 2)}", 1

    def _raw(self) -> Written:
        return self._name(), _ATOM

    def _name(self) -> str:
        return self.draw.choice(("id", "source", "type", *TYPED))

    def _quoted(self) -> Written:
        return self._literal(self.draw.choice(_WORDS)), _ATOM

    def _literal(self, text: str) -> str:
        quote = self.draw.choice("'\"")
        return quote + text.replace(quote, f"\\{quote}") + quote

    def _number(self) -> Written:
        return str(self.draw.choice(_NUMBERS)), _ATOM

    def _in(self, inner: Written, level: int) -> str:
        text, binds = inner
        return f"({text})" if binds < level or self.draw.random() < 0.1 else text

    def _text(self, depth: int) -> Written:
        choice = self.draw.random()
        if not depth or choice < 0.5:
            return self._raw()
        inner = self._text(depth - 1)[0]
        name = self.draw.choice(
            (
                "LOWER",
                "UPPER",
                "TRIM",
                "LEFT",
                "RIGHT",
                "SUBSTRING",
                "CONCAT",
                "CONCAT_WS",
                "STRING",
            )
        )
        if name in ("LEFT", "RIGHT"):
            return f"{name}({inner}, {self.draw.randint(-1, 4)})", _ATOM
        if name == "SUBSTRING":
            size = f", {self.draw.randint(0, 3)}" if self.draw.random() < 0.5 else ""
            return f"SUBSTRING({inner}, {self.draw.randint(-3, 4)}{size})", _ATOM
        if name == "CONCAT":
            return f"concat({self._literal(self.draw.choice('a5'))}, {inner})", _ATOM
        if name == "CONCAT_WS":
            return f"CONCAT_WS('-', {inner}, 'b')", _ATOM
        return f"{name}({inner})", _ATOM

    def _integer(self, depth: int) -> Written:
        choice = self.draw.random()
        if not depth or choice < 0.5:
            return self._raw()
        inner = self._integer(depth - 1)
        if choice < 0.6:
            return f"LENGTH({self._text(depth - 1)[0]})", _ATOM
        if choice < 0.7:
            return f"{self.draw.choice(('ABS', 'INT'))}({inner[0]})", _ATOM
        if choice < 0.75:
            return f"- {self._in(inner, _PREFIX)}", _PREFIX
        sign = self.draw.choice("+-*/")
        level = _LEVELS[sign]
        if sign != "/" and self.draw.random() < 0.4:
            left, right = self._number(), inner
        else:
            left, right = inner, self._number()
        return f"{self._in(left, level)} {sign} {self._in(right, level + 1)}", level
