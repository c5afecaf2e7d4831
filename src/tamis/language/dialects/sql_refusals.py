"""What of SQL cannot be translated: its names, and what to write instead."""

from __future__ import annotations

from sqlglot import exp

from tamis.errors import ConditionError, Span

_PATTERN = "in the language of tamis, write: name matches \"…\"; in SQL, LIKE '%…%'"
_CASE = "compare with ILIKE, which ignores case"
_TIME = "write a time, such as TIMESTAMP '2026-01-31 12:00:00'"
_LIST = "write the values in a list: x IN (1, 2)"
_PARAMETER = "a condition has no parameters; write the value"
_COMPUTED = "publish it as an attribute of its own, and compare that"

NAMED: dict[type[exp.Expr], tuple[str, str | None]] = {
    exp.Case: ("CASE", "join conditions with AND, OR and NOT"),
    exp.Select: ("a subquery", _LIST),
    exp.Subquery: ("a subquery", _LIST),
    exp.Exists: ("EXISTS", "it asks other rows; for a value that is there, write: x IS NOT NULL"),
    exp.All: ("ALL", "join comparisons with AND"),
    exp.Any: ("ANY", "join comparisons with OR, or use IN"),
    exp.Cast: ("a cast", "attributes have the types of the schema; write constants of that type"),
    exp.TryCast: ("a cast", "attributes have the types of the schema"),
    exp.Collate: ("COLLATE", "texts compare by code point; ILIKE ignores case"),
    exp.RegexpLike: ("a regular expression", _PATTERN),
    exp.RegexpILike: ("a regular expression", _PATTERN),
    exp.SimilarTo: ("SIMILAR TO", _PATTERN),
    exp.Glob: ("GLOB", "write LIKE, with % for any text"),
    exp.Mod: ("the remainder (%)", _COMPUTED),
    exp.IntDiv: ("whole division", _COMPUTED),
    exp.Pow: ("a power", _COMPUTED),
    exp.DPipe: ("||", "write the text as one"),
    exp.Concat: ("a text in parts", "write the text as one"),
    exp.BitwiseAnd: ("&", _COMPUTED),
    exp.BitwiseOr: ("|", _COMPUTED),
    exp.BitwiseXor: ("^", _COMPUTED),
    exp.BitwiseNot: ("~", _COMPUTED),
    exp.Bracket: (
        "an element of a list",
        "conditions on elements: see 'some' in the language of tamis",
    ),
    exp.Array: ("a list in brackets", "a name with other characters is written in double quotes"),
    exp.JSONExtract: ("->", "the path of an attribute is written with dots: a.b"),
    exp.JSONExtractScalar: ("->>", "the path of an attribute is written with dots: a.b"),
    exp.Interval: ("INTERVAL", _TIME),
    exp.AtTimeZone: ("AT TIME ZONE", "times are in UTC"),
    exp.CurrentTimestamp: ("the current time", _TIME),
    exp.CurrentDate: ("the current date", _TIME),
    exp.CurrentTime: ("the current time", _TIME),
    exp.Placeholder: ("a parameter", _PARAMETER),
    exp.Parameter: ("a parameter", _PARAMETER),
    exp.Tuple: ("a row of values", "compare one attribute at a time, joined with AND"),
    exp.Star: ("*", None),
    exp.Window: ("a window function", None),
    exp.JSON: ("IS JSON", None),
    exp.Lower: ("the function LOWER", _CASE),
    exp.Upper: ("the function UPPER", _CASE),
    exp.Coalesce: ("the function COALESCE", "write: x = … OR x IS NULL"),
    exp.StartsWith: ("the function STARTS_WITH", "write: x LIKE '…%'"),
    exp.Length: ("the function LENGTH", _COMPUTED),
}
UNREAD = {
    "~": _PATTERN,
    "~*": _PATTERN,
    "&&": "write AND",
    "XOR": "write (a OR b) AND NOT (a AND b)",
}
"""What to write instead of words that the parser does not know."""
_FUNCTIONS = {"NOW": _TIME, "ENDS_WITH": "write: x LIKE '%…'"}


def refusal(node: exp.Expr, span: Span | None) -> ConditionError:
    """The error for a part of SQL that has no counterpart."""
    if type(node) in NAMED:
        what, hint = NAMED[type(node)]
    elif isinstance(node, exp.Anonymous):
        name = str(node.this).upper()
        what, hint = f"the function {name}", _FUNCTIONS.get(name, _COMPUTED)
    elif isinstance(node, exp.Func):
        what, hint = f"the function {node.sql_name()}", _COMPUTED
    else:
        what, hint = f"SQL's {type(node).__name__}", None
    return ConditionError(f"{what} cannot be translated", span=span, hint=hint)
