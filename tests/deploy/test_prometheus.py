"""Debian's Prometheus: reads our rules, scrapes a replica, and understands what the dashboard asks it."""

import json
import re
import subprocess
import urllib.parse

import pytest
import yaml
from conftest import DEPLOY, Program, fetch, free_port, until

RULES = DEPLOY / "prometheus/alerts.yaml"
REST = "/v1beta1/projects/p/locations/l:evaluateInstances"


def test_the_rules_and_the_configuration_are_accepted():
    for check in (["rules", RULES], ["config", DEPLOY / "prometheus/prometheus.yaml"]):
        subprocess.run(["promtool", "check", *check], check=True, capture_output=True)


@pytest.fixture
def prometheus(tmp_path, replicas):
    port = free_port()
    targets = [f"127.0.0.1:{replica.admin}" for replica in replicas]
    job = {"job_name": "rapid-eval", "scrape_interval": "1s", "static_configs": [{"targets": targets}]}
    file = tmp_path / "prometheus.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "scrape_configs": [job]}))
    flags = [f"--config.file={file}", f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{port}"]
    program = Program(["prometheus", *flags], tmp_path / "prometheus.log")
    program.url = f"http://127.0.0.1:{port}"
    until("Prometheus is ready", lambda: fetch(f"{program.url}/-/ready")[0] == 200)
    yield program
    program.kill()


def ask(prometheus, expression: str) -> list:
    status, text = fetch(f"{prometheus.url}/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
    assert status == 200, f"{expression}: {text}"
    return json.loads(text)["data"]["result"]


def test_a_replica_is_scraped_and_every_panel_asks_what_prometheus_understands(prometheus, replicas):
    body = {"exact_match_input": {"instances": [{"prediction": "a", "reference": "a"}] * 3}}
    assert fetch(f"http://127.0.0.1:{replicas[0].port}{REST}", body)[0] == 200
    instances = 'rapid_eval_instances_total{eval_metric="exact_match"}'
    [seen] = until("the scrape", lambda: ask(prometheus, instances))
    assert seen["value"][1] == "3"
    until("both are scraped", lambda: len(ask(prometheus, 'up{job="rapid-eval"} == 1')) == 2)

    dashboard = json.loads((DEPLOY / "grafana/rapid-eval.json").read_text())
    variables = {"__rate_interval": "1m", "__range": "1h", "instance": ".*", "metric": ".*"}
    variables |= {"input_price": "0.15", "output_price": "0.6"}
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    assert len(asked) >= 20
    for expression in asked:
        ask(prometheus, re.sub(r"\$(\w+)", lambda name: variables[name[1]], expression))


def test_no_alert_fires_for_a_service_that_is_well(prometheus):
    names = until("the rules are evaluated", lambda: rules_evaluated(prometheus))
    assert len(names) >= 8
    alerts = json.loads(fetch(f"{prometheus.url}/api/v1/alerts")[1])["data"]["alerts"]
    assert [alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"] == []


def rules_evaluated(prometheus) -> list | None:
    [group] = json.loads(fetch(f"{prometheus.url}/api/v1/rules")[1])["data"]["groups"]
    done = all(rule["health"] == "ok" for rule in group["rules"])
    return [rule["name"] for rule in group["rules"]] if done else None
