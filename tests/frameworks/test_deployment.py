"""What is in deploy/ passes the tools of its formats, and names commands, options, variables and ports that exist."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from pillarbox.core.clock import seconds
from pillarbox.ops.cli.root import pillarbox
from pillarbox.ops.settings import Settings
from pillarbox.relay.config import RelayConfig
from tests.docs.pages import blocks
from tests.frameworks.conftest import MakeEnvironment
from tests.frameworks.environment import ROOT, Environment
from tests.servers.availability import available
from tests.servers.debian import SYSTEMD_ANALYZE

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm/pillarbox"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMPOSE = yaml.safe_load((DEPLOY / "compose/docker-compose.yml").read_text(encoding="utf-8"))
DRAIN = seconds(RelayConfig().drain_timeout)
KUBERNETES = "1.31"
EXPOSURE = 20
"""The highest exposure that `systemd-analyze security` may find, of 100."""


@pytest.fixture(scope="session")
def tools(environment: MakeEnvironment) -> Environment:
    return environment("deployment")


def check_command(arguments: list[str]) -> None:
    """Parse a command line of `pillarbox` without running it; an unknown command, option or argument fails."""
    command: click.Command = pillarbox
    context, rest = click.Context(command, info_name="pillarbox"), list(arguments)
    while isinstance(command, click.Group) and rest:
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command, context = found, click.Context(found, parent=context, info_name=name)
    command.parse_args(context, rest)


def check_settings(variables: dict[str, str]) -> Settings:
    """Read the variables as `pillarbox` does; an unknown name or an invalid value fails."""
    return Settings.load(None, {name: value for name, value in variables.items() if name.startswith("PILLARBOX_")})


# --- the image


@pytest.mark.parametrize("file", ["deploy/image/Dockerfile", "Dockerfile"])
def test_hadolint_accepts_the_image(tools: Environment, file: str) -> None:
    tools.run("hadolint", "--failure-threshold", "info", str(ROOT / file), folder=ROOT)


def test_hadolint_rejects_an_image_of_root(tools: Environment, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM debian:12\nUSER root\n")
    checked = subprocess.run(
        [str(tools.bin / "hadolint"), "Dockerfile"], cwd=tmp_path, capture_output=True, check=False
    )
    assert b"DL3002" in checked.stdout


def test_the_variables_and_the_command_of_the_image_exist() -> None:
    text = (DEPLOY / "image/Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    variables = dict(
        pair.split("=", 1) for line in re.findall(r"^ENV (.+)$", text, re.MULTILINE) for pair in line.split()
    )
    settings = check_settings(variables)
    ports = re.findall(r"^EXPOSE (.+)$", text, re.MULTILINE)[0].split()
    assert [str(settings.relay.listen).rpartition(":")[2], settings.console.listen.rpartition(":")[2]] == ports
    assert settings.logging.format == "json"
    [command] = re.findall(r"^CMD (.+)$", text, re.MULTILINE)
    check_command(json.loads(command))


# --- compose


def test_the_stack_is_complete() -> None:
    assert {*COMPOSE["services"]} == {*("postgres", "rabbitmq", "schema", "relay", "console", "exporter", "consumer")}
    assert COMPOSE["services"]["schema"]["command"] == ["schema", "apply"]
    for name in ("relay", "console", "exporter", "consumer"):
        conditions = {one: what["condition"] for one, what in COMPOSE["services"][name]["depends_on"].items()}
        assert conditions == {"schema": "service_completed_successfully", "rabbitmq": "service_healthy"}
    assert (COMPOSE["services"]["schema"]["build"]["context"], ROOT) == ("../..", (DEPLOY / "compose/../..").resolve())
    assert (ROOT / COMPOSE["services"]["schema"]["build"]["dockerfile"]).exists()


@pytest.mark.parametrize("name", ["schema", "relay", "console", "exporter", "consumer"])
def test_commands_and_variables_of_the_stack_exist(name: str) -> None:
    service = COMPOSE["services"][name]
    check_command(service["command"])
    variables = {key: re.sub(r"\$\{\w+:[-?]([^}]*)\}", r"\1", value) for key, value in service["environment"].items()}
    check_settings(variables)
    assert service["stop_grace_period"] == "45s"
    assert DRAIN < 45
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])


def test_ports_of_the_stack_are_those_of_the_image_and_on_loopback() -> None:
    ports = {name: service["ports"] for name, service in COMPOSE["services"].items() if "ports" in service}
    assert all(port.startswith("127.0.0.1:") for each in ports.values() for port in each)
    inside = {name: [port.rpartition(":")[2] for port in each] for name, each in ports.items()}
    assert (inside["relay"], inside["console"], inside["consumer"]) == (["9464"], ["8980"], ["9464"])
    assert ports["exporter"] == ["127.0.0.1:9463:9464"]
    assert COMPOSE["services"]["exporter"]["command"] == ["exporter", "--listen", "0.0.0.0:9464"]


# --- Kubernetes

VALUES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "everything": {
        "image": {"repository": "registry.example.com/pillarbox", "tag": "1.2.3"},
        "config": '[relay]\nbatch_size = 100\n\n[relay.retry]\nbase = "5s"\n',
        "tlsSecretName": "tls",
        "env": [{"name": "PILLARBOX_LOGGING__LEVEL", "value": "WARNING"}],
        "relay": {
            "drainSeconds": 60,
            "disruptionBudget": {"minAvailable": "50%", "maxUnavailable": None},
            "autoscaling": {"enabled": True, "provider": "hpa", "maxReplicas": 16},
        },
        "consumers": [
            {"name": "billing", "object": "shop.billing:consumer", "replicas": 0, "drainSeconds": 90},
            {"name": "mailer", "object": "shop.mail:consumer", "image": "shop:7", "env": [{"name": "A", "value": "b"}]},
        ],
        "podAnnotations": {"team": "shop"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
    },
    "without extras": {"console": {"enabled": False}, "exporter": {"enabled": False}, "migrations": {"enabled": False}},
    "keda": {"relay": {"autoscaling": {"enabled": True}}},
    "several transports": {"transports": ["rabbit", "partner_2"], "imagePullSecrets": [{"name": "registry"}]},
    "handlers only": {"transports": [], "config": '[transports.shop]\nimport = "shop.events:handlers"\n'},
}

SCALED_OBJECT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "keda.sh/v1alpha1"},
        "kind": {"const": "ScaledObject"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "required": ["scaleTargetRef", "triggers"],
            "properties": {
                "scaleTargetRef": {"type": "object", "required": ["name"]},
                "minReplicaCount": {"type": "integer", "minimum": 0},
                "maxReplicaCount": {"type": "integer", "minimum": 1},
                "triggers": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["type", "metadata"],
                        "properties": {
                            "type": {"const": "prometheus"},
                            "metadata": {
                                "type": "object",
                                "required": ["serverAddress", "query", "threshold"],
                                "additionalProperties": {"type": "string"},
                            },
                        },
                    },
                },
            },
        },
    },
}
"""What KEDA documents of the fields that the chart uses: Kubernetes' own schemas do not have its kinds."""

