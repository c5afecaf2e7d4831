"""From the text of a WHERE clause to a condition; sqlglot reads the text."""

from __future__ import annotations

from sqlglot import TokenType, exp
from sqlglot.dialects import Dialect
from sqlglot.errors import ParseError, SqlglotError

from tamis.errors import ConditionError, LimitError, NeverTrueError
from tamis.language.dialects.sql_places import TextPlaces, check_tokens
from tamis.language.dialects.sql_predicates import SqlPredicates
from tamis.language.dialects.sql_refusals import UNREAD, refusal
from tamis.language.dialects.sql_truth import (
    FALSE,
    TRUE,
    UNKNOWN,
    Test,
    conjunction,
    constant,
    disjunction,
    negation,
    truth_is,
)
from tamis.language.dialects.sql_values import SqlValueReader
from tamis.model.condition import Condition, Or, Predicate
from tamis.model.schema import EVENT_TYPE, Schema

_SQL = Dialect.get_or_raise("")  # the common part of all
_ALWAYS = Or((Predicate(EVENT_TYPE, "exists"), Predicate(EVENT_TYPE, "missing")))


def read_where(text: str, schema: Schema) -> Condition:
    """The condition of a WHERE clause, with or without the word WHERE."""
    tree, places = _parse(text)
    made = _SqlConditionReader(schema, places).test(tree)(TRUE)
    if made is True:
        return _ALWAYS
    if made is False:
        raise NeverTrueError(
            f"never true: {text.strip():.200}",
            span=places.of(tree),
            hint="no comparison with NULL is true; write IS NULL, or IS NOT NULL",
        )
    return made


def _parse(text: str) -> tuple[exp.Expr, TextPlaces]:
    try:
        tokens = _SQL.tokenize(text)
    except SqlglotError as why:
        raise _not_read(text, str(why.__cause__ or why)) from None
    check_tokens(tokens)
    places = TextPlaces(tokens)
    if tokens and tokens[0].token_type == TokenType.WHERE:
        tokens = tokens[1:]
    if not tokens:
        raise ConditionError("the condition is empty", hint="as in: price < 5 AND kind = 'oak'")
    if tokens[0].token_type in (TokenType.SELECT, TokenType.WITH):
        raise ConditionError(
            "a condition, not a whole query, is read",
            span=(tokens[0].start, tokens[0].end + 1),
            hint="leave out everything but the WHERE clause",
        )
    try:
        (tree,) = _SQL.parser().parse_into(exp.Condition, tokens, text)
    except ParseError as why:
        first = why.errors[0]
        at = places.at(first["line"], first["col"])
        word = text[slice(*at)] if at else ""
        message = f"SQL does not go on like this at {word!r:.60}"
        if str(first["description"]).startswith("Required"):
            message = f"SQL lacks something beside {word!r:.60}"
        raise ConditionError(message, span=at, hint=UNREAD.get(word.upper())) from None
    except RecursionError:
        raise LimitError("nested too deeply") from None
    if tree is None:
        raise ConditionError("the condition is empty")
    return tree, places


def _not_read(text: str, why: str) -> ConditionError:
    """The error for a text that has no tokens: a quote is not closed."""
    quote = next((each for each in ("'", '"') if f"Missing {each}" in why), None)
    if quote is None:
        return ConditionError("SQL cannot be read here", span=(0, len(text)))
    at = text.rfind(quote)
    return ConditionError(f"the quote {quote} is never closed", span=(at, at + 1))


class _SqlConditionReader:
    """Reads conditions: what joins them, and what asks for their truth."""

    def __init__(self, schema: Schema, places: TextPlaces) -> None:
        self._places = places
        self._values = SqlValueReader(schema, places)
        self._predicates = SqlPredicates(self._values, places)

    def test(self, node: exp.Expr) -> Test:
        """A condition of SQL, as a test for its truths."""
        node = node.unnest()
        if isinstance(node, exp.And | exp.Or):
            parts = [self.test(part) for part in _flat(node)]
            return conjunction(parts) if isinstance(node, exp.And) else disjunction(parts)
        if isinstance(node, exp.Not):
            return negation(self.test(node.this))
        if isinstance(node, exp.Is):
            return self._is(node)
        if isinstance(node, exp.Boolean):
            return self._predicates.counted(constant(bool(node.this)))
        if isinstance(node, exp.Null):
            return self._predicates.counted(constant(None))
        return self._predicates.test(node)

    def _is(self, node: exp.Is) -> Test:
        """IS NULL, IS TRUE and so on; `NOT` around it is there already."""
        asked = node.expression
        value = self._values.is_value(node.this)
        if isinstance(asked, exp.Null):
            if value:
                found = self._predicates.is_null(self._values.value(node.this), node)
                return self._predicates.counted(found)
            return truth_is(self.test(node.this), UNKNOWN)
        if isinstance(asked, exp.Boolean):
            return truth_is(self.test(node.this), TRUE if asked.this else FALSE)
        if isinstance(asked, exp.JSON):
            raise refusal(asked, self._places.of(node))
        raise ConditionError(
            "IS is followed by NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM",
            span=self._places.of(node),
            hint="write = to compare with a value",
        )


def _flat(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a chain of ANDs, or of ORs, in order. The chain may be long."""
    parts: list[exp.Expr] = []
    stack: list[exp.Expr] = [node]
    while stack:
        each = stack.pop().unnest()
        if type(each) is type(node):
            stack += (each.expression, each.this)
        else:
            parts.append(each)
    return parts
