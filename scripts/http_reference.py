"""Write docs/http.md, the reference of the HTTP interface, from its OpenAPI document.

    python scripts/http_reference.py [--check]

With --check, nothing is written, and the exit code is 1 if the page is stale.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tamis.broker.broker import Broker
from tamis.service.app import make_app
from tamis.service.openapi_document.documented_app import PROBLEM
from tamis.service.settings import Settings
from tamis.service.waiting import Waiting

PAGE = Path(__file__).resolve().parent.parent / "docs" / "http.md"
COMMAND = "python scripts/http_reference.py"
_HEAD = f"""\
# HTTP reference

Every request that [the service](service.md) answers over HTTP. [CloudEvents](cloud-events.md)
explains the forms of events. A running service has the same reference as an OpenAPI document at
`/openapi.json`, from which `{COMMAND}` writes this page.

A caller with a key sends `Authorization: Bearer KEY`. An error is a [problem](#problem) as in RFC
9457. [Problems](#problems) lists what each status means.
"""


def document() -> dict[str, Any]:
    """The OpenAPI document of a service."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(folder, {"attributes": {"price": "decimal"}}, matching=False) as broker,
    ):
        return make_app(broker, Settings(), Waiting()).openapi()


def reference(found: dict[str, Any]) -> str:
    """The page of a document."""
    groups: dict[str, list[str]] = {}
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            tag = operation.get("tags", ["other"])[0]
            groups.setdefault(tag, []).append("\n".join(_operation(path, method, operation)))
    parts = [_HEAD]
    for tag, texts in sorted(groups.items()):
        parts += [f"## {tag.capitalize().replace('-', ' ')}\n", *texts]
    parts += ["\n".join(_problems(found)), "## Bodies\n"]
    for name, schema in sorted(found["components"]["schemas"].items()):
        parts.append("\n".join(_component(name, schema)))
    return "\n".join(parts).rstrip() + "\n"


def _operation(path: str, method: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### {method.upper()} {path}\n"
    summary, text = operation.get("summary", ""), operation.get("description", "")
    made = "_v1_" in operation.get("operationId", "")  # by FastAPI, of the function's name
    yield "\n\n".join(each for each in ("" if made else f"{summary}.", text) if each) + "\n"
    parameters = operation.get("parameters", [])
    if parameters:
        yield "| parameter | in | type | |\n| --- | --- | --- | --- |"
        for each in parameters:
            needed = "required. " if each.get("required") and each["in"] != "path" else ""
            note = _cell(needed + each.get("description", each["schema"].get("description", "")))
            yield f"| `{each['name']}` | {each['in']} | {_type(each['schema'])} | {note} |"
        yield ""
    body = operation.get("requestBody", {}).get("content", {})
    if body:
        yield "| body | |\n| --- | --- |"
        for kind, content in body.items():
            yield f"| `{kind}` | {_type(content['schema'])} |"
        yield ""
    yield "| answer | |\n| --- | --- |"
    problems = []
    for status, answer in sorted(operation["responses"].items()):
        content = answer.get("content", {})
        if PROBLEM in content:
            problems.append(status)
            continue
        forms = "; ".join(
            f"`{kind}`: {_type(each.get('schema', {}))}" for kind, each in content.items()
        )
        yield f"| {status} | {forms or 'no body'} |"
    if problems:
        yield f"| problems | {', '.join(problems)} |"
    yield ""


def _problems(found: dict[str, Any]) -> Iterator[str]:
    """Each status of a problem, with what it means."""
    meanings: dict[str, dict[str, None]] = {}
    for operations in found["paths"].values():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                if PROBLEM in answer.get("content", {}):
                    meanings.setdefault(status, {})[_cell(answer["description"])] = None
    yield "## Problems\n\n| status | |\n| --- | --- |"
    for status, texts in sorted(meanings.items()):
        yield f"| {status} | {'; or '.join(texts)} |"
    yield ""


def _component(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"### {name}\n"
    text = _cell(schema.get("description", "")).rstrip(".")
    if text:
        yield f"{text[0].upper()}{text[1:]}.\n"
    if schema.get("properties"):
        yield "| member | type | |\n| --- | --- | --- |"
        for member, each in schema["properties"].items():
            needed = "required" if member in schema.get("required", ()) else ""
            default = f"default `{each['default']}`" if each.get("default") is not None else ""
            notes = [needed, default, each.get("description", "")]
            yield f"| `{member}` | {_type(each)} | {_cell('; '.join(filter(None, notes)))} |"
    yield ""


def _type(schema: dict[str, Any]) -> str:
    """A schema in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " or ".join(_type(each) for each in schema[word])
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"array of {_type(schema['items'])}" if schema.get("items") else "array"
    text = " or ".join(kind) if isinstance(kind, list) else str(kind)
    inner = schema.get("additionalProperties")
    if isinstance(inner, dict) and inner:
        text += f" of {_type(inner)}"
    if schema.get("format"):
        text += f" ({schema['format']})"
    return text


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> int:
    text = reference(document())
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE.name} is stale; run {COMMAND}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
