"""What the Python tests of all clients share: the server's address, the scores that Vertex AI is known to give, and
the verdicts that come of what the judge says."""

import json
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def address() -> str:
    """Host and port of the server under test."""
    return os.environ["SERVER_ADDRESS"]


@pytest.fixture(scope="session")
def vertex() -> dict:
    """Inputs and the scores that the real service returned for them; known_vertex_scores.json says who recorded them."""
    reef, greetings = json.loads((Path(__file__).parent / "known_vertex_scores.json").read_text())["cases"]
    return {"reef": reef, "greetings": greetings}


@pytest.fixture(scope="session")
def verdicts() -> dict:
    """An instance for every built-in judged metric, and the verdict on it."""
    return json.loads((Path(__file__).parent / "judge_verdicts.json").read_text())
