"""The type check of a condition against a schema.

Contradictions between predicates are found later, when they are folded (`encode.clause`).

A variable belongs to one clause. Positive calls of the clause bind it, by values of one kind.
Negated calls and value constraints only test it, so they need a positive call that binds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, NoReturn

from tamis.errors import ConditionError, LimitError, Span, counted, nearest
from tamis.language import spans
from tamis.language.comparison_check import check_comparison
from tamis.language.constants import check_constant, kind_of_constant, kind_text, value_hint
from tamis.language.dynamic_check import check_dynamic
from tamis.language.element_check import refuse_mixed, structs_of
from tamis.language.hints import FUNCTIONS, NO_FUNCTIONS, unknown_attribute_hint
from tamis.language.limits import LIST_LIMIT
from tamis.language.normal_form import check_size, expand
from tamis.language.pitfalls import refuse_pitfalls
from tamis.language.text_check import check_text_constant
from tamis.model.condition import (
    COMPLEMENTS,
    LISTS,
    OF_EVERY_DOMAIN,
    OF_KIND,
    SIGNS,
    STATES,
    TEXT,
    Arithmetic,
    AttributeValue,
    Call,
    Clause,
    Comparison,
    Condition,
    Constant,
    Duration,
    Expression,
    Leaf,
    Now,
    Predicate,
    Some,
    ValueConstraint,
    Variable,
    Word,
    leaves,
    parts_of,
    variables,
)
from tamis.model.domain import Domain, RefusalError, show
from tamis.model.dynamic import Dynamic
from tamis.model.elements.element_names import refuse_call
from tamis.model.open_schema import schema_for
from tamis.model.operator import Parameter, Signature
from tamis.model.printer import expression_text
from tamis.model.schema import Schema
from tamis.model.times.moments import with_now


def check(
    condition: Condition,
    schema: Schema,
    text: str | None = None,
    operators: Mapping[str, Signature] | None = None,
    *,
    stored: bool = False,
) -> None:
    """Raise a `ConditionError` for an unknown name, a wrong comparator or a wrong type.

    `operators` are the operators that the condition may call, by name. A `stored` condition was
    accepted before; the pitfalls that are refused when somebody subscribes are its meaning.
    """
    known = {} if operators is None else operators
    try:
        within = schema_for(schema, condition, known)
        checked = _TypeCheck(within, within.attributes, known, text, stored)
        checked.check(with_now(condition, within))
    except ConditionError as error:
        raise error.with_text(text) from None


class BoundVariable(NamedTuple):
    """The kind of a variable's values, perhaps `any`, and the operator that binds it."""

    kind: str
    by: Signature


Kinds = Mapping[str, BoundVariable]


