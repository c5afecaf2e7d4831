"""Try inputs one after another. Run as: python -m tests.fuzzing.child FOLDER SEED FIRST END

The number of the input under way is in FOLDER/now: if this process crashes, it says at which
input. Each input depends only on the seed and its number. What should not have been raised is
noted in FOLDER/wrong.
"""

from __future__ import annotations

import json
import mmap
import random
import struct
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

from tamis.errors import TamisError
from tests.fuzzing.doors import Doors
from tests.fuzzing.world import EVENT, make_world

NOW = struct.Struct("<q")
_CHECKED = 5_000  # inputs between two checks of the engine


def main(folder: Path, seed: int, first: int, end: int) -> None:
    warnings.simplefilter("ignore")
    if not (folder / "now").exists():
        (folder / "now").write_bytes(NOW.pack(first))
    with tempfile.TemporaryDirectory() as place, (folder / "now").open("r+b") as file:
        now = mmap.mmap(file.fileno(), NOW.size)
        world = make_world(Path(place))
        doors = Doors(world, seed)
        ways, weights = list(doors.weights), list(doors.weights.values())
        matched = sorted(map(str, world.engine.match(EVENT)))
        for number in range(first, end):
            NOW.pack_into(now, 0, number)
            draw = random.Random(f"{seed} {number}")
            (door,) = draw.choices(ways, weights)
            try:
                door(draw)
            except TamisError as why:
                str(why).encode()  # a message can be shown
            except Exception as why:  # noqa: BLE001 - any other error is what is looked for
                _note(folder, number, door.__name__, why)
            if number % _CHECKED == 0 or number + 1 == end:
                world.engine.check()
                assert sorted(map(str, world.engine.match(EVENT))) == matched
        NOW.pack_into(now, 0, end)


def _note(folder: Path, number: int, door: str, why: Exception) -> None:
    error = "".join(traceback.format_exception(why, limit=-6))
    with (folder / "wrong").open("a") as file:
        file.write(json.dumps({"input": number, "door": door, "error": error[-3000:]}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
