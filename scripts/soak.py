"""Run campaigns of damage, kills, interrupts and fuzzing in turns, for a given time.

    python scripts/soak.py [--minutes N] [--campaigns NAME,NAME] [--fresh]

A campaign is a test that tries something many times, such as a flipped bit. A round of a campaign
has a seed of its own. The totals so far are in out/soak/totals.json, by commit, and the next run
continues from there. The output of a round that fails is kept in out/soak/failures, with the
command that repeats the round. The exit code is 1 if anything has failed on this commit.
"""

import argparse
import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tamis.errors import TamisError
from tamis.files.json_document import read_object, write_json

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "out" / "soak"
TOTALS = "totals.json"
LONGEST = 1800.0  # seconds after which a round counts as hanging
PATIENCE = 30.0  # seconds that an interrupted round has to end its processes


@dataclass(frozen=True)
class Campaign:
    """Something that is tried many times.

    `node` names tests, separated by spaces. A test reads the number of tries from `variable` and
    says what it did with `tests.soak_report.record`. A campaign without a variable is a command of
    tamis instead.
    """

    name: str
    node: str
    variable: str
    required: int
    each_round: int

    def command(self, count: int, seed: int) -> list[str]:
        if not self.variable:
            return [sys.executable, "-m", "tamis.cli.main", *self.node.split(),
                    str(count), "--seed", str(seed)]  # fmt: skip
        return [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            *self.node.split(),
        ]

    def environment(self, count: int, seed: int) -> dict[str, str]:
        return {self.variable: str(count), "TAMIS_SOAK_SEED": str(seed)} if self.variable else {}


STORE = "tests/unit/store/test_damage_campaign.py"
CAMPAIGNS = (
    Campaign("damage-flips", f"{STORE}::test_every_flipped_bit_is_found",
             "TAMIS_FLIPS", 10_000, 2_000),
    Campaign("damage-files", f"{STORE}::test_every_damaged_file_is_found",
             "TAMIS_FILE_DAMAGE", 1_000, 1_000),
    Campaign("log-kills", "tests/unit/store/test_log_kills.py", "TAMIS_LOG_KILLS", 900, 300),
    Campaign("service-kills", "tests/faults/test_service_kills.py",
             "TAMIS_SERVICE_KILLS", 1_000, 100),
    Campaign("broker-model", "tests/unit/broker/test_broker_model.py",
             "TAMIS_BROKER_STEPS", 100_000, 5_000),
    Campaign("failed-writes", "tests/faults/test_failed_writes.py",
             "TAMIS_FAILED_WRITES", 1_000, 50),
    Campaign("full-disks", "tests/faults/test_full_disk.py", "TAMIS_FULL_DISKS", 20, 5),
    Campaign("fuzz", "tests/fuzzing/test_doors.py", "TAMIS_FUZZED", 1_000_000, 100_000),
    Campaign("http-fuzz", "tests/integration/service/test_http_fuzz.py",
             "TAMIS_HTTP_FUZZ", 100_000, 5_000),
    Campaign("interrupts", "tests/unit/engine/test_interrupts.py",
             "TAMIS_INTERRUPTS", 10_000, 1_000),
    Campaign("many-callers", "tests/unit/engine/test_many_callers.py",
             "TAMIS_MANY_CALLERS", 10_000_000, 2_000_000),
    Campaign("forged", "tests/unit/engine/test_forged_index.py", "TAMIS_FORGED", 10_000, 1_000),
    Campaign("power-losses", "tests/power_loss tests/integration/spark/test_power_loss.py",
             "TAMIS_POWER_LOSSES", 5_000, 200),
    Campaign("matchers", "soak --operations", "", 20_000, 1_000),
    Campaign("constructs", "tests/conformance/test_constructs.py",
             "TAMIS_CONSTRUCTS", 10_000_000, 1_000_000),
    Campaign("redundancy", "tests/unit/engine/test_redundancy.py",
             "TAMIS_REDUNDANCY", 100_000, 5_000),
    Campaign("event-ruler", "tests/conformance/test_event_ruler.py",
             "TAMIS_EVENT_RULER", 1_000_000, 100_000),
    Campaign("sql-where", "tests/conformance/test_sql_where.py",
             "TAMIS_SQL_WHERE", 1_000_000, 100_000),
    Campaign("cesql", "tests/conformance/test_cesql.py", "TAMIS_CESQL", 1_000_000, 100_000),
    Campaign("job-kills", "tests/integration/spark/test_job_kills.py", "TAMIS_JOB_KILLS", 100, 6),
    Campaign("stream-kills", "tests/integration/spark/test_kills.py", "TAMIS_KILLS", 100, 4),
    Campaign("kafka-kills",
             "tests/integration/test_kafka_out.py::test_the_service_and_the_broker_are_killed",
             "TAMIS_KAFKA_KILLS", 100, 5),
)  # fmt: skip


