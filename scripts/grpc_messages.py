"""Make the messages of gRPC from their definition, `tamis.proto`.

    python scripts/grpc_messages.py

Run it after a change of the definition. A test compares its output with the files that are there.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
DEFINITION = "tamis/service/rpc/tamis.proto"
MADE = tuple(DEFINITION.replace(".proto", end) for end in ("_pb2.py", "_pb2.pyi"))


def make(folder: Path) -> None:
    """Write the modules below a folder."""
    known = Path(protoc.__file__).parent / "_proto"
    code = protoc.main(
        [
            "protoc",
            f"-I{SOURCE}",
            f"-I{known}",
            f"--python_out={folder}",
            f"--pyi_out={folder}",
            DEFINITION,
        ]
    )
    if code:
        raise SystemExit(code)
    types = folder / MADE[1]
    # The types of protoc leave out what a mapping holds, which mypy --strict wants to know.
    text = types.read_text(encoding="utf-8").replace("_Mapping]", "_Mapping[str, object]]")
    types.write_text(text, encoding="utf-8")


def stale() -> list[str]:
    """The files that differ from what the definition says."""
    with TemporaryDirectory() as folder:
        make(Path(folder))
        return [
            name
            for name in MADE
            if (Path(folder) / name).read_bytes() != (SOURCE / name).read_bytes()
        ]


def main() -> int:
    make(SOURCE)
    print("made", *MADE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
