"""The manifests, against Kubernetes's own schemas, and against what the service expects of them."""

import os
import subprocess

import pytest
import yaml
from conftest import BINARY, DEPLOY, TOOLS


@pytest.fixture(scope="module")
def manifests() -> str:
    return subprocess.check_output([TOOLS / "kubectl", "kustomize", DEPLOY / "kubernetes"], text=True)


def of_kind(manifests: str, kind: str) -> dict:
    [found] = [manifest for manifest in yaml.safe_load_all(manifests) if manifest["kind"] == kind]
    return found


def test_the_manifests_are_valid(manifests, tmp_path):
    file = tmp_path / "all.yaml"
    file.write_text(manifests)
    subprocess.run([TOOLS / "kubernetes-validate", "--strict", "-k", "1.36", file], check=True, capture_output=True)


def check_config(manifests: str, folder, keys: str) -> tuple[int, str]:
    """What the service says to its configuration in the cluster."""
    (folder / "config.toml").write_text(of_kind(manifests, "ConfigMap")["data"]["config.toml"])
    secrets = of_kind(manifests, "Secret")["stringData"]
    assert list(secrets) == ["RAPID_EVAL_API_KEYS"]
    environment = {**os.environ, **secrets, **({"RAPID_EVAL_API_KEYS": keys} if keys else {})}
    command = [BINARY, "check-config", "--config", folder / "config.toml"]
    checked = subprocess.run(command, env=environment, capture_output=True, text=True)
    return checked.returncode, checked.stderr


def test_the_configuration_is_good_once_there_is_a_key(manifests, tmp_path):
    code, said = check_config(manifests, tmp_path, "")
    assert code == 64 and "RAPID_EVAL_API_KEYS" in said
    assert check_config(manifests, tmp_path, "0123456789abcdef0123456789abcdef") == (0, "")


def test_a_pod_is_given_the_time_that_its_service_takes_to_end(manifests):
    import tomllib

    server = tomllib.loads(of_kind(manifests, "ConfigMap")["data"]["config.toml"])["server"]
    flush_seconds = 5  # the default of telemetry.flush_seconds
    pod = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]
    needed = server["not_ready_seconds"] + server["drain_seconds"] + flush_seconds
    assert pod["terminationGracePeriodSeconds"] > needed
    # Ports and probes are those of the configuration.
    [container] = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert server["listen"].endswith(f":{ports['grpc']}") and server["admin_listen"].endswith(f":{ports['admin']}")
    assert container["readinessProbe"]["grpc"]["port"] == ports["grpc"]