@dataclass(frozen=True)
class Total:
    """What was tried so far."""

    tried: int = 0
    failed: int = 0
    seconds: float = 0.0

    def plus(self, other: "Total") -> "Total":
        return Total(
            self.tried + other.tried, self.failed + other.failed, self.seconds + other.seconds
        )

    def line(self, campaign: Campaign) -> str:
        rate = self.tried / self.seconds if self.seconds else 0.0
        return (
            f"{campaign.name:14} {self.tried:>11,} of {campaign.required:>10,} tried, "
            f"{self.failed} failed, {self.seconds:,.0f} s, {rate:,.1f}/s"
        )


class Soak:
    """The campaigns of one run, and their totals on disk."""

    def __init__(self, folder: Path, commit: str, campaigns: Sequence[Campaign]) -> None:
        self._folder, self.commit, self.campaigns = folder, commit, list(campaigns)
        self._rounds: dict[str, int] = {}
        self._totals: dict[str, dict[str, Total]] = {}
        self.silent: set[str] = set()  # campaigns that cannot run here
        path = folder / TOTALS
        if path.exists():
            kept = read_object(path, TamisError)
            self._rounds = kept["rounds"]
            self._totals = {
                commit: {name: Total(**each) for name, each in totals.items()}
                for commit, totals in kept["totals"].items()
            }

    def total(self, campaign: Campaign, commit: str | None = None) -> Total:
        return self._totals.get(commit or self.commit, {}).get(campaign.name, Total())

    def others(self) -> list[str]:
        """The commits other than this one that have totals."""
        return [commit for commit in self._totals if commit != self.commit]

    def forget(self) -> None:
        """Begin again on this commit. Seeds still differ from those of earlier rounds."""
        self._totals.pop(self.commit, None)
        self._write()

    def failed(self) -> bool:
        return any(self.total(campaign).failed for campaign in self.campaigns)

    def run(self, seconds: float) -> None:
        """Run rounds in turns, those that are not done first."""
        deadline = time.monotonic() + seconds
        while True:
            able = [each for each in self.campaigns if each.name not in self.silent]
            open_ = [each for each in able if self.total(each).tried < each.required]
            if not able:
                return
            for campaign in open_ or able:
                left = deadline - time.monotonic()
                if left <= 0:
                    return
                self._round(campaign, left)

    def _round(self, campaign: Campaign, left: float) -> None:
        before = self.total(campaign)
        count = campaign.each_round
        if before.tried < campaign.required:
            count = min(count, campaign.required - before.tried)
        if before.seconds:
            count = max(1, min(count, int(left * before.tried / before.seconds)))
        seed = self._rounds[campaign.name] = self._rounds.get(campaign.name, 0) + 1
        self._write()  # so that an interrupted round is not repeated
        got = run_round(campaign, count, seed, self._folder / "failures")
        if not got.tried and not got.failed:
            self.silent.add(campaign.name)
            print(f"{campaign.name:14} cannot run here: it tried nothing", flush=True)
            return
        self._totals.setdefault(self.commit, {})[campaign.name] = after = before.plus(got)
        self._write()
        print(after.line(campaign), flush=True)

    def _write(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        totals = {
            commit: {name: asdict(each) for name, each in found.items()}
            for commit, found in self._totals.items()
        }
        write_json(self._folder / TOTALS, {"rounds": self._rounds, "totals": totals})

    def table(self, commit: str | None = None) -> str:
        rows = [("campaign", "tried", "required", "failed", "time")]
        for campaign in self.campaigns:
            total = self.total(campaign, commit)
            tried, required = f"{total.tried:,}", f"{campaign.required:,}"
            rows.append((campaign.name, tried, required, str(total.failed), _time(total.seconds)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if not at else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        )


def run_round(campaign: Campaign, count: int, seed: int, failures: Path) -> Total:
    """Try something so many times; the output is kept if that fails."""
    command, variables = campaign.command(count, seed), campaign.environment(count, seed)
    with tempfile.TemporaryDirectory() as place:
        report, output = Path(place) / "report.jsonl", Path(place) / "output.txt"
        environment = {**os.environ, **variables, "TAMIS_SOAK_REPORT": str(report)}
        began = time.monotonic()
        with output.open("wb") as file:
            status = _run(command, environment, file)
        took = time.monotonic() - began
        got = Total()
        if report.exists():
            lines = [json.loads(line) for line in report.read_text().splitlines()]
            got = Total(sum(each["tried"] for each in lines), sum(each["failed"] for each in lines))
        elif not campaign.variable and not status:
            got = Total(count)
        if status and not got.failed:
            got = replace(got, failed=1)
        if got.failed:
            failures.mkdir(parents=True, exist_ok=True)
            kept = failures / f"{campaign.name}-{seed}.txt"
            named = " ".join(f"{name}={value}" for name, value in variables.items())
            repeat = f"cd {shlex.quote(str(ROOT))} && {named} {shlex.join(command)}"
            kept.write_bytes(f"{repeat}\nexit code {status}\n\n".encode() + output.read_bytes())
            print(f"{campaign.name:14} FAILED with seed {seed}, see {kept}", flush=True)
    return replace(got, seconds=took)


def _run(command: list[str], environment: Mapping[str, str], file: Any) -> int:
    """Run a command and return its exit code. Its processes end with it, or when this does."""
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        return process.wait(LONGEST)
    except subprocess.TimeoutExpired:
        file.write(f"\nsoak: the round did not end within {LONGEST:.0f} s\n".encode())
        return 124
    finally:
        for ending in (signal.SIGINT, signal.SIGKILL):
            if process.poll() is None:
                os.killpg(process.pid, ending)
                try:
                    process.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    continue


def this_commit() -> str:
    """The commit, with a mark for changes that are not committed."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=False
        )
        return done.stdout

    commit = git("rev-parse", "--short=12", "HEAD").strip() or "no commit"
    changes = git("diff", "HEAD") + git("ls-files", "--others", "--exclude-standard")
    if not changes:
        return commit
    return f"{commit} with changes {hashlib.sha256(changes.encode()).hexdigest()[:8]}"


def _time(seconds: float) -> str:
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{left:02}"


def _chosen(names: str | None) -> list[Campaign]:
    known = {each.name: each for each in CAMPAIGNS}
    wanted = names.split(",") if names else [*known]
    for name in wanted:
        if name not in known:
            raise SystemExit(
                f"soak: the campaign {name!r} is unknown; known are {', '.join(known)}"
            )
    return [known[name] for name in wanted]


def main(arguments: Sequence[str] | None = None, folder: Path = KEPT) -> int:
    parser = argparse.ArgumentParser(description="Run campaigns in turns, and resume.")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--campaigns", help="names, separated by commas")
    parser.add_argument("--fresh", action="store_true", help="begin again on this commit")
    given = parser.parse_args(arguments)
    try:
        soak = Soak(folder, this_commit(), _chosen(given.campaigns))
    except (TamisError, KeyError, TypeError, AttributeError) as why:
        raise SystemExit(f"soak: {folder / TOTALS} cannot be read, remove it: {why}") from None
    if given.fresh:
        soak.forget()
    for commit in soak.others():
        print(f"Of {commit}, not added:\n{soak.table(commit)}\n")
    print(f"Soaking {soak.commit} for {given.minutes:g} minutes; Ctrl-C ends it.", flush=True)
    try:
        soak.run(60 * given.minutes)
    except KeyboardInterrupt:
        print("\nInterrupted; the round under way does not count.")
    print(f"\nOf {soak.commit}:\n{soak.table()}")
    missing = [each.name for each in soak.campaigns if soak.total(each).tried < each.required]
    if missing:
        print(f"\nTo continue: make soak CAMPAIGNS={','.join(missing)}")
    return 1 if soak.failed() else 0


if __name__ == "__main__":
    sys.exit(main())
