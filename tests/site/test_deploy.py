"""What lies in deploy/ fits the code: commands, variables, limits, metrics; tools read it too."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
import yaml
from django.core.management import get_commands, load_command_class

from kbx_site import gauges, metrics
from runner.cli import main as kbx
from runner.intake.limits import MAX_UPLOAD_BYTES, MIB

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = [DEPLOY / "compose.yml", DEPLOY / "compose.gpu.yml"]
UNITS = sorted((DEPLOY / "systemd").iterdir())
NGINX = DEPLOY / "nginx/kbx.conf.template"
# What other programs' images and Docker itself read.
FOREIGN = {
    "POSTGRES_USER", "POSTGRES_DB", "RABBITMQ_DEFAULT_USER", "RABBITMQ_DEFAULT_PASS",
    "KBX_UPSTREAM",
}  # fmt: skip


def services(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text())["services"]


def documented() -> set[str]:
    """Variables that .env.example names, set or commented out."""
    return set(re.findall(r"^#?([A-Z][A-Z0-9_]+)=", (ROOT / ".env.example").read_text(), re.M))


def read_by_the_code() -> set[str]:
    """KBX_ variables that our own code asks the environment for."""
    asked = re.compile(r"(?:env\.\w+\(|environ(?:\.get\(|\[))\s*\"(KBX_\w+)\"")
    folders = ("kbx_site", "benchmark", "leaderboard", "runner", "deploy")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    return {name for file in files for name in asked.findall(file.read_text())}


def gunicorns() -> ModuleType:
    """Its configuration, as gunicorn reads it; nothing of it stays in our environment."""
    spec = importlib.util.spec_from_file_location("gunicorn_conf", DEPLOY / "gunicorn.conf.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PROMETHEUS_MULTIPROC_DIR", "set by nobody else while this is open")
        spec.loader.exec_module(module)
    return module


def check_command(words: list[str]) -> None:
    """That a command line of ours is one that our commands take."""
    program, *arguments = words
    if program.endswith("kbx"):
        name, *options = arguments
        command = kbx.get_command(click.Context(kbx), name)
        assert command is not None, words
        command.make_context(name, options, resilient_parsing=False)
    elif program.endswith("python") and arguments[0] == "manage.py":
        name, *options = arguments[1:]
        app = get_commands()[name]
        load_command_class(str(app), name).create_parser("manage.py", name).parse_args(options)
    elif program.endswith("python"):
        assert (ROOT / arguments[0]).is_file(), words
    elif program.endswith("gunicorn"):
        assert arguments == ["-c", "deploy/gunicorn.conf.py", "kbx_site.wsgi"]
    else:
        raise AssertionError(f"no program of ours: {words}")


def test_every_variable_that_the_code_reads_is_documented_and_no_other() -> None:
    # What a worker tells its own children, and what only development takes.
    only_inside = {"KBX_DEVICE", "KBX_SEAT", "KBX_DEBUG"}
    assert read_by_the_code() - documented() - only_inside == set()
    ours = {name for name in documented() if name.startswith("KBX_")}
    compose = "".join(path.read_text() for path in COMPOSE)
    unread = {name for name in ours - read_by_the_code() if f"${{{name}" not in compose}
    assert unread == set()


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_compose_files_name_what_there_is(path: Path) -> None:
    known = documented() | FOREIGN
    assert set(re.findall(r"\$\{(\w+)", path.read_text())) <= known
    for name, service in services(path).items():
        assert set(service.get("environment", {})) <= known, name
        if build := service.get("build"):
            assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()
        if service["image"].startswith("kbx-") and "command" in service:
            check_command(service["command"])
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            declared = yaml.safe_load(path.read_text())["volumes"]
            is_there = (
                source in declared or source == "./certificates" or (DEPLOY / source).exists()
            )
            assert is_there, volume
        for other in service.get("depends_on", ()):
            assert other in services(path), name


def test_a_site_of_compose_keeps_passwords_out_of_files_and_boards_out_of_the_internet() -> None:
    found = services(COMPOSE[0])
    published = [port for name in ("redis", "rabbitmq") for port in found[name]["ports"]]
    assert all(port.startswith("${KBX_BROKER_ADDRESS:-127.0.0.1}:") for port in published)
    assert "ports" not in found["db"]
    assert "ports" not in found["web"]
    assert found["web"]["environment"]["KBX_BEHIND_PROXY"] == "1"
    text = COMPOSE[0].read_text()
    assert set(re.findall(r"PASS(?:WORD)?: (.*)", text)) == {
        "${POSTGRES_PASSWORD:?set it in deploy/site.env}",
        "${KBX_BROKER_PASSWORD:?set it in deploy/site.env}",
    }


@pytest.mark.parametrize("name", ["site", "judge"])
def test_dockerfiles_copy_what_there_is(name: str) -> None:
    text = (DEPLOY / f"docker/{name}.Dockerfile").read_text()
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.M):
        for source in line.split():
            assert (ROOT / source).exists(), source
    for command in re.findall(r"^\s*CMD (\[.+\])$", text, re.M):
        check_command(yaml.safe_load(command))
    assert ("torch" in text.replace("No torch", "")) is (name == "judge")
    variables = set(re.findall(r"\b(KBX_\w+)=", text))
    assert variables <= documented()


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_start_commands_of_ours(path: Path) -> None:
    text = path.read_text()
    for line in re.findall(r"^ExecStart=(.+)$", text, re.M):
        check_command(line.split())
    for line in re.findall(r"^Environment=(.+)$", text, re.M):
        assert {word.split("=")[0] for word in line.split()} <= documented()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    for unit in UNITS:
        text = unit.read_text().replace("/opt/kbx", str(ROOT))
        # Programs and users of this machine: what is asked is whether the units can be read.
        text = re.sub(r"^(ExecStart=)\S+", rf"\1{sys.executable}", text, flags=re.M)
        text = re.sub(r"^(User|Group)=kbx$", r"\1=root", text, flags=re.M)
        (tmp_path / unit.name).write_text(text)
    files = [str(tmp_path / unit.name) for unit in UNITS]
    done = subprocess.run(["systemd-analyze", "verify", *files], capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if str(tmp_path) in line]
    assert done.returncode == 0, done.stderr
    assert said == []


def test_nginx_lets_through_what_the_site_takes_and_waits_as_long() -> None:
    text, web = NGINX.read_text(), gunicorns()
    (mebibytes,) = re.findall(r"client_max_body_size (\d+)m;", text)
    assert MAX_UPLOAD_BYTES < int(mebibytes) * MIB <= MAX_UPLOAD_BYTES + MIB
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s;", text)
    assert web.timeout < int(seconds) < web.timeout + 10
    assert web.keepalive > 60  # nginx's own for connections to us
    for header, value in (
        ("X-Forwarded-For", "$remote_addr"), ("X-Forwarded-Proto", "$scheme"),
        ("X-Request-ID", "$request_id"), ("X-Forwarded-Host", '""'), ("Forwarded", '""'),
    ):  # fmt: skip
        assert f"proxy_set_header {header} {value};" in text
    assert "proxy_ignore_headers X-Accel-Redirect" in text


@pytest.mark.skipif(
    not (shutil.which("nginx") and shutil.which("openssl")), reason="no nginx or openssl here"
)
def test_nginx_understands_its_configuration(tmp_path: Path) -> None:
    certificate = [
        "-keyout",
        str(tmp_path / "privkey.pem"),
        "-out",
        str(tmp_path / "fullchain.pem"),
    ]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x",
         *certificate], check=True, capture_output=True,
    )  # fmt: skip
    text = NGINX.read_text().replace("${KBX_HOST}", "board.example.org")
    text = text.replace("${KBX_UPSTREAM}", "127.0.0.1:8000")
    # `nginx -t` opens what it listens on, and somebody may have 80 and 443 here. Short: a socket's
    # path has a limit that a test's folder may be above.
    sockets = tempfile.mkdtemp(prefix="kbx")
    text = re.sub(r"listen (\d+)", rf"listen unix:{sockets}/\1", text)
    text = text.replace("/etc/kbx/certificates", str(tmp_path))
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; error_log stderr; events {{}} http {{ access_log off; {text} }}"
    )
    done = subprocess.run(
        ["nginx", "-t", "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path)],
        capture_output=True, text=True,
    )  # fmt: skip
    shutil.rmtree(sockets)
    assert done.returncode == 0, done.stderr


class Answering(BaseHTTPRequestHandler):
    """A web process whose readiness is its server's `code`."""

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["Host"]))  # type: ignore[attr-defined]
        self.send_response(self.server.code)  # type: ignore[attr-defined]
        self.end_headers()
        self.wfile.write(b'{"ready": false, "database": "the database does not answer"}')

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def web() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Answering)
    server.code, server.asked = 200, []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(("code", "ends"), [(200, 0), (503, 1)])
