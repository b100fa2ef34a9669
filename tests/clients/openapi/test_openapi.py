"""openapi-spec-validator: the document at /openapi.json is valid OpenAPI, and describes what the server answers."""

import json
from urllib.request import Request, urlopen

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

ROUGE = {"rougeInput": {"metricSpec": {"rougeType": "rougeL"}, "instances": [{"prediction": "a b", "reference": "a"}]}}


@pytest.fixture(scope="session")
def document(address):
    with urlopen(f"http://{address}/openapi.json", timeout=30) as answer:
        return json.load(answer)


def test_the_document_is_valid(document):
    assert document["openapi"] == "3.1.0"
    validate(document, cls=OpenAPIV31SpecValidator)


def test_an_answer_fits_its_schema(document, address):
    path = "/v1beta1/projects/{project}/locations/{location}:evaluateInstances"
    schema = document["paths"][path]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    url = f"http://{address}{path.format(project='p', location='global')}"
    with urlopen(Request(url, json.dumps(ROUGE).encode(), {"content-type": "application/json"}), timeout=30) as answer:
        body = json.load(answer)
    # One word in common: precision 1/2, recall 1, F = 2/3.
    assert body["rougeResults"]["rougeMetricValues"][0]["score"] == pytest.approx(2 / 3, abs=1e-6)
    whole = {**schema, "components": document["components"]}
    OAS31Validator(whole).validate(body)
    with pytest.raises(Exception, match="is not of type"):
        OAS31Validator(whole).validate({"rougeResults": {"rougeMetricValues": {}}})
