"""Tokens to conditions, by recursive descent.

    condition   = conjunction { "or" conjunction }
    conjunction = unary { "and" unary }
    unary       = "not" unary | "(" condition ")" | predicate | comparison | call | constraint
                | "some" name "in" name "(" condition ")"
    predicate   = name comparator constants | name "is" [ "not" ] "null" | name
    call        = name "(" [ argument { "," argument } ] ")"
    constraint  = sum comparator sum
    comparison  = ( name | sum ) comparator sum, where a sum has "@" name
    sum         = product { ( "+" | "-" ) product }
    product     = signed { ( "*" | "/" ) signed }
    signed      = "-" signed | variable | "@" name | constant | "(" sum ")"

A parenthesis may open a condition or a sum; only what follows tells which. Its content is parsed
once, as whichever it turns out to be: the parser never backtracks.

Limits on length and nesting are checked before any work that grows with them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from math import isfinite

from tamis.errors import ConditionError, LimitError, SchemaError
from tamis.language.hints import (
    FUNCTIONS,
    NO_FUNCTIONS,
    SOME_EXAMPLE,
    comparator_hint,
    misplaced_hint,
)
from tamis.language.limits import DEPTH_LIMIT, TEXT_LIMIT, check_length
from tamis.language.normal_form import height
from tamis.language.token_reader import OPERANDS, TokenReader
from tamis.language.type_check import check
from tamis.model.condition import (
    COMPLEMENTS,
    COMPUTE,
    IS_NULL,
    NAME,
    SIGNS,
    STATES,
    And,
    Arithmetic,
    AttributeValue,
    Call,
    Comparison,
    Condition,
    Constant,
    Expression,
    Not,
    Or,
    Predicate,
    Some,
    Value,
    ValueConstraint,
    Variable,
    Word,
    operands,
)
from tamis.model.elements.element_names import without_variable
from tamis.model.operator import Signature
from tamis.model.printer import KEYWORDS, constant_text, name_text
from tamis.model.schema import Schema

_SIMPLE = frozenset(("=", "!=", "<", "<=", ">", ">=", "like", "contains", "excludes"))
_WORDS = frozenset(("in", "between", "exists", "missing", "starts", "ends"))
_COMPARATORS = _SIMPLE | _WORDS
_AFTER_A_PREDICATE = frozenset(("and", "or", ")", "end"))
_OF_ATTRIBUTES = _WORDS | {"contains", "excludes", "like", "not"}
_SOME = frozenset(("some", "Some", "SOME"))  # a word only before a name and `in`
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


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
    if schema is not None:
        check(condition, schema, text, operators)
    return condition


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
        if self.tokens[self.at][0] == "name":
            return self._predicate()
        found = self._condition_or_sum()
        if isinstance(found, Condition):
            return found
        raise self._missing_comparator()

    def _missing_comparator(self) -> ConditionError:
        return self.error(
            "expected a comparator after the expression", hint="write, for example: ?people > 50"
        )

    def _condition_or_sum(self) -> Condition | Expression:
        """One part of a conjunction, or a sum without a comparator."""
        kind, word, start, _ = self.tokens[self.at]
        if kind == "name":
            return self._predicate()
        if kind in OPERANDS:
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
            if kind in ("in", "between", "like", "contains", "starts", "ends"):
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
        if kind == "name" and self.tokens[self.at][1].lower() == "is":
            return self._is_null(name, start)
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
            self.expect("and", "expected 'and' between the two bounds")
            value = low, self.constant()
        elif kind in ("starts", "ends"):
            self.expect("with", f"expected 'with' after '{kind}'")
            kind, value = f"{kind} with", self.constant()
        return Predicate(name, kind, value, (start, self.tokens[self.at - 1][3]))

    def _is_null(self, name: str, start: int) -> Condition:
        """`x is null` and `x is not null`, as in SQL."""
        self.at += 1
        negated = self.tokens[self.at][0] == "not"
        self.at += negated
        if self.tokens[self.at][1].lower() not in ("null", "none"):
            word, sign = self.tokens[self.at][1], "!=" if negated else "="
            form = f"{name_text(name)} {word}" if word in STATES else f"{name_text(name)} {sign} …"
            raise self.error("after 'is' comes 'null' or 'not null'", hint=f"write: {form}")
        self.at += 1
        found = Predicate(name, IS_NULL, None, (start, self.tokens[self.at - 1][3]))
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
        if AttributeValue in kinds:
            return _simplest(Comparison(left, kind, right, span))
        if Variable not in kinds:
            raise ConditionError(
                "the constraint compares constants only", span=span, hint=_mirrored(found)
            )
        return found


def _simplest(given: Comparison) -> Comparison | Predicate:
    """A predicate if the comparison is of one attribute with a constant: those are indexed."""
    left, right = _folded(given.left), _folded(given.right)
    if isinstance(left, AttributeValue) and isinstance(right, Constant):
        return Predicate(left.name, given.comparator, right, given.span)
    if isinstance(right, AttributeValue) and isinstance(left, Constant):
        comparator = _MIRRORED.get(given.comparator, given.comparator)
        return Predicate(right.name, comparator, left, given.span)
    return given


def _folded(expression: Expression) -> Expression:
    """A number in place of arithmetic on numbers."""
    if not isinstance(expression, Arithmetic):
        return expression
    left, right = _folded(expression.left), _folded(expression.right)
    if type(left) not in (int, float) or type(right) not in (int, float):
        return expression
    try:
        found = COMPUTE[expression.sign](left, right)
    except (ZeroDivisionError, OverflowError):
        return expression  # such a comparison is false
    return found if isinstance(found, int) or isfinite(found) else expression


def _mirrored(constraint: ValueConstraint) -> str | None:
    """A hint for `5 < price`."""
    left, name = constraint.left, constraint.right
    if not isinstance(name, Word) or name[0].isdigit() or not isinstance(left, Constant):
        return None
    comparator = _MIRRORED.get(constraint.comparator, constraint.comparator)
    return f"an attribute comes first: {name_text(name)} {comparator} {constant_text(left)}"
