"""Lists of structs: `items: [{"sku": "A1", "qty": 2}, …]`. Elements have their own attributes.

An element is validated like an event, against a schema of its own with one event type. That is how
conditions on elements use all that there is for conditions on events.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from tamis.errors import EventError, SchemaError, suggestion
from tamis.model.condition import STATES
from tamis.model.domain import Domain, RefusalError, noun, refuse
from tamis.model.open_event import LIST
from tamis.model.schema import DYNAMIC, EVENT_TYPE, IGNORE, REFUSE, Schema, Use

if TYPE_CHECKING:
    from tamis.model.event import Event

ELEMENT = "element"  # the event type of all elements
NESTING = 8  # levels of lists within lists


def list_name(attribute: str, schema: Schema) -> str:
    """The name of a list of structs in a schema."""
    return attribute + LIST if schema.is_open else attribute


class Structs(Domain):
    """Lists of structs with these attributes, all optional; those in `multiple` are lists."""

    kind = "structs"
    comparators = STATES
    hashable = False
    of_structs = True

    def __init__(
        self,
        attributes: Mapping[str, Domain],
        multiple: Collection[str] = (),
        unknown: str = IGNORE,
    ) -> None:
        if not attributes and unknown != DYNAMIC:
            raise SchemaError("structs need at least one attribute")
        for name in multiple:
            if name not in attributes:
                hint = suggestion(name, attributes)
                raise SchemaError(f"'multiple': unknown attribute {name!r}{hint}")
        uses = {name: Use(False, name in multiple) for name in attributes}
        types = {} if unknown == DYNAMIC else {ELEMENT: uses}
        self.element = Schema({}, attributes, types, unknown=unknown)
        self.attributes: Mapping[str, Domain] = {
            name: each for name, each in self.element.attributes.items() if name != EVENT_TYPE
        }
        self.multiple = tuple(name for name in attributes if name in multiple)

    def under(self, unknown: str) -> Structs:
        if self.element.unknown == unknown:
            return self
        return Structs(self.attributes, self.multiple, unknown)

    def value(self, given: object) -> Event:
        """The element, validated."""
        from tamis.model.event import Event

        if not isinstance(given, Mapping):
            refuse(given, f"is {noun(given)}, expected an object")
        ignored: tuple[str, ...] = ()
        if (
            EVENT_TYPE in given and not self.element.is_open
        ):  # an element has no event types; this is just a name here
            if given[EVENT_TYPE] is not None:
                if self.element.unknown == REFUSE:
                    raise RefusalError(f"an element has no attribute {EVENT_TYPE!r}")
                ignored = (EVENT_TYPE,)
            given = {name: each for name, each in given.items() if name != EVENT_TYPE}
        try:
            element = Event.of(self.element, given)
        except EventError as why:
            raise RefusalError(why.message.removeprefix(f"event type {ELEMENT}: ")) from None
        element.ignored += ignored
        return element

    def constant(self, given: object) -> Any:
        """The number of a condition on elements, which an engine assigns."""
        return given

    def to_dict(self) -> dict[str, Any]:
        return self.document({name: each.to_dict() for name, each in self.attributes.items()})

    def document(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """The document form, with these forms of the attributes."""
        multiple = {"multiple": list(self.multiple)} if self.multiple else {}
        return {"kind": self.kind, "attributes": dict(attributes), **multiple}

    @property
    def named(self) -> Mapping[str, Domain]:
        """The attributes that conditions may name: in an open schema, `event_type` is one."""
        return self.element.attributes if self.element.is_open else self.attributes

    def describe(self) -> str:
        shown = ", ".join(list(self.attributes)[:5])
        return f"structs of {shown}" + (", …" if len(self.attributes) > 5 else "")


def joined_open(first: Schema, second: Schema) -> Schema:
    """An open schema with the attributes of two, those of the first one in their order."""
    lists: dict[str, Domain] = {}
    for name in second.lists:
        known, found = first.attributes.get(name), second.attributes[name]
        assert isinstance(found, Structs)
        if isinstance(known, Structs):
            found = open_structs(joined_open(known.element, found.element))
        if found != known:
            lists[name] = found
    names = (name for name in second.attributes if name not in second.lists)
    return first.mentioning(names, **lists)


def open_structs(element: Schema) -> Structs:
    """A list of structs in an open schema."""
    own = {name: each for name, each in element.attributes.items() if name != EVENT_TYPE}
    return Structs(own, unknown=DYNAMIC)