class _TypeCheck(NamedTuple):
    schema: Schema
    attributes: Mapping[str, Domain]
    operators: Mapping[str, Signature]
    text: str | None
    stored: bool
    stem: str = ""  # of names in the text, such as `item.`

    def _is_attribute(self, word: Constant) -> bool:
        """Whether a bare word names an attribute; in an open schema it is just a word."""
        return isinstance(word, Word) and word in self.attributes and not self.schema.is_open

    def check(self, condition: Condition) -> None:
        has_variables = False
        for leaf in leaves(condition):
            if isinstance(leaf, Predicate):
                self._predicate(leaf)
            elif isinstance(leaf, Comparison):
                check_comparison(leaf, self.schema, self.attributes, self.text, self.stem)
            elif isinstance(leaf, Some):
                self._some(leaf)
            elif self.stem:
                raise refuse_call(leaf)
            elif isinstance(leaf, Call):
                self._call(leaf)
                has_variables = has_variables or any(True for _ in variables(leaf))
            else:
                self._constraint(leaf)
                has_variables = True  # checked
        if has_variables:  # each belongs to one clause
            check_size(condition)
            self._clauses(condition)

    def _some(self, some: Some) -> None:
        """Refuse a list that is not one of structs; check the condition on elements."""
        structs = structs_of(some, self.schema, self.attributes, self.stem)
        _TypeCheck(
            structs.element, structs.named, {}, self.text, self.stored, f"{some.variable}."
        ).check(some.condition)

    # -- predicates --------------------------------------------------------------------------------

    def _predicate(self, predicate: Predicate) -> None:
        if not isinstance(predicate.attribute, str):
            raise ConditionError(f"{show(predicate)} is not a condition")
        domain = self.attributes.get(predicate.attribute)
        if self.schema.lists:
            refuse_mixed(predicate, self.schema, self.stem)
        if domain is None:
            raise ConditionError(
                f"unknown attribute {self.stem + predicate.attribute!r}",
                span=spans.part_of_predicate(self.text, predicate, 0),
                hint=unknown_attribute_hint(
                    predicate.attribute, self.attributes, self.stem, self._is_bare(predicate)
                ),
            )
        if predicate.comparator not in (*domain.comparators, *OF_EVERY_DOMAIN):
            raise ConditionError(
                f"{self.stem + predicate.attribute!r} is {domain.kind}, which has no comparator "
                f"{predicate.comparator!r}",
                span=spans.part_of_predicate(self.text, predicate, 1),
                hint="it has: " + ", ".join(domain.comparators),
            )
        comparator, value, span = predicate.comparator, predicate.value, predicate.span
        given: tuple[object, ...] = (value,)
        if comparator in STATES:
            given = ()
            if value is not None:
                raise ConditionError(f"{comparator!r} takes no value", span=span)
        elif comparator == "between" or comparator in LISTS:
            if not isinstance(value, tuple) or not value:
                raise ConditionError(f"{comparator!r} takes a list", span=span)
            if comparator == "between" and len(value) != 2:
                raise ConditionError("'between' takes two bounds", span=span)
            if len(value) > LIST_LIMIT:
                many = f"{len(value):,} values in one list"
                raise LimitError(f"{many}; at most {LIST_LIMIT:,}", span=span)
            given = value
        if not self.stored and predicate.span is not None and comparator != OF_KIND:
            refuse_pitfalls(predicate, self.schema, self.text, self.stem)
        if isinstance(domain, Dynamic):
            check_dynamic(predicate, self.text)
        for position, item in enumerate(given):
            try:
                domain.constant(item)
            except RefusalError as why:
                if self._is_bare(predicate):
                    raise ConditionError(
                        f"expected a comparator after {self.stem + predicate.attribute!r}, which "
                        f"is {domain.kind}",
                        span=predicate.span,
                        hint="it has: " + ", ".join(domain.comparators),
                    ) from None
                which = f"element {position + 1}: " if comparator == "in" else ""
                raise ConditionError(
                    f"{self.stem + predicate.attribute!r} is {domain.kind}: {which}{why}",
                    span=spans.part_of_predicate(self.text, predicate, 2 + position),
                    hint=value_hint(domain, item, self.attributes, self.stem),
                ) from None
        if comparator in TEXT:
            check_text_constant(predicate, self.text)

    def _is_bare(self, predicate: Predicate) -> bool:
        """Whether a name stands alone, as a boolean may."""
        if self.text is None or predicate.span is None or predicate.value is not True:
            return False
        start, end = predicate.span
        return self.text[start:end].strip("`") == self.stem + predicate.attribute

    # -- calls and constraints ---------------------------------------------------------------------

    def _call(self, call: Call) -> None:
        """Refuse an unknown operator, wrong arguments, and an operator that reads other schemas."""
        if not isinstance(call.operator, str) or not isinstance(call.arguments, tuple):
            raise ConditionError(f"{show(call)} is not a condition")
        signature = self.operators.get(call.operator)
        if signature is None:
            none = "" if len(self.operators) else ": no operator is registered"
            hint = nearest(call.operator, self.operators)
            if call.operator.lower() in FUNCTIONS:
                hint = NO_FUNCTIONS
            raise ConditionError(
                f"unknown operator {call.operator!r}{none}",
                span=spans.operator_name(self.text, call),
                hint=hint,
            )
        wanted, given = len(signature.parameters), len(call.arguments)
        if given != wanted:
            takes = counted(wanted, "argument") if wanted else "no arguments"
            raise ConditionError(
                f"{call.operator!r} takes {takes}, got {given}: {signature}",
                span=call.span,
                hint=_free_names(signature),
            )
        for position, parameter in enumerate(signature.parameters):
            span = spans.argument(self.text, call, position)
            self._argument(call.arguments[position], parameter, signature, span)
        for attribute in signature.reads:
            if attribute not in self.attributes:
                raise ConditionError(
                    f"{call.operator!r} reads the attribute {attribute!r}, which is not in the "
                    "schema",
                    span=spans.operator_name(self.text, call),
                )

    def _argument(
        self,
        given: Constant | Variable,
        parameter: Parameter,
        signature: Signature,
        span: Span | None,
    ) -> None:
        where = f"{parameter.name!r} of {signature}"
        if isinstance(given, Variable):
            if not parameter.free:
                raise ConditionError(
                    f"{where} must be a constant, not a variable",
                    span=span,
                    hint=_free_names(signature) or f"{signature.name!r} binds no variables",
                )
            return
        hint = None
        if self._is_attribute(given) and not self.stored:
            raise ConditionError(
                f"{str(given)!r} is an attribute",
                span=span,
                hint="operators read attributes themselves; their arguments are constants; if you "
                f'mean the text, write "{given}"',
            )
        if parameter.kind == "boolean" and isinstance(given, str):
            hint = "write true or false, without quotes"
        elif parameter.kind == "text":
            hint = "put text in quotes"
        try:
            check_constant(given, parameter.kind)
        except RefusalError as why:
            raise ConditionError(
                f"{where} is {kind_text(parameter.kind)}: {why}", span=span, hint=hint
            ) from None

    def _constraint(self, constraint: ValueConstraint) -> None:
        """Refuse a constraint without a variable, and parts other than arithmetic on constants."""
        if constraint.comparator not in COMPLEMENTS:
            raise ConditionError(
                f"variables have no comparator {show(constraint.comparator)}",
                span=constraint.span,
                hint="they have: " + " ".join(COMPLEMENTS),
            )
        found = False
        stack: list[Expression] = [constraint.right, constraint.left]
        seen: set[int] = set()  # a program may share parts
        while stack:
            node = stack.pop()
            if isinstance(node, Arithmetic):
                if node.sign not in SIGNS:
                    raise ConditionError(f"{show(node.sign)} is not one of + - * /")
                if id(node) not in seen:
                    seen.add(id(node))
                    stack += (node.right, node.left)
            elif isinstance(node, Variable):
                found = True
            elif isinstance(node, AttributeValue | Duration | Now):
                what = f"{expression_text(node)} cannot be compared with variables"
                raise ConditionError(what, span=constraint.span)
            else:
                self._operand(node, constraint)
        if not found:
            raise ConditionError("the constraint compares constants only", span=constraint.span)

    def _operand(self, given: Constant, constraint: ValueConstraint) -> None:
        if self._is_attribute(given):
            raise ConditionError(
                f"{str(given)!r} is an attribute and cannot be compared with variables",
                span=spans.operand(self.text, constraint, given),
                hint="an operator that reads it can bind its value to a variable; if you mean the "
                "text, put it in quotes",
            )
        try:
            check_constant(given, "any")
        except RefusalError as why:
            span = spans.operand(self.text, constraint, given)
            raise ConditionError(f"in a value constraint: {why}", span=span) from None

    # -- variables ---------------------------------------------------------------------------------

    def _clauses(self, condition: Condition) -> None:
        """Check each clause of a condition whose size and leaves have been checked."""
        clauses = [each.literals for each in expand(condition)]
        bound = [self._bound(clause) for clause in clauses]
        for clause, kinds in zip(clauses, bound, strict=True):
            for leaf, positive in clause:
                for variable in variables(leaf):
                    if variable.name not in kinds:
                        elsewhere = any(variable.name in other for other in bound)
                        self._refuse_unbound(variable, leaf, condition, elsewhere)
                if isinstance(leaf, Call) and not positive:
                    for argument, parameter in self._given(leaf):
                        self._check_kind(leaf, argument, kinds[argument.name], parameter.kind)
                elif isinstance(leaf, ValueConstraint):
                    self._compared(leaf, kinds)

    def _given(self, call: Call) -> list[tuple[Variable, Parameter]]:
        """The variables among the arguments of a call, each with its parameter."""
        pairs = zip(call.arguments, self.operators[call.operator].parameters, strict=True)
        return [(given, parameter) for given, parameter in pairs if isinstance(given, Variable)]

    def _bound(self, clause: Clause) -> dict[str, BoundVariable]:
        """The variables that the positive calls of a clause bind."""
        found: dict[str, BoundVariable] = {}
        for call in (call for call, positive in parts_of(clause).calls if positive):
            for argument, parameter in self._given(call):
                before = found.get(argument.name)
                if before is None or before.kind == "any":
                    by = self.operators[call.operator]
                    found[argument.name] = BoundVariable(parameter.kind, by)
                else:
                    self._check_kind(call, argument, before, parameter.kind)
        return found

    def _check_kind(self, call: Call, variable: Variable, before: BoundVariable, kind: str) -> None:
        """Refuse a variable of two kinds, if both are known."""
        if "any" not in (before.kind, kind) and before.kind != kind:
            raise ConditionError(
                f"?{variable.name} is {kind_text(before.kind)} in {before.by}, but "
                f"{kind_text(kind)} here",
                span=spans.operand(self.text, call, variable),
            )

    def _refuse_unbound(
        self, variable: Variable, leaf: Leaf, condition: Condition, elsewhere: bool
    ) -> NoReturn:
        calls = (each for each in leaves(condition) if isinstance(each, Call))
        if elsewhere:
            hint = "each branch of an 'or' has its own variables"
        elif any(variable in variables(each) for each in calls):
            hint = "an operator under 'not' binds no variable; a positive call must bind it"
        else:
            hint = f"a call in the same conjunction must bind it, as in: operator(?{variable.name})"
        span = spans.operand(self.text, leaf, variable)
        raise ConditionError(f"nothing binds ?{variable.name}", span=span, hint=hint)

    def _compared(self, constraint: ValueConstraint, kinds: Kinds) -> None:
        """Refuse comparisons between values of different kinds, if the kinds are known."""
        sides = constraint.left, constraint.right
        left, right = (self._kind(side, constraint, kinds) for side in sides)
        if "any" not in (left, right) and left != right:
            raise ConditionError(
                f"{expression_text(sides[0])} is {kind_text(left)}, "
                f"but {expression_text(sides[1])} is {kind_text(right)}",
                span=constraint.span,
                hint=_bound_by(sides, kinds),
            )
        if "boolean" in (left, right) and constraint.comparator not in ("=", "!="):
            raise ConditionError(
                f"true and false have no comparator {constraint.comparator!r}",
                span=spans.comparator(self.text, constraint),
                hint="they have: = !=",
            )

    def _kind(self, expression: Expression, constraint: ValueConstraint, kinds: Kinds) -> str:
        assert not isinstance(expression, AttributeValue | Duration | Now)  # refused before
        if isinstance(expression, Variable):
            return kinds[expression.name].kind
        if not isinstance(expression, Arithmetic):
            return kind_of_constant(expression)
        for side in (expression.left, expression.right):
            kind = self._kind(side, constraint, kinds)
            if kind not in ("number", "any"):
                assert not isinstance(side, Arithmetic | AttributeValue | Duration | Now)
                raise ConditionError(
                    f"{expression_text(side)} is {kind_text(kind)}; arithmetic takes numbers",
                    span=spans.operand(self.text, constraint, side),
                    hint=_bound_by((side,), kinds),
                )
        return "number"


def _free_names(signature: Signature) -> str | None:
    free = ", ".join(parameter.name for parameter in signature.parameters if parameter.free)
    return f"a variable may be at: {free}" if free else None


def _bound_by(sides: tuple[Expression, ...], kinds: Kinds) -> str | None:
    """A hint that names the operators which bind the variables."""
    names = (side.name for side in sides if isinstance(side, Variable))
    return "; ".join(f"{kinds[name].by} binds ?{name}" for name in names) or None
