"""What a public site is not started with: each fault is said, and nothing of what is well."""

from collections.abc import Iterable

import pytest

from kbx_site.settings import insecure

STRONG = "Zx" * 30 + "0123456789"


def only(faults: Iterable[str]) -> str:
    """The one fault."""
    (found,) = faults
    return found


@pytest.mark.parametrize("key", ["short", "a" * 60, "development-only-and-public" * 3])
def test_a_weak_signing_key(key: str) -> None:
    said = only(insecure.signing_key("KBX_SECRET_KEY_FALLBACKS", key))
    assert said.startswith("KBX_SECRET_KEY_FALLBACKS is weak")
    assert key not in said


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:////tmp/x.sqlite3", "must be PostgreSQL"),
        ("postgresql://kbx@db.internal/kbx", "has no password"),
        ("postgresql://kbx:password@127.0.0.1/kbx", "known to everybody"),
        ("postgresql://kernelbench:kernelbench@db/kbx", "known to everybody"),
        ("postgresql://someproject:someproject@db/kbx", "known to everybody"),
        ("postgresql://kbx:pw@db.internal/kbx", "short or known"),
    ],
)
def test_an_unfit_database(url: str, said: str) -> None:
    assert said in only(insecure.database(url))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("filesystem://localhost//", "must be Redis or RabbitMQ"),
        ("redis://broker.internal:6379/0", "has no password"),
        ("amqp://guest:guest@broker.internal//", "known to everybody"),
        ("rediss://:redis@10.0.0.2:6379/0", "short or known"),
    ],
)
def test_an_unfit_broker(url: str, said: str) -> None:
    assert said in only(insecure.broker(url))


@pytest.mark.parametrize("url", ["http://board.org", "https://board.org/deep/", "board.org"])
def test_an_address_that_is_not_over_tls(url: str) -> None:
    assert "must be an address over TLS" in only(insecure.origin("KBX_SITE_URL", url))


@pytest.mark.parametrize("names", [[], ["*"], ["."], ["board.org", "*"]])
def test_hosts_that_are_everybodys(names: list[str]) -> None:
    assert "must name the site's hosts" in only(insecure.hosts(names))


@pytest.mark.parametrize(
    ("token", "networks", "said"),
    [
        ("short", [], "KBX_METRICS_TOKEN is weak"),
        ("", ["0.0.0.0/0"], "is everybody"),
        ("", ["::/0"], "is everybody"),
        ("", ["prometheus"], "is no network"),
        ("", ["10.0.0.1/8"], "is no network"),
    ],
)
def test_metrics_that_strangers_could_read(token: str, networks: list[str], said: str) -> None:
    assert said in only(insecure.metrics(token, networks))


def test_nothing_is_said_of_what_is_well() -> None:
    faults = [
        *insecure.signing_key("KBX_SECRET_KEY", STRONG),
        *insecure.database(f"postgres://kbx:{STRONG}@db.internal:5432/kbx"),
        *insecure.database("postgresql://kbx@%2Frun%2Fpostgresql/kbx"),
        *insecure.database("postgresql://kbx@127.0.0.1/kbx"),
        *insecure.broker(f"rediss://:{STRONG}@broker.internal:6379/0"),
        *insecure.broker("redis://[::1]:6379/0"),
        *insecure.broker(f"amqps://kbx:{STRONG}@broker.internal//"),
        *insecure.hosts(["board.org", ".board.org", "[::1]"]),
        *insecure.origin("KBX_SITE_URL", "https://board.org/"),
        *insecure.metrics(STRONG, ["10.0.0.0/8", "fd00::/8", "10.1.2.3"]),
    ]
    assert faults == []
