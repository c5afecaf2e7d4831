"""Make what is made from other files: the messages of gRPC, and references in the docs.

    python -m scripts.generate      (or: make generate)

The messages come from `tamis.proto`. The references of docs/client.md and docs/grpc.md, which stand
between two marks, come from the docstrings of the client and the comments of `tamis.proto`. The
pages of docs/matchers come from the classes of the matchers, and docs/api.md from the docstrings of
all public names. A test compares all with what is there.
"""

import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

from scripts.api_page import api_page
from scripts.matcher_pages import FOLDER, matcher_pages
from scripts.signatures import paragraphs, signature_text
from tamis import client
from tamis.client.call import Verb
from tamis.client.verbs import Verbs

ROOT = Path(__file__).resolve().parent.parent
SOURCE, DOCS = ROOT / "src", ROOT / "docs"
DEFINITION = "tamis/service/rpc/tamis.proto"
MADE = tuple(DEFINITION.replace(".proto", end) for end in ("_pb2.py", "_pb2.pyi"))
BEGIN, END = "<!-- reference: scripts/generate.py -->", "<!-- end of reference -->"
_KINDS = {
    FieldDescriptorProto.TYPE_STRING: "string",
    FieldDescriptorProto.TYPE_BYTES: "bytes",
    FieldDescriptorProto.TYPE_BOOL: "bool",
    FieldDescriptorProto.TYPE_INT32: "int32",
    FieldDescriptorProto.TYPE_INT64: "int64",
    FieldDescriptorProto.TYPE_DOUBLE: "double",
}


def compile_with(*options: str) -> None:
    """Run the compiler on the definition."""
    known = Path(protoc.__file__).parent / "_proto"
    code = protoc.main(["protoc", f"-I{SOURCE}", f"-I{known}", *options, DEFINITION])
    if code:
        raise SystemExit(code)


def make_messages(folder: Path) -> None:
    """Write the modules below a folder."""
    compile_with(f"--python_out={folder}", f"--pyi_out={folder}")
    types = folder / MADE[1]
    # The types of protoc leave out what a mapping holds, which mypy --strict wants to know.
    text = types.read_text(encoding="utf-8").replace("_Mapping]", "_Mapping[str, object]]")
    types.write_text(text, encoding="utf-8")


def client_reference() -> str:
    """The verbs, the methods that send several requests, and the answers."""
    lines = ["### Verbs", ""]
    for name, verb in vars(Verbs).items():
        if isinstance(verb, Verb):
            lines += _function(name, verb.plan)
    lines += ["### Several requests", ""]
    for name in ("publish_all", "subscriptions", "notifications", "backtest"):
        lines += _function(name, getattr(client.Client, name))
    lines += ["### Answers", "", "| class | fields | |", "| --- | --- | --- |"]
    for name in client.__all__:
        kind = getattr(client, name)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            fields = ", ".join(f"`{each}`" for each in kind.__struct_fields__)
            lines.append(f"| `{name}` | {fields} | {paragraphs(kind)[0]} |")
    return "\n".join(lines)


def _function(name: str, function: Any) -> Iterator[str]:
    yield f"**`{signature_text(name, function)}`**"
    yield ""
    for paragraph in paragraphs(function):
        yield paragraph
        yield ""


def grpc_reference() -> str:
    """The methods and the messages of the definition, with its comments."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "set"
        compile_with(f"--descriptor_set_out={out}", "--include_source_info")
        (file,) = FileDescriptorSet.FromString(out.read_bytes()).file
    comments = {
        tuple(each.path): " ".join(each.leading_comments.split())
        for each in file.source_code_info.location
    }
    lines = ["### Methods", "", "| method | takes | answers | |", "| --- | --- | --- | --- |"]
    for at, method in enumerate(file.service[0].method):
        takes = _stream(_short(method.input_type), method.client_streaming)
        gives = _stream(_short(method.output_type), method.server_streaming)
        lines.append(f"| `{method.name}` | {takes} | {gives} | {comments.get((6, 0, 2, at), '')} |")
    lines += ["", "### Messages", ""]
    for at, message in enumerate(file.message_type):
        if not message.field:
            continue
        lines += [f"**`{message.name}`** {comments.get((4, at), '')}".rstrip(), ""]
        lines += ["| field | type | |", "| --- | --- | --- |"]
        maps = {each.name for each in message.nested_type}
        for row, field in enumerate(message.field):
            comment = comments.get((4, at, 2, row), "")
            lines.append(f"| `{field.name}` | {_type(field, maps)} | {comment} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def _type(field: FieldDescriptorProto, maps: set[str]) -> str:
    name = _KINDS.get(field.type) or _short(field.type_name)
    if name in maps:
        return "`map<string, string>`"
    repeated = field.label == FieldDescriptorProto.LABEL_REPEATED
    word = "repeated " if repeated else "optional " if field.proto3_optional else ""
    return f"`{word}{name}`"


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _stream(name: str, streamed: bool) -> str:
    return f"stream of `{name}`" if streamed else f"`{name}`"


def pages() -> dict[Path, str]:
    """Each page as it should be."""
    made = {"client.md": client_reference(), "grpc.md": grpc_reference()}
    found = {}
    for name, reference in made.items():
        page = DOCS / name
        before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        _, end, after = rest.partition(END)
        if not begin or not end:
            raise SystemExit(f"{page}: lacks the marks of the reference")
        found[page] = f"{before}{BEGIN}\n\n{reference}\n\n{END}{after}"
    return found | matcher_pages() | api_page()


def made() -> dict[Path, bytes]:
    """Each file as it should be."""
    found = {page: text.encode() for page, text in pages().items()}
    with TemporaryDirectory() as folder:
        make_messages(Path(folder))
        return found | {SOURCE / name: (Path(folder) / name).read_bytes() for name in MADE}


def stale() -> list[str]:
    """The files that differ from what they are made of, are missing, or should not be there."""
    wanted = made()
    wrong = [path for path, content in wanted.items() if _content(path) != content]
    return [path.name for path in (*wrong, *_left_over(wanted))]


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _left_over(wanted: Collection[Path]) -> list[Path]:
    """Pages of matchers that are gone."""
    return [path for path in FOLDER.glob("*.md") if path not in wanted]


def main() -> int:
    wanted = made()
    for path in _left_over(wanted):
        path.unlink()
    for path, content in wanted.items():
        if _content(path) != content:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            print(f"made {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
