"""The operations of plain routes, as OpenAPI describes them.

FastAPI describes its own routes. The hot ones are plain, so they are described here.
"""

from __future__ import annotations

from typing import Any

from tamis.broker.cloud_events.write_cloud_event import CLOUD_EVENT
from tamis.service.bodies import BATCH, JSON, NDJSON

_EVENT = {"type": "object", "description": "its members are the attributes"}
_HEADERS = {
    "ce-specversion": "1.0; in binary mode, the body is the data",
    "ce-id": "identifies the event together with the source: a repeated one is not published again",
    "ce-source": "who publishes",
    "ce-type": "the event type, if the schema has one of this name",
    "ce-time": "when the event happened",
    "ce-subject": "what the event is about; other context attributes are further headers",
}
_FROM: dict[str, tuple[str, dict[str, Any], str]] = {
    "Tamis-Ticket": (
        "header",
        {"type": "string"},
        "of the subscription; its owner needs no ticket",
    ),
    "Last-Event-ID": (
        "header",
        {"type": "string"},
        "for streams: the cursor, in place of `after`",
    ),
    "after": (
        "query",
        {"type": "integer", "minimum": -1},
        "the cursor: the number of the last event that was read; by default, the end of the log",
    ),
    "wait": (
        "query",
        {"type": "integer", "minimum": 0},
        "how many seconds to wait for the first notification",
    ),
    "most": (
        "query",
        {"type": "integer", "minimum": 1, "default": 1000},
        "most notifications in a page; those of one event stay together",
    ),
    "body": (
        "query",
        {"type": "string", "minLength": 1},
        "`event`, `none`, or attributes separated by commas; by default, as the subscription asks",
    ),
}

COMPONENTS: dict[str, Any] = {
    "PublishAnswer": {
        "type": "object",
        "required": ["first", "count", "duplicates"],
        "properties": {
            "first": {
                "type": ["integer", "null"],
                "description": "the sequence number of the first event",
            },
            "count": {"type": "integer", "description": "how many events the request had"},
            "duplicates": {
                "type": "integer",
                "description": "how many were published before, by source and id",
            },
        },
    },
    "CloudEvent": {
        "type": "object",
        "description": "CloudEvents 1.0 in the JSON format; extensions are further members",
        "required": ["specversion", "id", "source", "type"],
        "properties": {
            "specversion": {"const": "1.0"},
            "id": {"type": "string", "minLength": 1},
            "source": {"type": "string", "minLength": 1},
            "type": {"type": "string", "minLength": 1},
            "subject": {"type": "string", "minLength": 1},
            "time": {"type": "string", "format": "date-time"},
            "dataschema": {"type": "string", "minLength": 1},
            "datacontenttype": {"type": "string", "description": "JSON, or ends in +json"},
            "data": {"type": "object", "description": "its members are the attributes"},
            "data_base64": {"type": "string", "description": "the JSON of the data, as base64"},
        },
    },
    "NotificationPage": {
        "type": "object",
        "required": ["notifications", "cursor"],
        "properties": {
            "notifications": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/Notification"},
            },
            "cursor": {"type": "integer", "description": "for the next page, as `after`"},
        },
    },
    "Notification": {
        "type": "object",
        "required": ["sequence", "subscription", "time", "event"],
        "properties": {
            "sequence": {"type": "integer", "description": "the number of the event"},
            "subscription": {"type": ["integer", "string"]},
            "time": {
                "type": ["string", "null"],
                "format": "date-time",
                "description": "when the event entered the log",
            },
            "event": {
                "type": ["object", "null"],
                "description": "null if it was not asked for, or is no longer kept",
            },
        },
    },
}


def _named(names: dict[str, tuple[str, dict[str, Any], str]]) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": place, "required": False, "schema": schema, "description": text}
        for name, (place, schema, text) in names.items()
    ]


