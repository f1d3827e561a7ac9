"""The verdict of the witness: every route gave every answer that the specification and the contract name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes import witness

TESTS = Path(__file__).parent.parent


def test_every_route_has_given_each_of_its_answers_over_http(request: pytest.FixtureRequest) -> None:
    """Fails where the run did not receive a (method, path, status) that the route table names, or got another."""
    present = request.config.stash[witness.WHOLE]
    everything = {file for folder in ("journeys", "api") for file in (TESTS / folder).glob("test_*.py")}
    if request.config.option.keyword or not everything <= present:
        pytest.skip("only a run of all tests can be judged")
    missing = sorted(witness.expected() - witness.SEEN)
    assert not missing, f"{len(missing)} answers were never received: {missing}"
    unnamed = sorted(witness.unnamed())
    assert not unnamed, f"{len(unnamed)} answers were received that no row of the table names: {unnamed}"
