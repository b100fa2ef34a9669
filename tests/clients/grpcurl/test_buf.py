"""buf curl: the same by reflection, over gRPC and over gRPC-Web."""

import json
import subprocess

import pytest

PACKAGES = ["rapideval.v1", "google.cloud.aiplatform.v1", "google.cloud.aiplatform.v1beta1"]
BLEU = {"bleu_input": {"metric_spec": {}, "instances": [{"prediction": "a b c d", "reference": "a b c d"}]}}


@pytest.fixture(params=["grpc", "grpcweb"])
def buf(request, address):
    def run(path: str, *arguments: str) -> subprocess.CompletedProcess:
        command = ["buf", "curl", "--http2-prior-knowledge", "--protocol", request.param, *arguments]
        return subprocess.run([*command, f"http://{address}{path}"], capture_output=True, text=True, timeout=30)

    return run


def test_all_methods_are_listed(buf):
    listed = buf("", "--list-methods")
    assert listed.returncode == 0, listed.stderr
    assert {f"{package}.EvaluationService/EvaluateInstances" for package in PACKAGES} <= set(listed.stdout.split())


@pytest.mark.parametrize("package", PACKAGES)
def test_a_call_is_answered_under_each_name(buf, package):
    answer = buf(f"/{package}.EvaluationService/EvaluateInstances", "--data", json.dumps(BLEU))
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == {"bleuResults": {"bleuMetricValues": [{"score": 1}]}}


@pytest.mark.parametrize("package", PACKAGES)
def test_an_error_has_its_code_and_names_the_field(buf, package):
    answer = buf(f"/{package}.EvaluationService/EvaluateInstances", "--data", '{"bleu_input": {}}')
    assert answer.returncode != 0
    error = json.loads(answer.stderr)
    assert error["code"] == "invalid_argument"
    assert "bleu_input.instances" in error["message"]
