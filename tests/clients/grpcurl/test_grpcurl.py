"""grpcurl, which knows nothing of the schema but what reflection tells it."""

import json
import subprocess

import pytest

OURS = "rapideval.v1"
GOOGLES = ["google.cloud.aiplatform.v1", "google.cloud.aiplatform.v1beta1"]
ROUGE = {
    "rouge_input": {
        "metric_spec": {"rouge_type": "rougeL"},
        "instances": [
            {"prediction": "the cat", "reference": "the cat sat"},
            {"prediction": "a dog", "reference": "the cat sat"},
        ],
    }
}


@pytest.fixture
def grpcurl(address):
    def run(*arguments: str, asked: dict | None = None) -> subprocess.CompletedProcess:
        data = [] if asked is None else ["-d", json.dumps(asked)]
        return subprocess.run(
            ["grpcurl", "-plaintext", "-max-time", "20", *data, address, *arguments], capture_output=True, text=True
        )

    return run


def test_all_services_are_listed(grpcurl):
    listed = grpcurl("list")
    assert listed.returncode == 0, listed.stderr
    services = {f"{package}.EvaluationService" for package in [OURS, *GOOGLES]}
    assert services | {"grpc.health.v1.Health"} <= set(listed.stdout.split())


@pytest.mark.parametrize("package", [OURS, *GOOGLES])
def test_the_request_is_described_under_each_name(grpcurl, package):
    described = grpcurl("describe", f"{package}.EvaluateInstancesRequest")
    assert described.returncode == 0, described.stderr
    assert f".{package}.RougeInput rouge_input = 4;" in described.stdout
    # What is ours alone stands under our own name alone.
    assert ("include_details" in described.stdout) == (package == OURS)


@pytest.mark.parametrize("package", [OURS, *GOOGLES])
def test_a_call_is_answered_under_each_name(grpcurl, package):
    answer = grpcurl(f"{package}.EvaluationService/EvaluateInstances", asked=ROUGE)
    assert answer.returncode == 0, answer.stderr
    # Precision 2/2 and recall 2/3; then nothing in common.
    assert json.loads(answer.stdout) == {"rougeResults": {"rougeMetricValues": [{"score": 0.8}, {"score": 0}]}}


@pytest.mark.parametrize("package", [OURS, *GOOGLES])
def test_an_error_names_the_field_in_readable_details(grpcurl, package):
    wrong = {"rouge_input": ROUGE["rouge_input"] | {"metric_spec": {"rouge_type": "rouge0"}}}
    answer = grpcurl(f"{package}.EvaluationService/EvaluateInstances", asked=wrong)
    assert answer.returncode != 0
    assert "Code: InvalidArgument" in answer.stderr
    assert '"field":"rouge_input.metric_spec.rouge_type"' in answer.stderr.replace(" ", "")


@pytest.mark.parametrize("service", ["", *(f"{package}.EvaluationService" for package in [OURS, *GOOGLES])])
def test_the_service_is_healthy_under_each_name(grpcurl, service):
    answer = grpcurl("grpc.health.v1.Health/Check", asked={"service": service})
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == {"status": "SERVING"}
