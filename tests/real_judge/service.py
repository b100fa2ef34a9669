"""The two servers of a run, and a client of the one under test.

The client is made from `proto/` when a run begins, so that it sees the details that Google's own client does not.
"""

import contextlib
import importlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import grpc

HERE = Path(__file__).resolve().parent
PROTO = HERE.parent.parent / "proto"
CALL_WITHIN = 1800  # seconds for one call, on a machine that does other things too
READY_WITHIN = 300  # seconds, for either server


def generate_client(folder: Path):
    """Messages and stubs of the service, as modules."""
    files = sorted(str(path.relative_to(PROTO)) for path in PROTO.glob("rapideval/v1/*.proto"))
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}", f"--python_out={folder}"]
    subprocess.run([*command, f"--grpc_python_out={folder}", *files], check=True)
    sys.path.insert(0, str(folder))
    for name in ("service_pb2", "service_pb2_grpc", "content_pb2"):
        globals()[name] = importlib.import_module(f"rapideval.v1.{name}")


@contextlib.contextmanager
def judge(weights: Path, log: Path):
    """A judge with these weights for the time of the block; gives its address."""
    with process([sys.executable, HERE / "serve", weights], r"^ready (\S+)", log) as address:
        yield address


@contextlib.contextmanager
def evaluator(binary: Path, judge: str, scratch: Path, readout: str = "replies", structured: str = "json_schema"):
    """The service with the judge at this address for the time of the block; gives a client."""
    config = scratch / "evaluator.toml"
    config.write_text(
        f"[judge]\nreadout = '{readout}'\n\n[[judges]]\nprovider = 'openai'\nbase_url = '{judge}'\n"
        f"model = 'local-judge'\nstructured = '{structured}'\ntimeout_seconds = {CALL_WITHIN}\n"
    )
    with started(binary, scratch, "--config", str(config)) as client:
        yield client


@contextlib.contextmanager
def evaluator_by_flag(binary: Path, judge: str, scratch: Path):
    """The same by the one flag that is enough; the judge then has two minutes for a reply."""
    with started(binary, scratch, "--judge", f"openai:{judge}#local-judge") as client:
        yield client


@contextlib.contextmanager
def started(binary: Path, scratch: Path, *flags: str):
    command = [binary, "--listen", "127.0.0.1:0", "--admin-listen", "off", *flags]
    with process(command, r"^rapid-eval: ready on ([\w.:\[\]]+)", scratch / "evaluator.log") as address:
        with grpc.insecure_channel(address) as channel:
            yield Client(channel)


@contextlib.contextmanager
def process(command: list, ready: str, log: Path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAPID_EVAL__")}
    with log.open("w+b") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
        try:
            give_up = time.monotonic() + READY_WITHIN
            while not (found := re.search(ready, log.read_text(errors="replace"), re.MULTILINE)):
                if server.poll() is not None or time.monotonic() > give_up:
                    raise SystemExit(f"{log.read_text(errors='replace')}\n{command[0]} did not get ready")
                time.sleep(0.1)
            yield found[1]
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(timeout=60)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


class Client:
    """Asks the service."""

    def __init__(self, channel):
        self.stub = service_pb2_grpc.EvaluationServiceStub(channel)

    def ask(self, *, samples: int, temperature: float, tokens: int = 300, **request):
        """The arm of the answer that is set. `request` is the arm of the question, or the unified form.

        Replies are cut after `tokens`: a weak model may go on for ever.
        """
        generation = {"temperature": temperature, "max_output_tokens": tokens, "seed": 7}
        autorater = {"sampling_count": samples, "generation_config": generation}
        answer = self.stub.EvaluateInstances(
            service_pb2.EvaluateInstancesRequest(autorater_config=autorater, include_details=True, **request),
            timeout=CALL_WITHIN,
        )
        arm = answer.WhichOneof("evaluation_results")
        return getattr(answer, arm) if arm else answer.metric_results

    def rubrics_for(self, prompt: str, tokens: int):
        """Rubrics that the judge writes for a prompt."""
        contents = [content_pb2.Content(role="user", parts=[content_pb2.Part(text=prompt)])]
        autorater = {"generation_config": {"max_output_tokens": tokens, "seed": 7}}
        request = service_pb2.GenerateInstanceRubricsRequest(
            contents=contents, rubric_generation_spec={"model_config": autorater}
        )
        return self.stub.GenerateInstanceRubrics(request, timeout=CALL_WITHIN).generated_rubrics