def test_dockers_probe_asks_by_the_sites_name(web: Any, code: int, ends: int) -> None:
    web.code = code
    done = subprocess.run(
        [sys.executable, str(DEPLOY / "probe.py")], capture_output=True, text=True,
        env={"KBX_ALLOWED_HOSTS": ".board.org, x.org", "KBX_BIND": f"0.0.0.0:{web.server_port}"},
    )  # fmt: skip
    assert done.returncode == ends
    assert web.asked == [("/readyz", "board.org")]
    assert ("does not answer" in done.stderr) is bool(ends)


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_alarms_ask_for_metrics_that_there_are() -> None:
    written = "".join(Path(module.__file__ or "").read_text() for module in (gauges, metrics))
    names = set(re.findall(r'"(kbx_\w+)"', written))
    names |= {"kbx_requests_total", "kbx_request_seconds_bucket"}
    asked = {name for rule in rules() for name in re.findall(r"\bkbx_\w+", rule["expr"])}
    assert asked <= names
    labels = {"view", "status", "gpu", "health", "check", "state", "reason", "queue", "job", "le"}
    used = {label for rule in rules() for label in re.findall(r"(\w+)=~?\"", rule["expr"])}
    assert used <= labels


def test_the_runbook_says_of_each_alarm_what_to_do_first() -> None:
    runbook = (ROOT / "docs/runbook.md").read_text()
    told = dict(re.findall(r"^\*\*(\w+)\*\* (.+)$", runbook, re.M))
    names = {rule["alert"] for rule in rules()}
    assert set(told) & names == names
    assert all(len(told[name]) > 80 for name in names)


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool here")
def test_alarms_are_raised_when_they_should_be() -> None:
    cases = str(Path(__file__).with_name("alarms.yml"))
    for command in (["check", "rules", str(DEPLOY / "prometheus-alerts.yml")],
                    ["test", "rules", cases]):  # fmt: skip
        done = subprocess.run(["promtool", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
