"""Two brokers on one PostgreSQL against the model of one: each step asks the next of them."""

from __future__ import annotations

import os
import shutil
from itertools import count
from pathlib import Path

import psycopg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from tamis.broker.broker import Broker
from tamis.broker.data_folder import DataFolder
from tests.unit.broker.test_broker_model import SCHEMA, BrokerMachine

pytestmark = pytest.mark.slow

BOTH = 2


class SharedMachine(BrokerMachine):
    """All that a broker does, by two brokers in turn, one of which may start again."""

    def open(self) -> None:
        self.database = os.environ["TAMIS_POSTGRESQL"]
        with psycopg.connect(self.database) as base:
            base.execute("DROP SCHEMA IF EXISTS tamis CASCADE")
        self.turn = count()
        self.brokers: list[Broker] = []
        for at in range(BOTH):
            self.brokers.append(self.start_one(at))

    def start_one(self, at: int, rebuild: bool = False) -> Broker:
        folder, first = Path(self.place.name, str(at)), Path(self.place.name, "0")
        folder.mkdir(exist_ok=True)
        if at and not (folder / "server.key").exists():
            shutil.copy(first / "server.key", folder)
        return Broker(folder, SCHEMA, clock=self.clock, database=self.database, rebuild=rebuild)

    @property
    def broker(self) -> Broker:
        """The next broker, which knows what the one before has done."""
        broker = self.brokers[next(self.turn) % BOTH]
        broker.follow().result()
        return broker

    @broker.setter
    def broker(self, broker: Broker) -> None:
        raise AssertionError("each rule asks for one")

    def close(self) -> None:
        for each in self.brokers:
            each.close()

    @rule(lose_state=st.booleans(), lose_notifications=st.booleans())
    def start_again(self, lose_state: bool, lose_notifications: bool) -> None:
        at = next(self.turn) % BOTH
        self.brokers[at].close()
        if lose_notifications:
            folder = DataFolder(Path(self.place.name, str(at)))
            shutil.rmtree(folder.notifications, ignore_errors=True)
        self.brokers[at] = self.start_one(at, rebuild=lose_state)


TestShared = pytest.mark.postgresql(SharedMachine.TestCase)
TestShared.settings = settings(max_examples=6, stateful_step_count=20, deadline=None)
