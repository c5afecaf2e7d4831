"""The command `tamis`: the table of its commands, and what becomes of errors.

A user's mistake is one message on standard error and exit code 2. Only a bug of ours shows a
traceback.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import NamedTuple

import click

from tamis import __version__
from tamis.errors import TamisError

REFUSED = 2  # what click uses for a wrong option as well
INTERRUPTED = 130  # 128 + SIGINT, as shells count


class Entry(NamedTuple):
    """What the help says of a command, without importing it."""

    path: str  # module:function, imported when used
    help: str


# Each command's module may import whatever it likes: `tamis --help` imports none of them.
COMMANDS = {
    "demo": Entry("tamis.cli.demo:demo", "Auctions flow past tens of thousands of subscriptions."),
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


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].path.partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
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
