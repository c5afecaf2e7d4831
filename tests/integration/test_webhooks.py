"""Rules that a team would write, on raw payloads of GitHub webhooks.

The same rules match with no schema, with a declared one, and with one that was inferred.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tamis import Engine, Schema
from tamis.errors import SchemaError
from tamis.language import parse
from tamis.match.registry import entry, matchers
from tamis.model.semantics import satisfies

PAYLOADS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "data" / "webhooks" / "payloads.json").read_text()
)
RULES = {
    "action = opened and pull_request.base.ref in (main, master)": "pull_request.opened",
    "action = opened and pull_request.base.ref in (main, master) "
    "and not pull_request.author_association in (OWNER, MEMBER, COLLABORATOR)": "",
    "action = labeled and label.name = bug": "pull_request.labeled, issues.labeled",
    "pull_request.labels.name contains bug": "pull_request.labeled, pull_request.draft",
    "pull_request.draft": "pull_request.draft",
    "pull_request.additions < 10 and not pull_request.draft": (
        "pull_request.opened, pull_request.labeled"
    ),
    'ref starts with "refs/tags/" and not deleted': "push.tag",
    'ref = "refs/heads/master" and commits.author.name = @pusher.name': "push.branch",
    "deleted and head_commit.id is null": "push.tag_deleted",
    "issue.id exists and issue.assignee.login is null": "issues.unassigned, issue_comment",
    'comment.body like "%fixed%" and action = "created"': "issue_comment",
    "workflow_run.conclusion = failure or workflow_job.conclusion = failure "
    "or check_run.conclusion = failure": "workflow_job.failure, check_run.failure",
    "workflow_job.labels contains gpu and workflow_job.conclusion is null": (
        "workflow_job.in_progress"
    ),
    "starred_at is not null": "star",
    'action = "deleted" and starred_at is null': "star.deleted",
    "forkee.owner.login != @repository.owner.login": "fork",
    "release.id exists and not (release.prerelease or release.draft)": "release",
    "release.published_at between 2019-05-15 and 2019-05-16": "release.prerelease, release",
    "security_advisory.severity in (high, critical) or alert.security_advisory.cvss.score >= 5 "
    "or alert.rule.severity = error and alert.state = open": (
        "security_advisory, dependabot_alert, code_scanning_alert"
    ),
    "alert.dismissed_reason is not null": "code_scanning_alert.dismissed",
    "deployment_status.environment = production and deployment_status.state = success": (
        "deployment_status"
    ),
    "state = success and branches.name contains master": "status",
    "action = publicized and repository.private = false": "repository.publicized",
    "marketplace_purchase.plan.monthly_price_in_cents >= 5000 "
    "or sponsorship.tier.monthly_price_in_dollars >= 5": "marketplace_purchase, sponsorship",
}

_TEXTS = (
    *("action", "ref", "state", "label.name", "pusher.name", "comment.body", "head_commit.id"),
    *("pull_request.base.ref", "pull_request.author_association", "issue.assignee.login"),
    *("workflow_run.conclusion", "workflow_job.conclusion", "check_run.conclusion"),
    *("forkee.owner.login", "repository.owner.login", "security_advisory.severity"),
    *("alert.rule.severity", "alert.state", "alert.dismissed_reason"),
    *("deployment_status.environment", "deployment_status.state"),
)
_LISTS = ("pull_request.labels.name", "commits.author.name", "workflow_job.labels", "branches.name")
_OTHERS = {
    "deleted": "boolean",
    "pull_request.draft": "boolean",
    "pull_request.additions": "integer",
    "issue.id": "integer",
    "starred_at": "timestamp",
    "release.id": "integer",
    "release.draft": "boolean",
    "release.prerelease": "boolean",
    "release.published_at": "timestamp",
    "alert.security_advisory.cvss.score": "decimal",
    "repository.private": "boolean",
    "marketplace_purchase.plan.monthly_price_in_cents": "integer",
    "sponsorship.tier.monthly_price_in_dollars": "integer",
}
DECLARED = Schema.from_dict(
    {
        "attributes": {**dict.fromkeys((*_TEXTS, *_LISTS), "text"), **_OTHERS},
        "event_types": {
            "webhook": {
                **dict.fromkeys((*_TEXTS, *_OTHERS), "optional"),
                **dict.fromkeys(_LISTS, "optional multiple"),
            }
        },
        "unknown": "ignore",
    }
)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("schema", [Schema.open(), DECLARED], ids=["open", "declared"])
def test_rules_mean_what_the_team_expects(schema: Schema, rule: str) -> None:
    condition = parse(rule, schema)
    found = [name for name, payload in PAYLOADS.items() if satisfies(condition, payload, schema)]
    assert ", ".join(found) == RULES[rule]


def _answers(engine: Engine) -> dict[str, str]:
    found = engine.match_batch(list(PAYLOADS.values()))
    return {
        rule: ", ".join(name for name, ids in zip(PAYLOADS, found, strict=True) if rule in ids)
        for rule in RULES
    }


def test_an_engine_without_a_schema_matches_raw_payloads_and_moves_to_a_schema() -> None:
    engine = Engine()
    for rule in RULES:
        engine.subscribe(rule, id=rule)
    assert _answers(engine) == RULES
    for name, payload in PAYLOADS.items():
        right = {rule for rule, names in RULES.items() if name in names.split(", ")}
        assert set(engine.match(payload)) == right
    engine.declare(DECLARED)
    assert not engine.schema.is_open
    assert _answers(engine) == RULES
    engine.check()


def test_an_engine_moves_to_the_schema_of_a_sample() -> None:
    engine = Engine()
    for rule in RULES:
        engine.subscribe(rule, id=rule)
    inferred = Schema.infer(PAYLOADS.values(), "webhook")
    with pytest.raises(SchemaError, match="do not fit the schema") as refused:
        engine.declare(inferred)  # lists of objects are lists of structs there
    mixing = [rule for rule in RULES if f"{rule!r}: " in str(refused.value)]
    assert 0 < len(mixing) < 4
    assert str(refused.value).count("is a list of structs: elements would be mixed") == len(mixing)
    hint = "some item in pull_request.labels (item.name contains bug)"
    assert f"write a condition on one element: {hint}" in str(refused.value)
    for rule in mixing:
        engine.unsubscribe(rule)
    engine.subscribe("some label in pull_request.labels (label.name = bug)", id="bug")
    engine.declare(inferred)
    assert {rule: names for rule, names in _answers(engine).items() if rule in engine} == {
        rule: names for rule, names in RULES.items() if rule not in mixing
    }
    found = engine.match_batch(list(PAYLOADS.values()))
    labelled = [name for name, ids in zip(PAYLOADS, found, strict=True) if "bug" in ids]
    assert ", ".join(labelled) == RULES["pull_request.labels.name contains bug"]
    engine.check()


@pytest.mark.parametrize("matcher", [name for name in matchers() if entry(name).exact])
def test_every_matcher_agrees(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    for rule in RULES:
        engine.subscribe(rule, id=rule)
    assert _answers(engine) == RULES


def test_objects_are_there_without_a_schema() -> None:
    engine = Engine()
    engine.subscribe("forkee exists", id="fork")
    engine.subscribe("head_commit is null and head_commit exists", id="null")
    engine.subscribe("commits exists", id="commits")
    found = {name: engine.match(payload) for name, payload in PAYLOADS.items()}
    assert {name: ids for name, ids in found.items() if ids} == {
        "push.tag_deleted": ["null"],
        "push.branch": ["commits"],
        "fork": ["fork"],
    }
