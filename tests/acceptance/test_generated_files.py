"""What is made from other files is up to date."""

from __future__ import annotations

from tests.acceptance.pages import load_script


def test_generated_files_are_up_to_date() -> None:
    """The messages of gRPC and the references in the docs. If this fails: make generate."""
    assert load_script("generate").stale() == []
