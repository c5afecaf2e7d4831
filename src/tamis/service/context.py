"""What everything that answers requests has in common."""

from __future__ import annotations

from starlette.requests import Request

from tamis.broker.access.caller import ANONYMOUS, Caller
from tamis.broker.broker import Broker
from tamis.errors import TamisError
from tamis.service.problems import HttpError
from tamis.service.rate_limit import CallerRates
from tamis.service.settings import Settings
from tamis.service.shared_reading import SharedReadings
from tamis.service.waiting import Waiting


class ServiceContext:
    """What the routes share: the broker, the settings, and the readers that wait."""

    def __init__(self, broker: Broker, settings: Settings, waiting: Waiting) -> None:
        self.broker, self.settings, self.waiting = broker, settings, waiting
        self.readings = SharedReadings(broker, waiting)
        self.rates = CallerRates(settings.limits, self._is_key)
        self._anonymous = settings.anonymous  # each request asks

    def caller(self, request: Request) -> Caller:
        """Who calls over HTTP."""
        return self.holder(request.headers.get("authorization"))

    def _is_key(self, key: str) -> bool:
        try:
            return self.broker.keys.caller(key) is not None
        except TamisError:  # the database is away; the call itself says so
            return False

    def holder(self, given: str | None) -> Caller:
        """Who calls: the holder of the key in `Authorization: Bearer`, or nobody known."""
        if given is None:
            if not self._anonymous:
                raise HttpError(401, "this service needs a key: Authorization: Bearer KEY")
            return ANONYMOUS
        kind, _, key = given.partition(" ")
        caller = self.broker.keys.caller(key.strip()) if kind.lower() == "bearer" else None
        if caller is None:
            raise HttpError(401, "this key is unknown; it may have been revoked")
        return caller
