"""PostgreSQL, Redis and RabbitMQ of a script's own, on free ports, which end with it; and what a
site on this machine needs beside them.
"""

import ipaddress
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from runner.processes import Child, children_of

POLL_SECONDS = 0.5
START_SECONDS = 90
UNPRIVILEGED = ("postgres", "nobody")  # PostgreSQL refuses to run as root


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(
    holds: Callable[[], bool],
    what: str,
    seconds: float = START_SECONDS,
    every: float = POLL_SECONDS,
) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} did not come within {seconds:g} s")
        time.sleep(every)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def below(pid: int) -> Iterator[int]:
    for child in list(children_of(pid)):
        yield child
        yield from below(child)


def kill(*pids: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


@dataclass
class Server:
    """A server process that can be killed and started again with what it has on disk."""

    name: str
    command: list[str]
    port: int
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    child: Child | None = None

    def start(self) -> None:
        environment = {**os.environ, **self.environment}
        self.child = Child(self.name, self.command, environment, self.folder / f"{self.name}.log")
        wait_until(lambda: answers(self.port), self.name, every=0.1)

    def kill(self) -> None:
        assert self.child is not None
        kill(*below(self.child.process.pid))
        self.child.kill_group()


def database_server(folder: Path, programs: Path | None = None, password: str = "") -> Server:
    """PostgreSQL as it is after initdb: it writes to disk before it says committed.

    `programs` has initdb and postgres, by default Debian's. Its superuser is `kbx`; without a
    password everybody on this machine gets in.
    """
    programs = programs or sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    data, port = folder / "postgresql", free_port()
    data.mkdir()
    as_owner = []
    if os.geteuid() == 0:
        as_owner = owned_by_somebody(data)
    make = [*as_owner, str(programs / "initdb"), "-D", str(data), "-E", "UTF8", "--no-locale"]
    make += ["-U", "kbx"]
    if password:
        (folder / "password").write_text(password)  # for whom initdb runs as, and for seconds
        make += ["-A", "scram-sha-256", "--pwfile", str(folder / "password")]
    else:
        make += ["-A", "trust"]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    (folder / "password").unlink(missing_ok=True)
    command = [*as_owner, str(programs / "postgres"), "-D", str(data), "-p", str(port)]
    options = ["-k", str(data), "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=100"]
    return Server("database", [*command, *options], port, folder)


def owned_by_somebody(data: Path) -> list[str]:
    """Give the folder to an account without rights; the words before a command that runs as it."""
    from pwd import getpwall

    known = {entry.pw_name: entry for entry in getpwall()}
    owner = next(known[name] for name in UNPRIVILEGED if name in known)
    shutil.chown(data, owner.pw_uid, owner.pw_gid)
    return ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]


def redis_server(folder: Path, program: str = "redis-server", password: str = "") -> Server:
    """With its append-only file, flushed every second: what a SIGKILL loses is nothing, what a
    power cut loses is a second, which the sweeper brings back.
    """
    (folder / "redis").mkdir()
    port = free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    kept = ["--appendonly", "yes", "--dir", str(folder / "redis")]
    secret = ["--requirepass", password] if password else []
    return Server("redis", [*command, *kept, *secret], port, folder)


def rabbitmq_server(folder: Path) -> Server:
    """A node of its own. Our jobs' queues there are quorum queues, the site's is durable."""
    home, port, gossip = folder / "rabbitmq", free_port(), free_port()
    home.mkdir()
    (home / "plugins").write_text("[].\n")
    environment = {
        "HOME": str(home),
        "RABBITMQ_NODENAME": f"drill{port}@localhost",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
        "RABBITMQ_CONF_ENV_FILE": str(home / "none"),
        "ERL_EPMD_PORT": str(gossip),
    }
    command = ["/usr/lib/rabbitmq/bin/rabbitmq-server"]
    return Server("rabbitmq", command, port, folder, environment)


def certificate(folder: Path) -> tuple[Path, Path]:
    """Of our own for 127.0.0.1, a day long: its file and the key's."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a script's own site")])
    address, now = ipaddress.ip_address("127.0.0.1"), datetime.now(UTC)
    usage = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
         "crl_sign", "encipher_only", "decipher_only"), False,
    )  # fmt: skip
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(address)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.KeyUsage(digital_signature=True, key_cert_sign=True, **usage), critical=True
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "site.pem", folder / "site.key"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.touch(0o600)
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return public, private


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "?")
