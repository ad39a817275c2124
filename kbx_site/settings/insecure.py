"""What a public site must not be started with: each fault in a sentence with its remedy.

Functions of the environment's texts, which never repeat a secret. Part of `production`.
"""

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urlsplit

SHORTEST_SECRET = 50  # characters; what `check --deploy` asks for too
SHORTEST_TOKEN = 16  # characters of the word that opens /metrics
SHORTEST_PASSWORD = 8  # characters; these are generated, never typed
KNOWN_SECRETS = ("development-only", "django-insecure", "change-me", "changeme")
KNOWN_PASSWORDS = {"password", "postgres", "changeme", "change-me", "guest", "admin", "kernelbench"}
HOW = 'python -c "import secrets; print(secrets.token_urlsafe(50))"'
BROKERS = ("redis", "rediss", "amqp", "amqps")


def signing_key(name: str, key: str) -> Iterator[str]:
    """A key that signs: long, and not one that everybody can read in a repository."""
    if len(key) < SHORTEST_SECRET or len(set(key)) < 5 or key.startswith(KNOWN_SECRETS):
        yield (
            f"{name} is weak: set {SHORTEST_SECRET} or more random characters, for example from: "
            f"{HOW}"
        )


def hosts(names: list[str]) -> Iterator[str]:
    if not names or {"*", "."} & set(names):
        yield (
            "KBX_ALLOWED_HOSTS must name the site's hosts, comma-separated and without '*', for "
            "example KBX_ALLOWED_HOSTS=kernelbench.example.org"
        )
    for name in names:
        if "/" in name or (":" in name and not name.startswith("[")):
            yield f"KBX_ALLOWED_HOSTS: {name!r} is no host name: leave https:// and the port out"


def origin(name: str, url: str) -> Iterator[str]:
    """An address of this site, as others see it: over HTTPS alone."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or parts.path.strip("/"):
        yield f"{name}={url!r} must be an address over TLS without path: https://{parts.hostname}"


def database(url: str) -> Iterator[str]:
    """PostgreSQL: SQLite has one writer and one machine, a public site has several processes."""
    if urlsplit(url).scheme not in ("postgres", "postgresql"):
        yield "DATABASE_URL must be PostgreSQL: postgresql://user:password@host:5432/name"
        return
    yield from password("DATABASE_URL", url)


def broker(url: str) -> Iterator[str]:
    """Whoever reaches the broker can report results, so nobody may without a password."""
    if urlsplit(url).scheme not in BROKERS:
        yield (
            "KBX_BROKER_URL must be Redis or RabbitMQ: redis://:password@host:6379/0 or "
            "amqp://user:password@host:5672//"
        )
        return
    yield from password("KBX_BROKER_URL", url)


def password(name: str, url: str) -> Iterator[str]:
    """That a server on another machine asks for a password, and not for one that everybody tries.

    On this machine (a socket, the loopback interface) who reaches it may be known to the system.
    """
    parts = urlsplit(url)
    word = unquote(parts.password or "")
    if not word and not is_here(parts.hostname):
        yield f"{name} has no password: give the server one, and the address the same"
    elif word and (
        len(word) < SHORTEST_PASSWORD or word.lower() in {*KNOWN_PASSWORDS, parts.username}
    ):
        yield (
            f"{name} has a password that is short or known to everybody: give the server "
            f"{SHORTEST_PASSWORD} or more random characters, and the address the same"
        )


def is_here(host: str | None) -> bool:
    """Whether the host is this machine: no host at all is a socket."""
    if not host or host == "localhost" or host.lower().startswith("%2f"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def metrics(token: str, allowed: list[str]) -> Iterator[str]:
    if token and len(token) < SHORTEST_TOKEN:
        yield f"KBX_METRICS_TOKEN is weak: set {SHORTEST_TOKEN} or more random characters"
    for word in allowed:
        try:
            everybody = ip_network(word).prefixlen == 0
        except ValueError:
            yield f"KBX_METRICS_ALLOW: {word!r} is no network: use 10.0.0.0/8 or 10.1.2.3"
            continue
        if everybody:
            yield f"KBX_METRICS_ALLOW={word} is everybody: name the network that Prometheus is in"
