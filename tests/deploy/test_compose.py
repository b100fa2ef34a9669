"""compose.yaml: the files it names are there, and the service takes the flags that it gives."""

import subprocess

import yaml
from conftest import BINARY, DEPLOY


def test_compose_names_files_that_are_there_and_flags_that_the_service_takes():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    for service in services.values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert not source.startswith(".") or (DEPLOY / source).exists(), volume
        for other in service.get("depends_on", {}):
            assert other in services
    build = services["rapid-eval"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).exists()
    flags = [word.replace("${JUDGE_MODEL:-qwen2.5:1.5b}", "qwen2.5:1.5b") for word in services["rapid-eval"]["command"]]
    environment = {
        "RAPID_EVAL__SERVER__LISTEN": "0.0.0.0:8080",
        "RAPID_EVAL__SERVER__ADMIN_LISTEN": "0.0.0.0:9464",
        **services["rapid-eval"]["environment"],
    }
    subprocess.run([BINARY, "check-config", *flags], env=environment, check=True, capture_output=True)
