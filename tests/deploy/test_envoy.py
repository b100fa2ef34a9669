"""Real Envoy in front of two replicas."""

import asyncio
import json

import grpc
import pytest
from conftest import NAMES, fetch, until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
EQUAL = {"exact_match_input": {"instances": [{"prediction": "a", "reference": "a"}]}}
FLUENT = {"fluency_input": {"instance": {"prediction": "The cat sat."}}}
PATH = "/v1beta1/projects/p/locations/l:evaluateInstances"


@pytest.mark.parametrize("service", NAMES)
def test_grpc_passes(channel, messages, service):
    answer = messages.evaluate(channel, service)(messages.request(EQUAL, service), timeout=60)
    [value] = answer.exact_match_results.exact_match_metric_values
    assert value.score == 1


def test_json_becomes_grpc_and_errors_become_json(envoy, replicas):
    for path in (PATH, "/v1/projects/p/locations/l:evaluateInstances", "/v1beta1:evaluateInstances"):
        status, text = fetch(f"http://127.0.0.1:{envoy.port}{path}", EQUAL)
        assert status == 200, text
        assert json.loads(text) == {"exactMatchResults": {"exactMatchMetricValues": [{"score": 1.0}]}}
    wrong = {"rouge_input": {"metric_spec": {"rouge_type": "rougeX"}, "instances": []}}
    status, text = fetch(f"http://127.0.0.1:{envoy.port}{PATH}", wrong)
    assert status == 400, text
    assert json.loads(text)["code"] == 3
    # The replicas saw gRPC, not REST.
    methods = "rpc_server_call_duration_seconds_count"
    assert sum(replica.metric(methods) for replica in replicas) == 4
    assert sum(replica.metric("http_server_request_duration_seconds_count") for replica in replicas) == 0


def test_a_trace_leads_from_the_caller_through_envoy_to_the_judge(envoy, collector):
    status, text = fetch(f"http://127.0.0.1:{envoy.port}{PATH}", FLUENT, {"traceparent": TRACEPARENT})
    assert status == 200, text
    # Envoy's own, the call, its evaluation, four samples. Envoy sends its spans every five seconds.
    spans = until("seven spans", lambda: (found := collector.spans(TRACE)) and len(found) >= 7 and found)
    by_id = {span["ID"]: span for span in spans}
    [chat, *others] = [span for span in spans if span["Name"] == "chat default"]
    assert len(others) == 3
    evaluate = by_id[chat["Parent ID"]]
    assert evaluate["Name"] == "evaluate fluency"
    call = by_id[evaluate["Parent ID"]]
    assert call["Name"] == f"{NAMES[0]}/EvaluateInstances"
    proxy = by_id[call["Parent ID"]]
    assert proxy["service"] == "envoy"
    assert proxy["Parent ID"] == "00f067aa0ba902b7"


def test_a_replica_leaves_under_load_and_nobody_notices(envoy, replicas, messages):
    leaving, staying = replicas

    async def load() -> tuple[int, list]:
        failures, answered = [], 0
        gone = asyncio.Event()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{envoy.port}") as channel:
            evaluate = messages.evaluate(channel)
            quick, slow = messages.request(EQUAL), messages.request(FLUENT)

            async def caller(request):
                nonlocal answered
                more = 20
                while more:
                    more -= gone.is_set()
                    try:
                        await evaluate(request, timeout=120)
                        answered += 1
                    except grpc.aio.AioRpcError as error:
                        failures.append(f"{error.code()}: {error.details()}")

            async def stopper():
                while answered < 200:
                    await asyncio.sleep(0.05)
                assert await asyncio.to_thread(leaving.stop) == 0
                gone.set()

            await asyncio.gather(stopper(), *(caller(quick) for _ in range(8)), *(caller(slow) for _ in range(8)))
        return answered, failures

    answered, failures = asyncio.run(load())
    assert not failures, f"{len(failures)} of {len(failures) + answered} calls failed: {set(failures)}"
    assert "calls were still in flight" not in leaving.said()
    assert staying.metric("rpc_server_call_duration_seconds_count") < answered, "the one that left had its share"
    assert until("Envoy has one replica left", lambda: envoy.healthy() == 1)
