"""The places on the map of the console."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tamis.service.console.session_routes import PREFIX, signed_in_caller

_PLACES = ("nyc-boroughs.geojson", "nyc-landmarks.geojson")
router = APIRouter(prefix=PREFIX, include_in_schema=False)


@router.get("/places")
def places(request: Request) -> Response:
    """The boroughs and landmarks of the pack for places, as GeoJSON."""
    signed_in_caller(request)
    features: list[Any] = []
    for name in _PLACES:
        features += msgspec.json.decode((files("tamis") / "data" / name).read_bytes())["features"]
    whole = {"type": "FeatureCollection", "features": features}
    return Response(msgspec.json.encode(whole), media_type="application/geo+json")
