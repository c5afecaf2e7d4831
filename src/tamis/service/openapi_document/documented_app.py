"""The OpenAPI document of a service: every route, with all its answers."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from tamis.service.openapi_document.plain_operations import COMPONENTS, OPERATIONS

PROBLEM = "application/problem+json"
_METHODS = ("get", "put", "post", "delete", "patch")
_ALWAYS = {
    "400": "a mistake in the request; `detail` says what and where",
    "401": "a key is missing or unknown",
    "403": "the caller lacks a role",
    "422": "a parameter or the body has the wrong form, or the `Idempotency-Key` was used before",
    "429": "a limit is reached; `Retry-After` says when to try again",
    "503": "the service cannot do this now",
}
_WRITES = {
    "413": "the body is too long",
    "507": "the disk is full; nothing was done",
}
_PLACES = {"404": "there is no such thing, or the ticket is wrong"}
_PROBLEM_SCHEMA = {
    "type": "object",
    "description": "an error, by RFC 9457",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "`urn:tamis:problem:` and the kind of problem"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what was wrong, and what would be right"},
        "row": {"type": "integer", "description": "which event of the request, from 0"},
        "attribute": {"type": "string", "description": "of the event"},
        "rule": {
            "type": "string",
            "description": "the rule that the event or the extension breaks",
        },
        "line": {"type": "integer", "description": "of the condition, from 1"},
        "column": {"type": "integer", "description": "of the condition, from 1"},
        "hint": {"type": "string", "description": "what was probably meant"},
        "first": {"type": "integer", "description": "the first sequence number that is kept"},
    },
}


class DocumentedApp(FastAPI):
    """An application whose document has the plain routes too, and the problems of all."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            found = super().openapi()
            for path, operations in OPERATIONS.items():
                found["paths"].setdefault(path, {}).update(operations)
            components = found.setdefault("components", {})
            schemas = components.setdefault("schemas", {})
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            schemas |= COMPONENTS | {"Problem": _PROBLEM_SCHEMA}
            components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            found["security"] = [{}, {"key": []}]
            for path, operations in found["paths"].items():
                for method, operation in operations.items():
                    if method in _METHODS:
                        _add_problems(path, method, operation)
            self.openapi_schema = found
        return self.openapi_schema


def _add_problems(path: str, method: str, operation: dict[str, Any]) -> None:
    """What may go wrong, in place of what FastAPI says about it."""
    answers = operation["responses"]
    if path.startswith("/v1/"):
        answers.pop("422", None)
        wrong = dict(_ALWAYS)
        if method != "get":
            wrong |= _WRITES
        if "{" in path:
            wrong |= _PLACES
        for status, text in sorted(wrong.items()):
            answers.setdefault(status, {"description": text})
    for status, answer in answers.items():
        if status.startswith(("4", "5")) and "content" not in answer:
            answer["content"] = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
