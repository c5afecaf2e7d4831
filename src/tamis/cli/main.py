"""The command `tamis`: its table of commands, and its handling of errors.

A user's mistake gives one message on standard error and exit code 2. If Spark's Java process ends,
the exit code is 1. Only a bug in tamis shows a traceback. All output passes `terminal.printable`.
"""

from __future__ import annotations

import os
import sys

import click

from tamis import __version__
from tamis.cli.lazy import LazyGroup
from tamis.cli.terminal.mistakes import mistake_text
from tamis.cli.terminal.printable import printable, printable_output
from tamis.errors import SparkGoneError, TamisError

FAILED = 1  # not by a mistake of the user
REFUSED = 2  # as click exits for a wrong option
INTERRUPTED = 130  # 128 + SIGINT, as in a shell
# The extras of the package that bring optional libraries.
EXTRAS = {
    "pyspark": "spark",
    "pandas": "spark",
    "matplotlib": "lab",
    "duckdb": "sql",
    "psycopg": "postgresql",
    "httpx2": "client",
    "msgspec": "client",
    **dict.fromkeys(
        ("apsw", "fastapi", "grpc", "prometheus_client", "starlette", "structlog", "uvicorn"),
        "service",
    ),
}


# In the order in which a person meets them.
COMMANDS = {
    "Try": {
        "demo": ("tamis.cli.demo.command:demo", "Run the whole system on auctions."),
        "check": ("tamis.cli.language:check", "Check a condition against a schema."),
        "explain": (
            "tamis.cli.language:explain",
            "Explain why an event matches a condition, or why not.",
        ),
        "translate": (
            "tamis.cli.language:translate",
            "Show what a condition in another language means.",
        ),
        "schema": ("tamis.cli.language:schema", "Summarise the schema of a file or a service."),
    },
    "Match files": {
        "match": ("tamis.cli.match:match", "Match events in files against subscriptions in files."),
        "redundancy": (
            "tamis.cli.redundancy:redundancy",
            "List the subscriptions of files that are redundant.",
        ),
    },
    "Run a service": {
        "serve": ("tamis.cli.serve:serve", "Serve a data folder: publish, subscribe, be notified."),
        "keys": ("tamis.cli.keys:keys", "Create, list and revoke the API keys of a service."),
        "backup": (
            "tamis.cli.maintenance:backup",
            "Back up the data folder of a service, even while it runs.",
        ),
        "restore": ("tamis.cli.maintenance:restore", "Restore a data folder from a backup."),
        "erase": ("tamis.cli.maintenance:erase", "Erase an owner or an event from a data folder."),
        "switch-matching": (
            "tamis.cli.serve:switch_matching",
            "Choose whether a service or Spark matches its events.",
        ),
    },
    "Call a service": {
        "subscribe": (
            "tamis.cli.service.subscriptions:subscribe",
            "Subscribe to events of a service.",
        ),
        "renew": ("tamis.cli.service.subscriptions:renew", "Renew the lease of a subscription."),
        "unsubscribe": ("tamis.cli.service.subscriptions:unsubscribe", "End a subscription."),
        "import": (
            "tamis.cli.service.transfer:import_file",
            "Subscribe to all conditions in a file.",
        ),
        "export": (
            "tamis.cli.service.transfer:export_file",
            "Write the live subscriptions of a service to a file.",
        ),
        "publish": ("tamis.cli.service.publish:publish", "Publish events in files to a service."),
        "tail": ("tamis.cli.service.tail:tail", "Follow the notifications of a service."),
        "dead": ("tamis.cli.service.dead:dead", "List and retry webhooks that were given up."),
        "backtest": (
            "tamis.cli.backtest:backtest",
            "Count the past events that a condition would have matched.",
        ),
    },
    "Spark and the log": {
        "spark": ("tamis.cli.spark:spark", "Run jobs on Spark."),
        "log": ("tamis.cli.log:log", "Create, fill, read and maintain a log."),
    },
    "Look inside": {
        "plan": ("tamis.cli.plan:plan", "Show where subscriptions are stored, and why."),
        "matchers": ("tamis.cli.registries:matchers", "List the matching algorithms."),
        "operators": ("tamis.cli.registries:operators", "List the operators for conditions."),
        "schedulers": (
            "tamis.cli.registries:schedulers",
            "List the algorithms that order operator calls.",
        ),
    },
    "Measure": {
        "bench": ("tamis.cli.bench:bench", "Measure this installation."),
        "plot": ("tamis.cli.bench:plot", "Plot a result file of tamis bench."),
        "lab": ("tamis.cli.lab:lab", "Run the experiments of the papers, and judge their claims."),
        "soak": ("tamis.cli.soak:soak", "Compare matchers over thousands of random operations."),
    },
    "The shell": {
        "completion": (
            "tamis.cli.completion:completion",
            "Print a script by which a shell completes commands.",
        ),
    },
}


@click.group(
    cls=LazyGroup, tables=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="tamis")
def tamis() -> None:
    """Match streams of events against large sets of subscriptions."""


def main(arguments: list[str] | None = None) -> None:
    """The entry point of the console script."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell, as in `tamis matchers >&-`
            nothing = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(nothing, "r" if name == "stdin" else "w"))
    with printable_output():
        return _call(arguments)


def _call(arguments: list[str] | None) -> int:
    try:
        left = tamis.main(arguments, prog_name="tamis", standalone_mode=False)
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):  # click raises Abort for Ctrl-C
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return REFUSED
    except click.ClickException as error:
        _say(mistake_text(error))
        return error.exit_code
    except (BrokenPipeError, SystemExit) as leaving:  # click makes the first into the second
        if getattr(leaving, "code", FAILED) == 0:
            return 0  # click has answered a shell that completes
        _drop_output()  # the reader is gone, as in `tamis matchers | head -1`
        return FAILED
    except SparkGoneError as error:
        return _refused(str(error), FAILED)
    except TamisError as error:
        return _refused(str(error))
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        return _refused(f"this command needs {package}: pip install 'tamis[{EXTRAS[package]}]'")
    except MemoryError:
        return _refused("there is not enough memory")
    except OSError as error:  # an unreadable path, a full disk
        if error.filename is None:
            _drop_output()
            return _refused(f"cannot go on: {error.strerror or error}")
        return _refused(f"{error.filename}: {error.strerror}")
    return left if isinstance(left, int) else 0  # click gives the code of an `Exit`


def _refused(why: str, code: int = REFUSED) -> int:
    _say(f"tamis: {why}")
    return code


def _say(mistake: str) -> None:
    """Print a mistake. Of what is not escaped, `click.echo` drops control sequences."""
    click.echo(printable(mistake), err=True)


def _drop_output() -> None:
    """Discard unwritten output: Python would complain about it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
