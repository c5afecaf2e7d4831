"""The command `tamis`: the table of its commands, and what becomes of errors.

A user's mistake is one message on standard error and exit code 2. Only a bug of ours shows a
traceback.
"""

from __future__ import annotations

import os
import sys

import click

from tamis import __version__
from tamis.cli.lazy import Entry, LazyGroup
from tamis.errors import TamisError

REFUSED = 2  # what click uses for a wrong option as well
INTERRUPTED = 130  # 128 + SIGINT, as shells count


# Each command's module may import whatever it likes: `tamis --help` imports none of them.
COMMANDS = {
    "demo": Entry("tamis.cli.demo:demo", "Auctions live on Spark, until Ctrl-C."),
    "tour": Entry("tamis.cli.tour:tour", "The engine alone, at work on auctions for ten seconds."),
    "spark": Entry("tamis.cli.spark:spark", "Jobs on Spark: run and others."),
    "check": Entry("tamis.cli.language:check", "Check a condition against a schema."),
    "explain": Entry("tamis.cli.language:explain", "Say why an event matches a condition, or not."),
    "schema": Entry("tamis.cli.language:schema", "Check a schema file and summarise it."),
    "matchers": Entry("tamis.cli.matchers:matchers", "List the matching algorithms."),
    "operators": Entry("tamis.cli.operators:operators", "List the operators for conditions."),
    "schedulers": Entry("tamis.cli.operators:schedulers", "List what decides their order."),
    "soak": Entry("tamis.cli.soak:soak", "Compare matchers over thousands of random operations."),
    "bench": Entry("tamis.cli.bench:bench", "Measure this installation on this machine."),
    "plot": Entry("tamis.cli.plot:plot", "Draw results that bench kept, without measuring."),
    "plan": Entry("tamis.cli.plan:plan", "Show where subscriptions are put, and why."),
}


@click.group(
    cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="tamis")
def tamis() -> None:
    """Match streams of events against large sets of subscriptions."""


def main(arguments: list[str] | None = None) -> None:
    """The entry point of the console script."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    try:
        tamis.main(arguments, prog_name="tamis", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:  # what click makes of Ctrl-C
        return INTERRUPTED
    except KeyboardInterrupt:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except BrokenPipeError:
        _drop_output()  # the reader has gone, as in `tamis matchers | head -1`
        return 1
    except TamisError as error:
        return _refused(str(error))
    except MemoryError:
        return _refused("there is not enough memory for that")
    except OSError as error:  # a path that cannot be read or written, a full disk
        if error.filename is None:
            _drop_output()
            return _refused(f"cannot go on: {error.strerror or error}")
        return _refused(f"{error.filename}: {error.strerror}")
    return 0


def _refused(why: str) -> int:
    click.echo(f"tamis: {why}", err=True)
    return REFUSED


def _drop_output() -> None:
    """Forget what standard output did not take: Python would complain again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
