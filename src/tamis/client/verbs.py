"""The verbs of the service, which both clients have."""

from __future__ import annotations

from tamis.client import backtest_plans, delivery_plans, plans, schema_plans
from tamis.client.call import Verb
from tamis.client.event_batches import publish


class Verbs:
    """One request each. `Client` returns the answer, `AsyncClient` an awaitable."""

    publish = Verb(publish)
    event = Verb(plans.event)
    subscribe = Verb(plans.subscribe)
    subscribe_many = Verb(plans.subscribe_many)
    show = Verb(plans.show)
    list = Verb(plans.list_page)
    update = Verb(plans.update)
    renew = Verb(plans.renew)
    cancel = Verb(plans.cancel)
    poll = Verb(plans.poll)
    cursor = Verb(plans.cursor)
    set_cursor = Verb(plans.set_cursor)
    check = Verb(plans.check)
    explain = Verb(plans.explain)
    match = Verb(plans.match)
    start_backtest = Verb(backtest_plans.start_backtest)
    show_backtest = Verb(backtest_plans.show_backtest)
    cancel_backtest = Verb(backtest_plans.cancel_backtest)
    schema = Verb(schema_plans.schema)
    create_domain = Verb(schema_plans.create_domain)
    create_attribute = Verb(schema_plans.create_attribute)
    extend_event_type = Verb(schema_plans.extend_event_type)
    create_event_type = Verb(schema_plans.create_event_type)
    grow_domain = Verb(schema_plans.grow_domain)
    ready = Verb(plans.ready)
    create_key = Verb(plans.create_key)
    list_keys = Verb(plans.list_keys)
    revoke_key = Verb(plans.revoke_key)
    rotate_secret = Verb(delivery_plans.rotate_secret)
    dead_letters = Verb(delivery_plans.dead_letters)
    retry_dead_letter = Verb(delivery_plans.retry_dead_letter)
    replay = Verb(delivery_plans.replay)
