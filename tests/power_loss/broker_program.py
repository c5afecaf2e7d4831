"""A broker in use. Run as: broker_program.py FOLDER SEED TURNS

Acknowledgements are as in `log_program`.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent
from tamis.broker.matching import inline_matching
from tamis.store import segment_files

SCHEMA = {"attributes": {"price": "decimal", "title": "text"}}


def main(folder: str, seed: str, turns: str) -> None:
    segment_files.MOST = 8  # packs, so that there are several segments
    inline_matching.FLUSH = 0.01  # so that there are many manifests
    draw, place = random.Random(int(seed)), Path(folder)
    noted = os.open(place / "acknowledged", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def acknowledge(**what: object) -> None:
        os.write(noted, json.dumps(what).encode() + b"\n")

    broker = Broker(place / "data", SCHEMA)
    tickets: dict[object, str] = {}
    for turn in range(int(turns)):
        chance, name = draw.random(), f"{seed}.{turn}"
        if chance < 0.45:
            texts = [json.dumps({"price": draw.randrange(9), "title": name})] * draw.choice((1, 3))
            given = [IncomingEvent(text, "source", f"{name}.{n}") for n, text in enumerate(texts)]
            numbers = broker.publish(given).result().numbers
            acknowledge(events=numbers, title=name)
        elif chance < 0.65:
            lease = broker.subscribe(f"price < {draw.randrange(1, 9)}", name=name).result()
            tickets[lease.id] = lease.ticket
            acknowledge(subscribed=lease.id, ticket=lease.ticket)
        elif chance < 0.75 and tickets:
            id, ticket = tickets.popitem()
            assert isinstance(id, int)
            broker.cancel(id, ticket=ticket).result()
            acknowledge(cancelled=id)
        elif chance < 0.85:
            broker.consumers.set_cursor("ann", "reader", turn)
            acknowledge(cursor=turn)
        elif chance < 0.92:
            acknowledge(key=broker.keys.create(name, ["publisher"]))
        else:
            broker.close()
            broker = Broker(place / "data")
    broker.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
