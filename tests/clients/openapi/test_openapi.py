"""openapi-spec-validator: the document at /openapi.json is valid OpenAPI, and describes what the server answers."""

import json
import os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

ROUGE = {"rougeInput": {"metricSpec": {"rougeType": "rougeL"}, "instances": [{"prediction": "a b", "reference": "a"}]}}
PATH = "/v1beta1/projects/{project}/locations/{location}:evaluateInstances"
# The server of this folder asks for a key.
KEY = os.environ["API_KEY"]


def sent(address: str, path: str, headers: dict[str, str], body: dict | None = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"http://{address}{path}", data, {"content-type": "application/json", **headers})
    with urlopen(request, timeout=30) as answer:
        return json.load(answer)


@pytest.fixture(scope="session")
def document(address):
    return sent(address, "/openapi.json", {"api-key": KEY})


def test_the_document_is_valid(document):
    assert document["openapi"] == "3.1.0"
    validate(document, cls=OpenAPIV31SpecValidator)


def test_an_answer_fits_its_schema(document, address):
    schema = document["paths"][PATH]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    body = sent(address, PATH.format(project="p", location="global"), {"api-key": KEY}, ROUGE)
    # One word in common: precision 1/2, recall 1, F = 2/3.
    assert body["rougeResults"]["rougeMetricValues"][0]["score"] == pytest.approx(2 / 3, abs=1e-6)
    whole = {**schema, "components": document["components"]}
    OAS31Validator(whole).validate(body)
    with pytest.raises(Exception, match="is not of type"):
        OAS31Validator(whole).validate({"rougeResults": {"rougeMetricValues": {}}})


def test_each_way_to_send_a_key_is_described_and_is_enough(document, address):
    schemes = document["components"]["securitySchemes"]
    assert sorted(name for requirement in document["security"] for name in requirement) == sorted(schemes)
    headers = []
    for scheme in schemes.values():
        if scheme["type"] == "http":
            assert scheme["scheme"] == "bearer"
            headers.append(("authorization", f"Bearer {KEY}"))
        else:
            assert (scheme["type"], scheme["in"]) == ("apiKey", "header")
            headers.append((scheme["name"].lower(), KEY))
    assert sorted(name for name, _ in headers) == ["api-key", "authorization", "x-goog-api-key"]
    path = PATH.format(project="p", location="global")
    for header in headers:
        assert "rougeResults" in sent(address, path, dict([header]), ROUGE)
    with pytest.raises(HTTPError, match="401"):
        sent(address, path, {}, ROUGE)
