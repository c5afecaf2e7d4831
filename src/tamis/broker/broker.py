"""The broker: one service layer under HTTP, gRPC and programs.

Each verb prepares a request in the thread of its caller and hands it to the sequencer. A verb that
returns a future is answered when its effect is on disk.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import Any, Self

from tamis.broker.access.api_keys import ApiKeys
from tamis.broker.access.caller import ANONYMOUS, PUBLISHER, SUBSCRIBER, Caller
from tamis.broker.access.lease_office import Lease, LeaseOffice
from tamis.broker.access.tickets import NONCE
from tamis.broker.bulk_subscribe import BulkAnswer, BulkSubscriber, BulkSubscription
from tamis.broker.consumers import Consumers
from tamis.broker.data_folder import DataFolder
from tamis.broker.delivery.sink_address import SinkRules
from tamis.broker.delivery.sinks import Sink
from tamis.broker.delivery.webhooks import Webhooks
from tamis.broker.incoming import IncomingEvent, prepare_events
from tamis.broker.limits import Limits
from tamis.broker.matching.notification_files import NotificationPairs
from tamis.broker.matching.notification_reader import NotificationReader, Page
from tamis.broker.matching.readable_matching import ReadableMatching
from tamis.broker.matching.wanted_ids import WantedIds
from tamis.broker.notification_body import Body, shape_event
from tamis.broker.preparation import (
    KEY,
    NAME,
    ConditionChecker,
    checked_text,
    metadata_text,
)
from tamis.broker.questions.backtests import Backtests
from tamis.broker.questions.explainer import Explainer
from tamis.broker.questions.redundancy_reports import RedundancyReports
from tamis.broker.recovery import Recovered, recover
from tamis.broker.sequence.answers import converted
from tamis.broker.sequence.clock import LogClock, wall_clock
from tamis.broker.sequence.dedup import DedupKeys
from tamis.broker.sequence.requests import (
    Expire,
    Extend,
    Follow,
    Publish,
    Receipt,
    Row,
    Subscribe,
)
from tamis.broker.sequence.sequencer import Committed, Sequencer
from tamis.broker.state import StoredSubscription
from tamis.broker.storage import open_storage
from tamis.broker.subscription_editor import SubscriptionEdit, SubscriptionEditor
from tamis.errors import BrokerError
from tamis.language.dialects import NATIVE
from tamis.model.explain import Explanation
from tamis.model.schema import Schema
from tamis.operators.enabled_operators import EnabledOperators
from tamis.store.changes import SUBSCRIBE
from tamis.store.subscription_snapshot import Id

DAY = timedelta(days=1)
LONGEST = timedelta(days=366)


class Broker:
    """A log with subscriptions that come and go, and events that are published.

    >>> import tempfile; place = tempfile.TemporaryDirectory()
    >>> broker = Broker(place.name, {"attributes": {"price": "decimal"}})
    >>> lease = broker.subscribe("price < 5").result()
    >>> broker.publish([IncomingEvent('{"price": 4}')]).result().numbers
    [1]
    >>> broker.cancel(lease.id, ticket=lease.ticket).result()
    >>> broker.close()
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        schema: Schema | Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        clock: Callable[[], int] | None = None,
        matching: str | bool = True,
        found: Callable[[NotificationPairs], None] = lambda pairs: None,
        failed: Callable[[], None] = lambda: None,
        sinks: SinkRules | None = None,
        operators: Iterable[str] = (),
        rebuild: bool = False,
        database: str | None = None,
        at_once: bool = False,
    ) -> None:
        """`operators` are packs, operators and modules that conditions may call: no others.

        With `at_once`, a simple matcher stands in while the default one is compiled for the first
        time on a machine.
        """
        self.operators = EnabledOperators.named(operators)
        self.folder = DataFolder(Path(folder))
        self.limits = limits or Limits()
        with ExitStack() as opened:
            storage = open_storage(self.folder, schema, database, rebuild)
            opened.callback(storage.close)
            self.log, self.state, records = storage.log, storage.state, storage.records
            if rebuild:
                self.state.clear()
            self.keys = ApiKeys(records)
            self.consumers = Consumers(records)
            dedup = DedupKeys()
            self.recovered: Recovered = recover(self.log, self.state, dedup)
            self._tickets = storage.tickets()
            self._clock = LogClock(clock or wall_clock, self.recovered.moment)
            rules, limits = sinks or SinkRules(), self.limits
            self.webhooks = Webhooks(storage, self._tickets, self._clock.now, rules, limits)
            self._leases = LeaseOffice(self.state, self._tickets, self.webhooks.secrets)
            self._explainer = Explainer(self.operators)
            opened.callback(self._explainer.close)
            self._checker = ConditionChecker(self.log.schema_at(), self.operators)
            parts = (self._checker, self._leases, self.webhooks.accept, self._clock.now)
            self._bulk = BulkSubscriber(self.log.ids, self.limits, *parts)
            self.backtests = Backtests(self.log, self.operators)
            opened.callback(self.backtests.stop)
            self.redundancy = RedundancyReports(
                self.log, self.state, self.operators, self._clock.now, limits.redundancy
            )
            opened.callback(self.redundancy.stop)
            self._matching: ReadableMatching | None = None
            if matching:

                def tell(pairs: NotificationPairs) -> None:
                    found(pairs)
                    self.webhooks.found(pairs)

                wanted = matching if isinstance(matching, str) else None
                self._matching = storage.matching(tell, wanted, self.operators, at_once)
                opened.callback(self._matching.stop)
                self.webhooks.start(self._matching)
                opened.callback(self.webhooks.stop)
            self._sequencer = Sequencer(
                self.log, self.state, dedup, self._clock, self._feed, failed, storage.turns
            )
            opened.callback(self._sequencer.stop)
            self._editor = SubscriptionEditor(
                self._sequencer.submit, self._leases, self._checker, self.limits
            )
            self.webhooks.pause_while(lambda: self._sequencer.is_behind)
            storage.watch(self.follow)
            self._opened = opened.pop_all()

    def follow(self) -> Future[None]:
        """Take in what other services on the same database have done; done once it is known."""
        return self._sequencer.submit(Follow())

    def close(self) -> None:
        """Finish what was asked, and release the folder."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def schema(self) -> Schema:
        """The schema at the end of the log."""
        return self._sequencer.schema

    @property
    def failure(self) -> BaseException | None:
        """Why the broker has stopped, if it could not write."""
        return self._sequencer.failure

    def now(self) -> int:
        """The moment by the clock of the log, in microseconds since 1970."""
        return self._clock.now()

    def _feed(self, pack: Committed) -> None:
        if self._matching is not None:
            self._matching.feed(pack)

    @property
    def matching(self) -> ReadableMatching:
        """The matching of this broker; raises `BrokerError` if something else matches."""
        if self._matching is None:
            raise BrokerError("this broker does not match; ask the one that does")
        return self._matching

    # -- events ----------------------------------------------------------------------------------

    def publish(
        self, events: Iterable[IncomingEvent], caller: Caller = ANONYMOUS
    ) -> Future[Receipt]:
        """Publish events, all or none. An invalid one is refused with its place."""
        caller.require(PUBLISHER)
        given, schema = list(events), self.schema
        if len(given) > self.limits.events:
            raise BrokerError(
                f"{len(given):,} events are more than the {self.limits.events:,} that one publish "
                "may have; send them in several"
            )
        limits = (self.limits.event_bytes, self.limits.attributes)
        prepared = prepare_events(given, schema, *limits)
        return self._sequencer.submit(
            Publish(prepared, schema, lambda later: prepare_events(given, later, *limits))
        )

    # -- subscriptions ---------------------------------------------------------------------------

    def subscribe(
        self,
        condition: str,
        *,
        caller: Caller = ANONYMOUS,
        id: str | None = None,
        lease: timedelta | None = DAY,
        language: str = NATIVE,
        name: str | None = None,
        sink: Sink | None = None,
        metadata: Mapping[str, Any] | None = None,
        request_key: str | None = None,
    ) -> Future[Lease]:
        """Add a subscription, which ends after its lease; None: it does not end.

        A second request with the same `request_key` of the same owner adds nothing, and gets the
        same answer. An `id` is for logs with text ids; elsewhere the broker chooses it.
        """
        caller.require(SUBSCRIBER)
        self._check_id(id)
        self._checker.check(condition, language, self.schema)
        row: Row = {
            "kind": SUBSCRIBE,
            "id": id,
            "condition": condition,
            "until": self._until(lease),
            "owner": caller.name,
            "name": checked_text(name, "the name", NAME),
            "language": None if language == NATIVE else language,
            "request_key": checked_text(request_key, "the key of the request", KEY),
            "sink": None if sink is None else self.webhooks.accept(sink).to_text(),
            "nonce": secrets.token_bytes(NONCE),
            "key_generation": self._tickets.generation,
            "metadata": metadata_text(metadata, self.limits.metadata_bytes),
        }
        schema = self.schema
        most = None if caller.is_admin else self.limits.subscriptions
        return converted(
            self._sequencer.submit(
                Subscribe(
                    row,
                    schema,
                    lambda later: self._checker.check(condition, language, later),
                    most,
                )
            ),
            lambda known: self._leases.lease(known, with_secret=bool(sink and sink.url)),
        )

    def subscribe_many(
        self,
        given: Sequence[BulkSubscription],
        caller: Caller = ANONYMOUS,
        *,
        together: bool = False,
        request_key: str | None = None,
    ) -> Future[BulkAnswer]:
        """Add many subscriptions: all that are right, or with `together` all or none."""
        return self._bulk.subscribe(
            given,
            self.schema,
            self._sequencer.submit,
            caller,
            together=together,
            request_key=request_key,
        )

    def update(
        self,
        id: Id,
        *,
        ticket: str | None = None,
        caller: Caller = ANONYMOUS,
        condition: str | None = None,
        name: str | None = None,
        sink: Sink | None = None,
        metadata: Mapping[str, Any] | None = None,
        remove: Collection[str] = (),
    ) -> Future[StoredSubscription]:
        """Change a live subscription: what is given. It keeps its id, lease and ticket.

        `remove` names what it is to have no more: name, sink or metadata. Without a sink, nothing
        is sent any more, also no notification that waits for a retry.
        """
        if sink is not None:  # nobody else may have a name resolved
            self.subscription(id, ticket=ticket, caller=caller)
            self.webhooks.accept(sink)
        edit = SubscriptionEdit(condition, name, sink, metadata, frozenset(remove))
        return self._editor.update(id, edit, ticket, caller)

    def renew(
        self,
        id: Id,
        lease: timedelta | None = DAY,
        *,
        ticket: str | None = None,
        caller: Caller = ANONYMOUS,
    ) -> Future[StoredSubscription]:
        """Let the lease of a live subscription end so much later than now."""
        return self._editor.renew(id, self._until(lease), ticket, caller)

    def cancel(
        self, id: Id, *, ticket: str | None = None, caller: Caller = ANONYMOUS
    ) -> Future[None]:
        """End a live subscription."""
        return self._editor.cancel(id, ticket, caller)

    def subscription(
        self, id: Id, *, ticket: str | None = None, caller: Caller = ANONYMOUS
    ) -> StoredSubscription:
        """A live subscription, for its owner or the holder of its ticket."""
        return self._leases.authorised(self.state.subscription(id), id, ticket, caller)

    def expire_due(self) -> int:
        """End the leases that are due; how many there were. The broker does so each second."""
        return int(self._sequencer.submit(Expire()).result())

    # -- notifications ---------------------------------------------------------------------------

    def readable(
        self, caller: Caller = ANONYMOUS, id: Id | None = None, ticket: str | None = None
    ) -> list[Id] | None:
        """The subscriptions whose notifications a caller may read; None: all.

        One subscription for the holder of its ticket, all of an owner for the owner, and all for an
        admin. Those that have ended are among them: their notifications stay.
        """
        return self._leases.readable(caller, id, ticket)

    def notifications(
        self,
        after: int,
        ids: WantedIds | list[Id] | None,
        most: int = 1000,
        *,
        body: Body | None = None,
    ) -> Page:
        """Notifications of some subscriptions (see `readable`) after a cursor.

        Each has as much of its event as its subscription asks for, or as `body` says.
        """
        page = NotificationReader(self.log, self.matching).page(after, ids, most)
        body_of = self.webhooks.index.body
        shown = [
            each._replace(event=shape_event(each.event, body or body_of(each.subscription)))
            for each in page.notifications
        ]
        return page._replace(notifications=shown)

    # -- questions -------------------------------------------------------------------------------

    def check(self, condition: str, language: str = NATIVE) -> None:
        """Raise what a subscribe with this condition would raise."""
        self._checker.check(condition, language, self.schema)

    def explain(
        self, condition: str, event: Mapping[str, Any], language: str = NATIVE
    ) -> Explanation:
        """Explain why an event satisfies a condition or not."""
        return self._explainer.explain(self.schema, condition, event, language)

    def dry_run(self, event: Mapping[str, Any], caller: Caller = ANONYMOUS) -> list[Id]:
        """The subscriptions of a caller that an event would match now; all for an admin.

        They come in the order of their ids.
        """
        found = self.matching.dry_run(event)
        if not caller.is_admin:
            mine = set() if caller.name is None else set(self.state.ids_of(caller.name))
            found = [id for id in found if id in mine]
        return sorted(found)

    # -- the schema ------------------------------------------------------------------------------

    def extend(self, build: Callable[[Schema], Schema]) -> Future[int]:
        """Extend the schema: `build` makes the next one of the present one.

        Returns the sequence number from which on it holds.
        """
        return self._sequencer.submit(Extend(build))

    # -- helpers ---------------------------------------------------------------------------------

    def _check_id(self, id: str | None) -> None:
        checked_text(id, "the id", NAME)
        if self.log.ids == "text" and id is None:
            raise BrokerError("this log has text ids; a subscribe needs an id")
        if self.log.ids == "int64" and id is not None:
            raise BrokerError("the broker chooses the ids of this log; leave the id out")

    def _until(self, lease: timedelta | None) -> int | None:
        if lease is None:
            return None
        if not timedelta(0) < lease <= LONGEST:
            raise BrokerError(f"a lease is longer than 0 and at most {LONGEST.days} days")
        return self._clock.now() + lease // timedelta(microseconds=1)