def _content(kinds: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {kind: {"schema": schema} for kind, schema in kinds.items()}


def _notifications(summary: str, *, of_one: bool) -> dict[str, Any]:
    names = _FROM if of_one else {name: _FROM[name] for name in _FROM if name != "Tamis-Ticket"}
    id = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "tags": ["notifications"],
        "summary": summary,
        "description": "With `Accept: text/event-stream`, the answer is an endless stream.",
        "operationId": "subscription_notifications" if of_one else "notifications",
        "parameters": [*([id] if of_one else []), *_named(names)],
        "responses": {
            "200": {
                "description": "notifications in the order of the log",
                "content": _content(
                    {
                        JSON: {"$ref": "#/components/schemas/NotificationPage"},
                        "text/event-stream": {"type": "string"},
                    }
                ),
            },
            "410": {
                "description": "not kept any longer; `first` is the first sequence number that is"
            },
        },
    }


def _probe(name: str, summary: str) -> dict[str, Any]:
    text = _content({"text/plain": {"type": "string"}})
    return {
        "tags": ["health"],
        "summary": summary,
        "operationId": name,
        "responses": {
            "200": {"description": "yes", "content": text},
            "503": {"description": "no, and which part", "content": text},
        },
    }


OPERATIONS: dict[str, dict[str, Any]] = {
    "/v1/events": {
        "post": {
            "tags": ["events"],
            "summary": "Publish events",
            "description": "All or none are published. They are on disk when the answer comes.",
            "operationId": "publish",
            "parameters": _named(
                {name: ("header", {"type": "string"}, text) for name, text in _HEADERS.items()}
            ),
            "requestBody": {
                "required": True,
                "content": _content(
                    {
                        JSON: {"anyOf": [_EVENT, {"type": "array", "items": _EVENT}]},
                        NDJSON: {"type": "string", "description": "a JSON object on each line"},
                        CLOUD_EVENT: {"$ref": "#/components/schemas/CloudEvent"},
                        BATCH: {
                            "type": "array",
                            "items": {"$ref": "#/components/schemas/CloudEvent"},
                        },
                    }
                ),
            },
            "responses": {
                "202": {
                    "description": "the events are on disk",
                    "content": _content({JSON: {"$ref": "#/components/schemas/PublishAnswer"}}),
                },
                "415": {"description": "the content type is not accepted here"},
            },
        }
    },
    "/v1/notifications": {
        "get": _notifications("Read all notifications of the caller", of_one=False)
    },
    "/v1/subscriptions/{id}/notifications": {
        "get": _notifications("Read the notifications of a subscription", of_one=True)
    },
    "/v1/subscriptions/bulk": {
        "post": {
            "tags": ["subscriptions"],
            "summary": "Subscribe to many conditions",
            "description": "Each line is a subscription. The answer has a line for each, in "
            "order. The line of a wrong subscription has an error; the others take effect.",
            "operationId": "subscribe_many",
            "parameters": _named(
                {
                    "together": (
                        "query",
                        {"type": "boolean", "default": False},
                        "whether one wrong line refuses all",
                    ),
                    "Idempotency-Key": (
                        "header",
                        {"type": "string", "maxLength": 255},
                        "makes a repeated request safe",
                    ),
                }
            ),
            "requestBody": {"required": True, "content": _content({NDJSON: {"type": "string"}})},
            "responses": {
                "200": {
                    "description": "a line for each",
                    "content": _content({NDJSON: {"type": "string"}}),
                },
                "415": {"description": "the content type is not accepted here"},
            },
        }
    },
    "/metrics": {
        "get": {
            "tags": ["health"],
            "summary": "Metrics, for Prometheus",
            "operationId": "metrics",
            "responses": {
                "200": {
                    "description": "all metrics",
                    "content": _content({"text/plain": {"type": "string"}}),
                },
                "401": {"description": "a key is missing or unknown"},
            },
        }
    },
    "/livez": {"get": _probe("livez", "Whether the process is alive")},
    "/readyz": {"get": _probe("readyz", "Whether the service is ready")},
}