VALIDATE = """
import json, sys
import jsonschema, kubernetes_validate
for manifest in json.load(sys.stdin):
    if manifest["apiVersion"].startswith("keda.sh/"):
        jsonschema.validate(manifest, json.loads(sys.argv[2]))
    else:
        kubernetes_validate.validate(manifest, sys.argv[1], strict=True)
"""


def rendered(tools: Environment, folder: Path, values: dict[str, Any]) -> list[dict[str, Any]]:
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    text = tools.run(
        "helm", "template", "shop", str(CHART), "--namespace", "ops", "-f", str(file), folder=folder
    ).stdout
    return [manifest for manifest in yaml.safe_load_all(text) if manifest]


def validate(tools: Environment, manifests: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    command = [str(tools.bin / "python"), "-c", VALIDATE, KUBERNETES, json.dumps(SCALED_OBJECT)]
    return subprocess.run(command, input=json.dumps(manifests), capture_output=True, text=True, check=False)


def of_kind(manifests: list[dict[str, Any]], kind: str, name: str = "") -> dict[str, Any]:
    [found] = [one for one in manifests if one["kind"] == kind and one["metadata"]["name"].endswith(name)]
    return found


def containers(manifests: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each pod with its container."""
    for manifest in manifests:
        if manifest["kind"] in ("Deployment", "Job"):
            pod = manifest["spec"]["template"]["spec"]
            for container in pod["containers"]:
                yield pod, container


def test_the_chart_is_linted(tools: Environment, tmp_path: Path) -> None:
    for name, values in VALUES.items():
        (tmp_path / "values.json").write_text(json.dumps(values))
        linted = tools.run("helm", "lint", "--strict", str(CHART), "-f", "values.json", folder=tmp_path).stdout
        assert "0 chart(s) failed" in linted, name


@pytest.mark.parametrize("name", VALUES)
def test_the_manifests_match_the_schemas_of_kubernetes(tools: Environment, tmp_path: Path, name: str) -> None:
    manifests = rendered(tools, tmp_path, VALUES[name])
    checked = validate(tools, manifests)
    assert checked.returncode == 0, checked.stderr
    kinds = {"PodDisruptionBudget", "Deployment"}
    assert kinds <= {manifest["kind"] for manifest in manifests}


def test_the_validation_rejects_a_field_that_does_not_exist(tools: Environment, tmp_path: Path) -> None:
    manifests = rendered(tools, tmp_path, {})
    of_kind(manifests, "Deployment", "-relay")["spec"]["template"]["spec"]["terminationGracePeriod"] = 45
    assert "terminationGracePeriod" in validate(tools, manifests).stderr


@pytest.mark.parametrize("name", VALUES)
def test_every_container_is_restricted_and_runs_an_existing_command(
    tools: Environment, tmp_path: Path, name: str
) -> None:
    for pod, container in containers(rendered(tools, tmp_path, VALUES[name])):
        security = pod["securityContext"]
        assert (security["runAsNonRoot"], security["runAsUser"]) == (True, 10001)
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert pod["automountServiceAccountToken"] is False
        check_command(container["args"])
        variables = {one["name"]: one.get("value", "sixteen-characters") for one in container["env"]}
        for file in [
            name for name in variables if re.fullmatch(r"PILLARBOX_(STORE|TRANSPORT(S__.+__URL)?)_FILE", name)
        ]:
            written = tmp_path / file
            written.write_text("postgresql://app@db/shop" if "STORE" in file else "amqp://app@mq/")
            assert variables[file].startswith("/etc/pillarbox/secret/")
            variables[file] = str(written)
        settings = check_settings({name: value for name, value in variables.items() if name != "PILLARBOX_CONFIG"})
        if container["name"] != "schema":
            assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "http"}
            assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
        if container["name"] == "relay":
            assert seconds(settings.relay.config.drain_timeout) + 15 == pod["terminationGracePeriodSeconds"]
        if container["name"] == "console":
            assert settings.console.users_file == "/etc/pillarbox/secret/console-users"
            assert settings.console.listen.endswith(f":{container['ports'][0]['containerPort']}")


def test_the_exporter_is_scraped_where_it_listens(tools: Environment, tmp_path: Path) -> None:
    pod = of_kind(rendered(tools, tmp_path, {}), "Deployment", "-exporter")["spec"]["template"]
    [container] = pod["spec"]["containers"]
    port = str(container["ports"][0]["containerPort"])
    assert container["args"] == ["exporter", "--listen", f"0.0.0.0:{port}"]
    assert pod["metadata"]["annotations"]["prometheus.io/port"] == port


def test_the_tables_are_migrated_before_pods_start(tools: Environment, tmp_path: Path) -> None:
    manifests = rendered(tools, tmp_path, VALUES["everything"])
    job, config = of_kind(manifests, "Job"), of_kind(manifests, "ConfigMap", "-schema")
    assert config_map_of(job["spec"]["template"]["spec"]) == config["metadata"]["name"]
    weights = []
    for hook in (config, job):
        annotations = hook["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == "pre-install,pre-upgrade"
        weights.append(int(annotations["helm.sh/hook-weight"]))
    assert weights == sorted(weights)
    assert job["spec"]["template"]["spec"]["containers"][0]["args"] == ["schema", "apply"]
    assert config["data"]["pillarbox.toml"] == VALUES["everything"]["config"]


def test_the_configuration_of_pods_belongs_to_the_release(tools: Environment, tmp_path: Path) -> None:
    # Helm neither rolls back nor uninstalls what a hook has created.
    manifests = rendered(tools, tmp_path, VALUES["everything"])
    of_release = [one for one in manifests if "helm.sh/hook" not in one["metadata"].get("annotations", {})]
    config = of_kind(of_release, "ConfigMap")
    assert config["data"]["pillarbox.toml"] == VALUES["everything"]["config"]
    pods = [one["spec"]["template"]["spec"] for one in of_release if one["kind"] == "Deployment"]
    assert {config_map_of(pod) for pod in pods} == {config["metadata"]["name"]}


def config_map_of(pod: dict[str, Any]) -> str:
    [name] = [volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume]
    return str(name)


def test_each_of_several_transports_has_a_key_of_the_secret(tools: Environment, tmp_path: Path) -> None:
    pod = of_kind(rendered(tools, tmp_path, VALUES["several transports"]), "Deployment", "-relay")["spec"]["template"]
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    [container] = pod["spec"]["containers"]
    variables = {one["name"]: one.get("value") for one in container["env"]}
    given = {}
    for name in ("rabbit", "partner_2"):
        variable = f"PILLARBOX_TRANSPORTS__{name.upper()}__URL_FILE"
        assert variables[variable] == f"/etc/pillarbox/secret/transport-{name}"
        given[variable] = str(tmp_path / name)
        (tmp_path / name).write_text(f"amqp://app@{name.replace('_', '')}/")
    settings = check_settings(given)
    assert {name: transport.url for name, transport in settings.transports.items()} == {
        "rabbit": "amqp://app@rabbit/",
        "partner_2": "amqp://app@partner2/",
    }


def test_relays_scale_by_backlog(tools: Environment, tmp_path: Path) -> None:
    scaler = of_kind(rendered(tools, tmp_path, VALUES["everything"]), "HorizontalPodAutoscaler")
    assert scaler["spec"]["metrics"][0]["external"]["metric"]["name"] == "outbox_backlog"
    keda = rendered(tools, tmp_path, VALUES["keda"])
    scaled = of_kind(keda, "ScaledObject")
    relay = of_kind(keda, "Deployment", "-relay")
    assert scaled["spec"]["scaleTargetRef"]["name"] == relay["metadata"]["name"]
    assert scaled["spec"]["triggers"][0]["metadata"]["query"] == 'max(outbox_backlog{namespace="ops"})'
    assert "replicas" not in relay["spec"], "the scaler decides"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"relay": {"replicas": 65}}, "replicas"),
        ({"relay": {"replica": 2}}, "replica"),
        ({"consumers": [{"name": "billing", "object": "shop.billing"}]}, "object"),
        ({"relay": {"autoscaling": {"enabled": True, "minReplicas": 9}}}, "minReplicas is 9"),
        ({"secretName": ""}, "secretName"),
        ({"relay": {"disruptionBudget": {"minAvailable": 0}}}, "set one of them to null"),
        ({"consumers": [{"name": "console", "object": "shop.billing:consumer"}]}, "name"),
        ({"transports": ["a-b"]}, "transports"),
    ],
)
def test_wrong_values_are_refused(tools: Environment, tmp_path: Path, values: dict[str, Any], why: str) -> None:
    (tmp_path / "values.json").write_text(json.dumps(values))
    command = [str(tools.bin / "helm"), "template", "shop", str(CHART), "-f", "values.json"]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert why in refused.stderr


# --- systemd


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A file system with the units, with an instance of each template, and with the command."""
    units, command = tmp_path / "etc/systemd/system", tmp_path / "opt/pillarbox/bin/pillarbox"
    units.mkdir(parents=True)
    command.parent.mkdir(parents=True)
    shutil.copy("/bin/true", command)
    for unit in UNITS:
        # On the command line of systemd-analyze, a colon would separate a file from an alias.
        instance = "instance" if unit.stem.endswith("@") else ""
        shutil.copy(unit, units / f"{unit.stem}{instance}.service")
    return tmp_path


def analyze(machine: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [available(SYSTEMD_ANALYZE.path), *arguments, f"--root={machine}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def installed(machine: Path) -> list[Path]:
    return sorted((machine / "etc/systemd/system").iterdir())


def verified(machine: Path) -> str:
    """What `systemd-analyze verify` complains about."""
    checked = analyze(machine, "verify", "--man=no", "--recursive-errors=no", *map(str, installed(machine)))
    return checked.stderr.strip() or ("" if checked.returncode == 0 else f"status {checked.returncode}")


def test_systemd_accepts_the_units(machine: Path) -> None:
    assert len(installed(machine)) == 4
    assert verified(machine) == ""


def test_systemd_would_complain_about_a_mistake(machine: Path) -> None:
    [console] = [unit for unit in installed(machine) if "console" in unit.name]
    console.write_text(console.read_text().replace("TimeoutStopSec=", "TimeoutStopSeconds="))
    assert "TimeoutStopSeconds" in verified(machine)


def test_the_units_are_hardened(machine: Path) -> None:
    for unit in installed(machine):
        checked = analyze(machine, "security", "--offline=true", f"--threshold={EXPOSURE}", str(unit))
        assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_runs_an_existing_command_and_waits_for_the_drain(unit: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    [start] = re.findall(r"^ExecStart=/opt/pillarbox/bin/pillarbox (.+)$", text, re.MULTILINE)
    [timeout] = re.findall(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
    check_command([word.replace("%i", "shop.billing:consumer") for word in start.split() if word != "$OPTIONS"])
    assert int(timeout) > (0 if unit.stem in ("pillarbox-console", "pillarbox-exporter") else DRAIN)
    assert "KillSignal=SIGTERM" in text


def test_units_that_share_a_state_directory_have_one_user() -> None:
    # systemd gives the directory to the user of the unit that starts: other dynamic users would lose their files.
    settings = [dict(re.findall(r"^(\w+)=(.+)$", unit.read_text(encoding="utf-8"), re.MULTILINE)) for unit in UNITS]
    assert {(unit["StateDirectory"], unit["DynamicUser"], unit.get("User")) for unit in settings} == {
        ("pillarbox", "yes", "pillarbox")
    }


# --- the page

PAGE = ROOT / "docs/how-to/deploy.md"
TYPED = [line.removeprefix("$ ") for block in blocks(PAGE, "console") for line in block.splitlines()]


@pytest.mark.parametrize("command", [command for command in TYPED if re.match("helm (lint|template) ", command)])
def test_the_commands_of_helm_work(tools: Environment, command: str) -> None:
    tools.run(*shlex.split(command), folder=ROOT)


def test_the_page_names_files_units_and_keys_that_exist() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for path in re.findall(r"deploy/[\w./*-]*\w", text):
        assert list(ROOT.glob(path)), path
    units = {unit.name for unit in UNITS}
    found = re.findall(r" (pillarbox-[a-z]+)(@\S+)?", text)
    named = [f"{stem}{'@' if instance else ''}.service" for stem, instance in found]
    assert named
    assert set(named) <= units
    [secret] = [command for command in TYPED if command.startswith("kubectl create secret")]
    keys = set(re.findall(r"--from-(?:file|literal)=([a-z-]+)=", secret))
    templates = "".join(file.read_text(encoding="utf-8") for file in (CHART / "templates").iterdir())
    used = re.findall(r"/etc/pillarbox/secret/([a-z-]+)$|key: ([a-z-]+)$", templates, re.MULTILINE)
    assert keys == {file or variable for file, variable in used}


def test_the_users_of_the_console_are_printed_as_compose_takes_them() -> None:
    [line] = [command for command in TYPED if command.startswith("export CONSOLE_USERS=")]
    command = f'{line}; echo "$CONSOLE_USERS"'
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    shown = subprocess.run(["bash", "-c", command], env={"PATH": path}, capture_output=True, text=True, check=True)
    settings = check_settings({"PILLARBOX_CONSOLE__USERS": shown.stdout.strip()})
    assert str(settings.console.users).startswith("ada:")
