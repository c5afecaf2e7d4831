"""Encoders of schemas, kept: one is costly to make, and every task needs it."""

from __future__ import annotations

import json
from functools import lru_cache

from tamis.encode.encoder import Encoder
from tamis.model.schema import Schema


@lru_cache(maxsize=4)
def schema_encoder(document: str) -> Encoder:
    """The encoder of a schema, given as JSON; it validates events, and holds no subscriptions."""
    return Encoder(Schema.from_dict(json.loads(document)))
