"""Payloads of the form and size of a code host's webhooks, and rules that a team sets on them.

Most of a payload is addresses that nobody asks for. Rules are conjunctions over paths.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from tamis.lab.instruments.hash_join import Predicate

_HOST = "https://code.example"
_USER_LINKS = (
    *("followers", "following", "gists", "starred", "subscriptions", "organizations", "repos"),
    *("events", "received_events"),
)
_REPOSITORY_LINKS = (
    *("forks", "keys", "collaborators", "teams", "hooks", "issue_events", "events", "assignees"),
    *("branches", "tags", "blobs", "git_tags", "git_refs", "trees", "statuses", "languages"),
    *("stargazers", "contributors", "subscribers", "subscription", "commits", "git_commits"),
    *("comments", "issue_comment", "contents", "compare", "merges", "archive", "downloads"),
    *("issues", "pulls", "milestones", "notifications", "labels", "releases", "deployments"),
)
_LOGINS = ("ann", "ben", "cleo", "dora", "emil", "fay")
_NAMES = ("mill", "sieve", "loom", "anvil", "kiln")
_RULES: tuple[tuple[Predicate, ...], ...] = (
    (("action", "=", "opened"), ("pull_request.base.ref", "=", "main")),
    (("action", "=", "opened"), ("pull_request.draft", "=", True)),
    (("pull_request.additions", ">", 500),),
    (("pull_request.user.login", "=", "ann"), ("action", "=", "closed")),
    (("pull_request.changed_files", ">=", 20), ("pull_request.draft", "=", False)),
    (("action", "=", "labeled"), ("label.name", "=", "bug")),
    (("action", "=", "labeled"), ("label.name", "=", "security")),
    (("issue.comments", ">", 30),),
    (("issue.user.login", "=", "ben"), ("action", "=", "opened")),
    (("issue.state", "=", "closed"), ("repository.name", "=", "loom")),
    (("ref", "=", "refs/heads/main"), ("forced", "=", True)),
    (("ref", "=", "refs/heads/main"), ("repository.name", "=", "sieve")),
    (("pusher.name", "=", "cleo"),),
    (("head_commit.author.name", "=", "dora"), ("created", "=", True)),
    (("check_run.conclusion", "=", "failure"),),
    (("check_run.conclusion", "=", "failure"), ("repository.name", "=", "mill")),
    (("check_run.name", "=", "build"), ("repository.private", "=", True)),
    (("repository.stargazers_count", ">=", 4_000), ("action", "=", "opened")),
    (("repository.archived", "=", True),),
    (("sender.site_admin", "=", True),),
)
RULES: dict[int, tuple[Predicate, ...]] = dict(enumerate(_RULES))


def condition(predicates: tuple[Predicate, ...]) -> str:
    """A rule in text."""
    return " and ".join(f"{name} {sign} {json.dumps(value)}" for name, sign, value in predicates)


def payloads(count: int, seed: int) -> list[str]:
    """So many payloads in JSON."""
    rng = np.random.default_rng([seed, 19])
    return [json.dumps(_KINDS[at % len(_KINDS)](rng)) for at in range(count)]


def paths(event: dict[str, Any]) -> dict[str, Any]:
    """The values at the paths that rules mention, flat and without nulls."""
    found: dict[str, Any] = {}
    for name, keys in _PATHS:
        node: Any = event
        for key in keys:
            node = node.get(key) if type(node) is dict else None
            if node is None:
                break
        else:
            found[name] = node
    return found


_PATHS = [
    (name, name.split(".")) for name in dict.fromkeys(each[0] for rule in _RULES for each in rule)
]


def _pick(rng: np.random.Generator, *of: Any) -> Any:
    return of[int(rng.integers(len(of)))]


def _hash(rng: np.random.Generator) -> str:
    return rng.bytes(20).hex()


def _user(rng: np.random.Generator) -> dict[str, Any]:
    login = _pick(rng, *_LOGINS)
    place = f"{_HOST}/api/users/{login}"
    return {
        "login": login,
        "id": int(rng.integers(1 << 26)),
        "node_id": _hash(rng)[:24],
        "avatar_url": f"{_HOST}/avatars/{_hash(rng)[:12]}?v=4",
        "gravatar_id": "",
        "url": place,
        "html_url": f"{_HOST}/{login}",
        **{f"{each}_url": f"{place}/{each}{{/other}}" for each in _USER_LINKS},
        "type": "User",
        "site_admin": bool(rng.random() < 0.02),
    }


def _repository(rng: np.random.Generator) -> dict[str, Any]:
    owner, name = _user(rng), _pick(rng, *_NAMES)
    place = f"{_HOST}/api/repos/{owner['login']}/{name}"
    return {
        "id": int(rng.integers(1 << 30)),
        "node_id": _hash(rng)[:24],
        "name": name,
        "full_name": f"{owner['login']}/{name}",
        "private": bool(rng.random() < 0.3),
        "owner": owner,
        "html_url": f"{_HOST}/{owner['login']}/{name}",
        "description": None,
        "fork": False,
        "url": place,
        **{f"{each}_url": f"{place}/{each}{{/name}}" for each in _REPOSITORY_LINKS},
        "created_at": "2019-05-15T15:19:25Z",
        "pushed_at": "2026-01-31T15:20:32Z",
        "size": int(rng.integers(9_000)),
        "stargazers_count": int(rng.integers(5_000)),
        "language": _pick(rng, "Python", "Go", None),
        **{f"has_{each}": True for each in ("issues", "projects", "downloads", "wiki", "pages")},
        "archived": bool(rng.random() < 0.02),
        "disabled": False,
        "license": None,
        "open_issues": int(rng.integers(90)),
        "default_branch": "main",
    }


def _commit(rng: np.random.Generator) -> dict[str, Any]:
    who = {"name": _pick(rng, *_LOGINS), "email": "someone@code.example"}
    return {
        "id": _hash(rng),
        "tree_id": _hash(rng),
        "message": "Say what the sieve keeps, and why it keeps it",
        "timestamp": "2026-01-31T15:20:32Z",
        "url": f"{_HOST}/commit/{_hash(rng)}",
        "author": who,
        "committer": who,
        "added": [],
        "removed": [],
        "modified": ["README.md", "src/sieve.py"],
    }


def _labels(rng: np.random.Generator) -> list[dict[str, Any]]:
    names = ("bug", "docs", "security", "question")
    return [
        {"id": int(rng.integers(1 << 26)), "name": _pick(rng, *names), "color": "cceeff"}
        for _ in range(3)
    ]


def _push(rng: np.random.Generator) -> dict[str, Any]:
    commits = [_commit(rng) for _ in range(3)]
    return {
        "ref": _pick(rng, "refs/heads/main", "refs/heads/next"),
        "before": _hash(rng),
        "after": _hash(rng),
        "created": bool(rng.random() < 0.2),
        "deleted": False,
        "forced": bool(rng.random() < 0.2),
        "commits": commits,
        "head_commit": commits[-1],
        "repository": _repository(rng),
        "pusher": {"name": _pick(rng, *_LOGINS), "email": "someone@code.example"},
        "sender": _user(rng),
    }


def _issue(rng: np.random.Generator) -> dict[str, Any]:
    labels = _labels(rng)
    issue = {
        "id": int(rng.integers(1 << 30)),
        "number": int(rng.integers(900)),
        "title": "The sieve lets sand through",
        "user": _user(rng),
        "labels": labels,
        "state": _pick(rng, "open", "closed"),
        "assignees": [_user(rng) for _ in range(2)],
        "comments": int(rng.integers(40)),
        "body": "Steps to repeat it: " + "shake the sieve, and look below. " * 20,
    }
    return {
        "action": _pick(rng, "opened", "labeled", "closed"),
        "issue": issue,
        "label": labels[0],
        "repository": _repository(rng),
        "sender": _user(rng),
    }


def _check(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "action": "completed",
        "check_run": {
            "id": int(rng.integers(1 << 30)),
            "head_sha": _hash(rng),
            "name": _pick(rng, "build", "lint", "docs"),
            "conclusion": _pick(rng, "success", "failure", None),
            "output": {"title": "14 steps", "summary": "step passed\n" * 60},
            "app": {"owner": _user(rng)},
        },
        "repository": _repository(rng),
        "sender": _user(rng),
    }


def _pull_request(rng: np.random.Generator) -> dict[str, Any]:
    def branch(ref: str) -> dict[str, Any]:
        made = {"ref": ref, "sha": _hash(rng), "user": _user(rng), "repo": _repository(rng)}
        return {"label": f"ann:{ref}", **made}

    pull_request = {
        "id": int(rng.integers(1 << 30)),
        "number": int(rng.integers(900)),
        "state": "open",
        "title": "A finer mesh",
        "user": _user(rng),
        "labels": _labels(rng),
        "draft": bool(rng.random() < 0.3),
        "head": branch("finer"),
        "base": branch(_pick(rng, "main", "next")),
        "additions": int(rng.integers(700)),
        "deletions": int(rng.integers(90)),
        "changed_files": int(rng.integers(30)),
    }
    return {
        "action": _pick(rng, "opened", "closed", "synchronize"),
        "number": pull_request["number"],
        "pull_request": pull_request,
        "repository": _repository(rng),
        "sender": _user(rng),
    }


_KINDS: tuple[Callable[[np.random.Generator], dict[str, Any]], ...] = (
    _push,
    _issue,
    _check,
    _pull_request,
)
