"""curl, with the commands of Google's page as they stand there: trailing commas, a key three times, https and all."""

import json
import os
import subprocess
from pathlib import Path

import pytest

# The page's command; the body between its quotes is in tests/rest/, whose README says where it comes from.
COMMAND = r"""curl -X POST \
  -H "Authorization: Bearer $(gcloud auth print-access-token)" \
  -H "Content-Type: application/json" \
  https://${REGION}-aiplatform.googleapis.com/v1beta1/projects/${PROJECT_ID}/locations/${REGION}:evaluateInstances \
  -d '%s'"""
BODIES = Path(__file__).parents[2] / "rest"
HOST = "us-central1-aiplatform.googleapis.com"


@pytest.fixture
def answer_to(address, tmp_path):
    """Runs the command in a shell where Google's host is the server, and gives what it prints."""
    home, tools = tmp_path, tmp_path / "bin"
    authority = os.environ["AUTHORITY_FILE"]
    (home / ".curlrc").write_text(
        f'connect-to = "{HOST}:443:{address}"\ncacert = "{authority}"\nsilent\nshow-error\nmax-time = 30\n'
    )
    tools.mkdir()
    (tools / "gcloud").write_text("#!/bin/sh\necho a-token\n")
    (tools / "gcloud").chmod(0o755)
    settings = {"HOME": str(home), "PATH": f"{tools}:{os.environ['PATH']}"}
    settings |= {"REGION": "us-central1", "PROJECT_ID": "any"}

    def run(name: str) -> dict:
        body = (BODIES / f"{name}.curl.json").read_text().rstrip("\n").replace("'", r"'\''")
        done = subprocess.run(["sh", "-c", COMMAND % body], env=settings, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_the_rouge_example_gives_three_scores(answer_to):
    values = answer_to("rouge")["rougeResults"]["rougeMetricValues"]
    # Words in common in order, of nine on either side: 5 (brown fox over lazy dog), 7 (quick brown fox jumps over the
    # lazy), 8 (all but the second).
    assert [value["score"] for value in values] == pytest.approx([5 / 9, 7 / 9, 8 / 9], abs=1e-6)


def test_the_pairwise_example_gives_choice_explanation_and_confidence(answer_to, verdicts):
    expected = verdicts["pairwise"]["pairwise_summarization_quality"]
    assert answer_to("pairwise") == {
        "pairwiseSummarizationQualityResult": {
            "pairwiseChoice": expected["pairwise_choice"],
            "explanation": expected["explanation"],
            "confidence": expected["confidence"],
        }
    }
