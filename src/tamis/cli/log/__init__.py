"""`tamis log`: create and fill a log, look into it, look after it. No command needs Spark."""

from __future__ import annotations

import click

from tamis.cli.lazy import LazyGroup

_MAINTENANCE = "tamis.cli.log.maintenance"
_SUBSCRIPTIONS = "tamis.cli.log.subscriptions"

COMMANDS = {
    "Fill": {
        "create": ("tamis.cli.log.publish:create", "Create an empty log."),
        "publish": ("tamis.cli.log.publish:publish", "Append the events of a file."),
        "subscribe": (f"{_SUBSCRIPTIONS}:subscribe", "Append a subscription, or those of a file."),
        "cancel": (f"{_SUBSCRIPTIONS}:cancel", "End subscriptions."),
    },
    "Read": {
        "tail": ("tamis.cli.log.contents:tail", "Print the last events, and those that follow."),
        "stats": ("tamis.cli.log.contents:stats", "Count what a log holds."),
        "export": (f"{_SUBSCRIPTIONS}:export", "Write the live subscriptions to a file."),
        "schema": (f"{_MAINTENANCE}:schema", "Print the schema as YAML."),
    },
    "Look after": {
        "verify": (f"{_MAINTENANCE}:verify", "Read all of a log, and say what is damaged or lost."),
        "repair": (f"{_MAINTENANCE}:repair", "Mend a damaged log."),
        "trim": (f"{_MAINTENANCE}:trim", "Delete old rows."),
        "extend": (f"{_MAINTENANCE}:extend", "Extend the schema."),
        "upgrade": (f"{_MAINTENANCE}:upgrade", "Rewrite a log of an earlier format."),
    },
    "Move from and to PostgreSQL": {
        "mirror": ("tamis.cli.log.mirror:mirror", "Copy a log from PostgreSQL into a folder."),
        "upload": ("tamis.cli.log.mirror:upload", "Move a data folder into PostgreSQL."),
        "download": (
            "tamis.cli.log.mirror:download",
            "Move a log from PostgreSQL into a data folder.",
        ),
    },
}


@click.group(cls=LazyGroup, tables=COMMANDS)
def log() -> None:
    """Create, fill, read and look after a log."""
