"""The clients under test: both versions of the API, both transports."""

import grpc
import pytest
import requests
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform_v1, aiplatform_v1beta1

TRANSPORTS = ["grpc", "rest"]
# What the client makes of a wrong request, and of its deadline.
REFUSED = {"grpc": exceptions.InvalidArgument, "rest": exceptions.BadRequest}
TOO_LATE = {"grpc": exceptions.DeadlineExceeded, "rest": requests.Timeout}

BOTH = [aiplatform_v1, aiplatform_v1beta1]


def connect(api, transport: str, address: str):
    """A client as its documentation makes it, pointed at a plaintext port."""
    if transport == "rest":
        channel = api.EvaluationServiceClient.get_transport_class("rest")(
            host=address, url_scheme="http", credentials=AnonymousCredentials()
        )
    else:
        channel = api.EvaluationServiceClient.get_transport_class("grpc")(channel=grpc.insecure_channel(address))
    return api.EvaluationServiceClient(transport=channel)


@pytest.fixture(scope="module", params=TRANSPORTS)
def transport(request) -> str:
    return request.param


@pytest.fixture(scope="module", params=BOTH, ids=["v1", "v1beta1"])
def service(request, transport, address):
    return Service(request.param, transport, address)


@pytest.fixture(scope="module")
def beta(transport, address):
    return Service(aiplatform_v1beta1, transport, address)


class Service:
    """The service as one client sees it."""

    location = "projects/any/locations/us-central1"

    def __init__(self, api, transport: str, address: str):
        self.api, self.client = api, connect(api, transport, address)
        self.refused, self.too_late = REFUSED[transport], TOO_LATE[transport]

    def ask(self, **request):
        return self.client.evaluate_instances(
            self.api.EvaluateInstancesRequest(location=self.location, **request), timeout=60
        )

    def scores(self, metric: str, spec: dict, instances: list[dict]) -> list[float]:
        """The values of this metric, after checking that each is present on the wire even when it is 0."""
        answer = self.ask(**{f"{metric}_input": {"metric_spec": spec, "instances": instances}})
        assert answer._pb.WhichOneof("evaluation_results") == f"{metric}_results"
        values = getattr(getattr(answer, f"{metric}_results"), f"{metric}_metric_values")
        assert len(values) == len(instances)
        assert all(value._pb.HasField("score") for value in values)
        return [value.score for value in values]
