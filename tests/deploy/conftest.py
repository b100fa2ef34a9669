"""Programs that the tests put together: replicas of the service, Envoy, a collector. All on the loopback interface, each
on ports of its own, each ended when its test is over."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import grpc
import pytest
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

HERE = Path(__file__).resolve().parent
DEPLOY = HERE.parent.parent / "deploy"
BINARY = os.environ["RAPID_EVAL"]
TOOLS = Path(sys.executable).parent
NAMES = ("google.cloud.aiplatform.v1beta1.EvaluationService", "rapideval.v1.EvaluationService")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(what: str, ask, seconds: float = 60):
    """The first answer of `ask` that counts as true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := ask():
            return answer
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")


def fetch(url: str, body: dict | None = None, headers: dict | None = None) -> tuple[int, str]:
    """Status and text; 0 when nobody answers."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


class Program:
    """A program under test, with its output in a file."""

    def __init__(self, command: list, log: Path, environment: dict | None = None):
        self.log = log
        clean = {"PATH": os.environ["PATH"], "HOME": str(log.parent)}
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdout=log.open("w"),
            stderr=subprocess.STDOUT,
            env={**clean, **(environment or {})},
            cwd=log.parent,
            start_new_session=True,
        )

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def line(self, start: str) -> str:
        """The first line that begins so, once it is there."""

        def found():
            assert self.process.poll() is None, self.said()
            return next((line for line in self.said().splitlines() if line.startswith(start)), None)

        return until(f"{start!r} in {self.log}", found)

    def stop(self) -> int:
        """Asks it to end, and gives its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Replica(Program):
    """`rapid-eval serve`."""

    def __init__(self, log: Path, script: Path, environment: dict):
        command = [BINARY, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
        super().__init__([*command, "--judge", f"scripted:{script}"], log, environment)
        ready = self.line("rapid-eval: ready on ")
        self.port, self.admin = (int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", ready)[:2])

    def metric(self, start: str) -> float:
        """The sum of the series whose names begin so."""
        page = fetch(f"http://127.0.0.1:{self.admin}/metrics")[1]
        return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(start))


class Collector(Program):
    """rotel, which prints what comes in."""

    def __init__(self, log: Path):
        import rotel

        self.grpc = free_port()
        agent = Path(rotel.__file__).parent / "rotel-agent"
        flags = ["--otlp-grpc-endpoint", f"127.0.0.1:{self.grpc}", "--otlp-http-endpoint", f"127.0.0.1:{free_port()}"]
        debug = ["--debug-log", "traces", "--debug-log-verbosity", "detailed"]
        super().__init__([agent, "start", *flags, "--exporter", "blackhole", *debug], log)
        until("the collector listens", lambda: is_open(self.grpc))

    def spans(self, trace: str) -> list[dict]:
        """The spans of a trace that came in so far."""
        spans = []
        for resource in self.said().split("ResourceSpans #")[1:]:
            service = re.search(r"service\.name: Str\((.*?)\)", resource)
            for block in re.split(r"\nSpan #\d+\n", resource)[1:]:
                facts = dict(re.findall(r"^    (Trace ID|Parent ID|ID|Name|Kind) +: (.*)$", block, re.MULTILINE))
                if facts["Trace ID"] == trace:
                    spans.append({**facts, "service": service and service[1]})
        return spans


class Envoy(Program):
    """Envoy with deploy/envoy/envoy.yaml, at addresses of this machine."""

    def __init__(self, folder: Path, replicas: list[Replica], collector: Collector):
        self.port, self.admin = free_port(), free_port()
        (folder / "descriptors.pb").write_bytes(subprocess.check_output([BINARY, "descriptors"]))
        settings = yaml.safe_load((DEPLOY / "envoy/envoy.yaml").read_text())
        settings["admin"]["address"]["socket_address"]["port_value"] = self.admin
        [listener] = settings["static_resources"]["listeners"]
        listener["address"]["socket_address"] = {"address": "127.0.0.1", "port_value": self.port}
        ports = {"rapid-eval": [replica.port for replica in replicas], "collector": [collector.grpc]}
        for cluster in settings["static_resources"]["clusters"]:
            places = [{"address": "127.0.0.1", "port_value": port} for port in ports[cluster["name"]]]
            endpoints = [{"endpoint": {"address": {"socket_address": place}}} for place in places]
            cluster["load_assignment"]["endpoints"] = [{"lb_endpoints": endpoints}]
        file = folder / "envoy.yaml"
        file.write_text(yaml.safe_dump(settings))
        flags = ["--use-dynamic-base-id", "--concurrency", "1", "--log-level", "warning"]
        super().__init__([TOOLS / "envoy", "-c", file, *flags], folder / "envoy.log")
        until("Envoy knows both replicas", lambda: self.healthy() == len(replicas) or self.process.poll())
        assert self.process.poll() is None, self.said()

    def healthy(self) -> int:
        """Replicas that Envoy takes for well."""
        return self.stat("cluster.rapid-eval.membership_healthy")

    def stat(self, name: str) -> int:
        page = fetch(f"http://127.0.0.1:{self.admin}/stats?filter=^{name}$")[1]
        return int(page.rsplit(": ", 1)[1]) if ": " in page else 0


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Messages:
    """The service's messages, made from its own descriptors."""

    def __init__(self):
        files = descriptor_pb2.FileDescriptorSet.FromString(subprocess.check_output([BINARY, "descriptors"]))
        self.pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            self.pool.Add(file)

    def of(self, name: str):
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))

    def evaluate(self, channel, service: str = NAMES[0]):
        """EvaluateInstances on a channel, plain or of asyncio."""
        package = service.rpartition(".")[0]
        return channel.unary_unary(
            f"/{service}/EvaluateInstances",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=self.of(f"{package}.EvaluateInstancesResponse").FromString,
        )

    def request(self, fields: dict, service: str = NAMES[0]):
        return self.of(f"{service.rpartition('.')[0]}.EvaluateInstancesRequest")(**fields)


@pytest.fixture(scope="session")
def messages() -> Messages:
    return Messages()


@pytest.fixture
def script(tmp_path) -> Path:
    """A judge that thinks for a quarter of a second."""
    file = tmp_path / "judge.jsonl"
    verdict = json.dumps({"explanation": "Clear.", "score": 4})
    file.write_text(json.dumps({"reply": verdict, "delay_ms": 250}) + "\n")
    return file


@pytest.fixture
def collector(tmp_path):
    program = Collector(tmp_path / "collector.log")
    yield program
    program.kill()


@pytest.fixture
def replicas(tmp_path, script, collector):
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.grpc}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        # Twice the interval of Envoy's health checks, and some.
        "RAPID_EVAL__SERVER__NOT_READY_SECONDS": "5",
        "RAPID_EVAL__SERVER__DRAIN_SECONDS": "30",
    }
    both = [Replica(tmp_path / f"replica-{number}.log", script, environment) for number in range(2)]
    yield both
    for replica in both:
        replica.kill()


@pytest.fixture
def envoy(tmp_path, replicas, collector):
    program = Envoy(tmp_path, replicas, collector)
    yield program
    program.kill()


@pytest.fixture
def channel(envoy):
    with grpc.insecure_channel(f"127.0.0.1:{envoy.port}") as channel:
        yield channel
