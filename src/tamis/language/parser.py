"""Tokens to conditions, by recursive descent.

    condition   = conjunction { "or" conjunction }
    conjunction = unary { "and" unary }
    unary       = "not" unary | "(" condition ")" | predicate | comparison | call | constraint
                | "some" name "in" name "(" condition ")"
    predicate   = name comparator constants [ "ignoring" "case" ] | name
                | name "is" [ "not" ] ( "null" | "scalar" )
    call        = name "(" [ argument { "," argument } ] ")"
    constraint  = sum comparator sum
    comparison  = ( name | sum ) comparator sum, where a sum has "@" name
    sum         = product { ( "+" | "-" ) product }
    product     = signed { ( "*" | "/" ) signed }
    signed      = "-" signed | variable | "@" name | constant | [ "-" ] duration | "now"
                | "(" sum ")"

A parenthesis may open a condition or a sum; only what follows tells which. Its content is parsed
once, as whichever it turns out to be: the parser never backtracks.

Limits on length and nesting are checked before any work that grows with them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from tamis.errors import ConditionError, LimitError, SchemaError
from tamis.language.hints import (
    FUNCTIONS,
    NO_FUNCTIONS,
    SOME_EXAMPLE,
    comparator_hint,
    misplaced_hint,
    phrase_hint,
)
from tamis.language.limits import DEPTH_LIMIT, TEXT_LIMIT, check_length
from tamis.language.normal_form import height
from tamis.language.simplest_form import mirrored, simplest
from tamis.language.token_reader import OPERANDS, TokenReader
from tamis.language.type_check import check
from tamis.model.condition import (
    COMPLEMENTS,
    FOLDED,
    IGNORING_CASE,
    IS_NULL,
    IS_SCALAR,
    LISTS,
    NAME,
    OF_KIND,
    REGULAR,
    SIGNS,
    STATES,
    SUBSET,
    SUBSTRING,
    SUPERSET,
    WITHIN,
    And,
    AttributeValue,
    Call,
    Comparison,
    Condition,
    Constant,
    Duration,
    Expression,
    Not,
    Now,
    Or,
    Predicate,
    Some,
    Value,
    ValueConstraint,
    Variable,
    operands,
)
from tamis.model.elements.element_names import without_variable
from tamis.model.operator import Signature
from tamis.model.printer import KEYWORDS, name_text
from tamis.model.schema import Schema
from tamis.model.times.moments import with_now

_SIMPLE = frozenset(("=", "!=", "<", "<=", ">", ">=", "like", "contains", "excludes"))
_WORDS = frozenset(("in", "between", "exists", "missing", "starts", "ends"))
_COMPARATORS = _SIMPLE | _WORDS
# Words only after a name, and not keywords: names and bare words may be these.
_PHRASES = {
    "has": (SUBSTRING, "substring"),
    "matches": (REGULAR, ""),
    "within": (WITHIN, ""),
    "subset": (SUBSET, "of"),
    "superset": (SUPERSET, "of"),
    "of": (OF_KIND, "kind"),
}
_AFTER_NOT = ("in", "between", "like", "contains", "starts", "ends")
_AFTER_A_PREDICATE = frozenset(("and", "or", ")", "end"))
_OF_ATTRIBUTES = _WORDS | {"contains", "excludes", "like", "not"}
_SOME = frozenset(("some", "Some", "SOME"))  # a word only before a name and `in`


def parse(
    text: str,
    schema: Schema | None = None,
    operators: Mapping[str, Signature] | None = None,
    *,
    limit: int | None = TEXT_LIMIT,
) -> Condition:
    """Parse a condition, and type-check it if a schema is given.

    `operators` are the operators that the condition may call, by name. A text of more than `limit`
    bytes is refused; None means no limit, for text that was accepted before.

    >>> parse("price < 5 and category <= toy")
    And(parts=(Predicate(attribute='price', comparator='<', value=5), \
Predicate(attribute='category', comparator='<=', value='toy')))
    >>> parse("mobPattern(?people) and ?people > 50").parts[0]
    Call(operator='mobPattern', arguments=(Variable(name='people'),))
    """
    if schema is not None and not isinstance(schema, Schema):
        raise SchemaError(f"expected a Schema, got {type(schema).__name__}")
    check_length(text, sys.maxsize if limit is None else limit)
    try:
        condition = _Parser(text).whole()
    except ConditionError as error:
        raise error.with_text(text) from None
    if schema is None:
        return condition
    check(condition, schema, text, operators)
    return with_now(condition, schema)


class _Parser(TokenReader):
    __slots__ = ()

    def whole(self) -> Condition:
        if self.tokens[0][0] == "end":
            raise self.error(
                "the condition is empty", hint="to match every event, write: event_type exists"
            )
        condition = self._condition()
        kind, word, *_ = self.tokens[self.at]
        if kind == ")":
            raise self.error("this closing parenthesis has no opening one")
        if kind != "end":
            raise self.error(
                f"expected 'and' or 'or' before {word!r}",
                hint=misplaced_hint(self.tokens, self.at),
            )
        return condition

    def _condition(self, first: Condition | None = None) -> Condition:
        """A disjunction; `first` is its first part, if it has been parsed already."""
        first = self._conjunction(first)
        if self.tokens[self.at][0] != "or":
            return first
        parts = [first]
        while self.tokens[self.at][0] == "or":
            self.at += 1
            parts.append(self._conjunction())
        return Or(tuple(parts))

    def _conjunction(self, first: Condition | None = None) -> Condition:
        if first is None:
            first = self._unary()
        if self.tokens[self.at][0] != "and":
            return first
        parts = [first]
        while self.tokens[self.at][0] == "and":
            self.at += 1
            parts.append(self._unary())
        return And(tuple(parts))

    def _unary(self) -> Condition:
        if self.tokens[self.at][0] == "name" and not self._begins_with_now():
            return self._predicate()
        found = self._condition_or_sum()
        if isinstance(found, Condition):
            return found
        raise self._missing_comparator()

    def _begins_with_now(self) -> bool:
        """Whether a sum begins with `now`: no name of an attribute has a sign after it."""
        return self.tokens[self.at + 1][0] in ("+", "-") and self.is_moment()

    def _missing_comparator(self) -> ConditionError:
        return self.error(
            "expected a comparator after the expression", hint="write, for example: ?people > 50"
        )

    def _condition_or_sum(self) -> Condition | Expression:
        """One part of a conjunction, or a sum without a comparator."""
        kind, word, start, _ = self.tokens[self.at]
        if kind == "name" and not self._begins_with_now():
            return self._predicate()
        if kind in OPERANDS or kind == "name":
            return self._constraint(start, self.sum())
        if kind not in ("not", "("):
            hint = f"as a name, write it in backquotes: `{word}`" if kind in KEYWORDS else None
            if kind in STATES:
                hint = f"{kind} comes after the name, as in: price {kind}"
            raise self.error("expected a predicate, such as: price < 5", hint=hint)
        self.deeper()
        inner: Condition | Expression
        if kind == "not":
            inner = Not(self._unary())
        else:
            inner = self._condition_or_sum()
            if isinstance(inner, Condition):
                inner = self._condition(inner)
            elif self.tokens[self.at][0] in ("and", "or"):
                raise self._missing_comparator()
            self.expect(")", "expected a closing parenthesis")
        self.depth -= 1
        return inner if isinstance(inner, Condition) else self._constraint(start, self.sum(inner))

    # -- predicates --------------------------------------------------------------------------------

    def _predicate(self) -> Condition:
        _, name, start, _ = self.tokens[self.at]
        self.at += 1
        kind = self.tokens[self.at][0]
        if kind == "name" and name in _SOME and self.tokens[self.at + 1][0] == "in":
            return self._some(start)
        if kind == "not":  # `x not in (…)`
            self.at += 1
            kind = self.tokens[self.at][0]
            if kind in _AFTER_NOT or self._is_phrase():
                return Not(self._comparison(name, start, kind))
            raise self.error(
                "after a name, 'not' is followed by in, between, like or contains",
                hint=f"write: not {name_text(name)} …",
            )
        return self._comparison(name, start, kind)

    def _comparison(self, name: str, start: int, kind: str) -> Condition:
        if kind == "(":
            return self._call(name, start)
        if kind in _AFTER_A_PREDICATE:  # `sold and not broken`
            return Predicate(name, "=", True, (start, self.tokens[self.at - 1][3]))
        if self.is_word("is"):
            return self._is_state(name, start)
        if self._is_phrase():
            return self._phrase(name, start)
        if kind not in _COMPARATORS:
            raise self.error(
                f"expected a comparator after {name!r}",
                hint=comparator_hint(name, self.tokens, self.at),
            )
        self.at += 1
        if kind in COMPLEMENTS and self._is_sum():
            return self._compared(start, AttributeValue(name), kind)
        value: Value = None
        if kind in _SIMPLE:
            value = self.constant()
        elif kind == "in":
            value = self.constants()
        elif kind == "between":
            low = self.constant()
            if self.tokens[self.at][0] in SIGNS:
                raise self.error(
                    "the bounds of 'between' are constants",
                    hint="write two comparisons: {0} >= … and {0} <= …".format(name_text(name)),
                )
            self.expect("and", "expected 'and' between the two bounds")
            value = low, self.constant()
        elif kind in ("starts", "ends"):
            self.expect("with", f"expected 'with' after '{kind}'")
            kind, value = f"{kind} with", self.constant()
        return self._finished(name, kind, value, start)

    def _is_phrase(self) -> bool:
        """Whether the next token begins a comparator that is not a keyword."""
        return self.is_word(*_PHRASES)

    def _phrase(self, name: str, start: int) -> Predicate:
        """A predicate whose comparator is not a keyword."""
        first = self.tokens[self.at][1]
        comparator, second = _PHRASES[first.lower()]
        self.at += 1
        if second:
            if not self.is_word(second):
                raise self.error(
                    f"expected '{second}' after '{first}'", hint=phrase_hint(name, comparator)
                )
            self.at += 1
        value = self.constants(comparator) if comparator in LISTS else self.constant()
        return self._finished(name, comparator, value, start)

    def _finished(self, name: str, comparator: str, value: Value, start: int) -> Predicate:
        """A predicate, perhaps followed by `ignoring case`."""
        if self.is_word("ignoring"):
            if comparator + IGNORING_CASE not in FOLDED:
                raise self.error(f"{comparator!r} cannot ignore case")
            self.at += 1
            if not self.is_word("case"):
                raise self.error("expected 'case' after 'ignoring'")
            self.at += 1
            comparator += IGNORING_CASE
        return Predicate(name, comparator, value, (start, self.tokens[self.at - 1][3]))

    def _is_state(self, name: str, start: int) -> Condition:
        """`x is null` and `x is not null`, as in SQL; `x is scalar` and `x is not scalar`."""
        self.at += 1
        negated = self.tokens[self.at][0] == "not"
        self.at += negated
        if not self.is_word("null", "none", "scalar"):
            word, sign = self.tokens[self.at][1], "!=" if negated else "="
            form = f"{name_text(name)} {word}" if word in STATES else f"{name_text(name)} {sign} …"
            raise self.error(
                "after 'is' or 'is not' comes 'null' or 'scalar'", hint=f"write: {form}"
            )
        comparator = IS_SCALAR if self.is_word("scalar") else IS_NULL
        self.at += 1
        found = Predicate(name, comparator, None, (start, self.tokens[self.at - 1][3]))
        return Not(found) if negated else found

    def _some(self, start: int) -> Some:
        """A condition on elements; the next token is the variable."""
        variable = self.tokens[self.at][1]
        if NAME.fullmatch(variable) is None or "." in variable:
            raise self.error("expected a name for the element", hint=SOME_EXAMPLE)
        self.at += 2
        kind, attribute, *_ = self.tokens[self.at]
        if kind != "name":
            raise self.error("expected a list of structs after 'in'", hint=SOME_EXAMPLE)
        self.at += 1
        if self.tokens[self.at][0] != "(":
            raise self.error("expected the condition on elements in parentheses", hint=SOME_EXAMPLE)
        self.deeper()
        inner = without_variable(self._condition(), variable)
        self.expect(")", "expected a closing parenthesis")
        self.depth -= 1
        return Some(variable, attribute, inner, (start, self.tokens[self.at - 1][3]))

    # -- operators ---------------------------------------------------------------------------------

    def _call(self, name: str, start: int) -> Call:
        self.at += 1
        arguments: list[Constant | Variable] = []
        if self.tokens[self.at][0] != ")":
            arguments.append(self.argument())
            while self.tokens[self.at][0] == ",":
                self.at += 1
                arguments.append(self.argument())
        if self.tokens[self.at][0] in SIGNS:
            raise self.error(
                "expected ',' or ')' after an argument",
                hint="arguments are constants and variables; use arithmetic in constraints",
            )
        self.expect(")", "expected ',' or ')' after an argument")
        if self.tokens[self.at][0] in COMPLEMENTS or self.tokens[self.at][0] in SIGNS:
            if name.lower() in FUNCTIONS:
                span = start, self.tokens[self.at - 1][3]
                raise ConditionError(f"unknown function {name!r}", span=span, hint=NO_FUNCTIONS)
            raise self.error(
                f"{name!r} is an operator: it is true or false and cannot be compared",
                hint=f"it can bind a variable: {name_text(name)}(…, ?x) and ?x > 5",
            )
        return Call(name, tuple(arguments), (start, self.tokens[self.at - 1][3]))

    def _constraint(
        self, start: int, left: Expression
    ) -> ValueConstraint | Comparison | Predicate | Expression:
        """The constraint that starts with `left`, or `left` itself without a comparator."""
        kind, word, *_ = self.tokens[self.at]
        if kind in _OF_ATTRIBUTES:
            raise self.error(
                f"variables have no comparator {word!r}", hint="they have: = != < <= > >="
            )
        if kind not in COMPLEMENTS:
            return left
        self.at += 1
        return self._compared(start, left, kind)

    def _is_sum(self) -> bool:
        """Whether the next tokens are an expression with an attribute, not a constant."""
        kind = self.tokens[self.at][0]
        if kind in ("attribute", "("):
            return True
        if kind == "end":
            return False
        value = self.at + (kind == "-")
        after = self.tokens[value + 1][0] if value + 1 < len(self.tokens) else "end"
        return self.tokens[value][0] == "attribute" or after in SIGNS

    def _compared(
        self, start: int, left: Expression, kind: str
    ) -> ValueConstraint | Comparison | Predicate:
        """The constraint or comparison whose left side and comparator were read."""
        right = self.sum()
        if self.tokens[self.at][0] in COMPLEMENTS:
            name = f"?{right.name}" if isinstance(right, Variable) else "price"
            raise self.error(
                "a comparison has two sides", hint=f"write two, as in: {name} > 1 and {name} < 5"
            )
        span = start, self.tokens[self.at - 1][3]
        found = ValueConstraint(left, kind, right, span)
        if height(found) > DEPTH_LIMIT:
            raise LimitError(f"nested deeper than {DEPTH_LIMIT} levels", span=span)
        kinds = {type(each) for each in operands(found)}
        if {Variable, AttributeValue} <= kinds:
            raise ConditionError(
                "a variable cannot be compared with an attribute",
                span=span,
                hint="an operator that reads the attribute can bind its value to a variable",
            )
        if Variable in kinds and not kinds.isdisjoint((Now, Duration)):
            raise ConditionError(
                "a variable cannot be compared with a time or a duration", span=span
            )
        if AttributeValue in kinds:
            return simplest(Comparison(left, kind, right, span))
        if Variable not in kinds:
            raise ConditionError(
                "the constraint compares constants only", span=span, hint=mirrored(found)
            )
        return found
