"""API keys of sites, one a site, in a file of the user's configuration that only they can read."""

import json
import os
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import click

OWNER_ONLY = 0o600
OTHERS = 0o077
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def file() -> Path:
    """Where keys are kept: $XDG_CONFIG_HOME/kbx/keys.json, by default in ~/.config."""
    configuration = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(configuration) / "kbx" / "keys.json"


def kept(site: str) -> str | None:
    """The key of this site, or None. A file that others can read is refused, as ssh does."""
    return _read().get(_named(site))


def keep(site: str, key: str) -> Path:
    """Keep this key for the site, in place of another. Returns the file."""
    _write(_read() | {_named(site): key})
    return file()


def forget(site: str) -> bool:
    """False when no key of the site is kept."""
    keys = _read()
    if keys.pop(_named(site), None) is None:
        return False
    _write(keys)
    return True


def is_in_the_clear(site: str) -> bool:
    """Whether a key would travel unencrypted over a network."""
    parts = urlsplit(site)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK


def _named(site: str) -> str:
    """Scheme, host and port: a key goes to the site that it was kept for, and to no other."""
    parts = urlsplit(site.lower())
    return f"{parts.scheme}://{parts.netloc}"


def _read() -> dict[str, str]:
    path = file()
    try:
        with path.open() as opened:
            if os.fstat(opened.fileno()).st_mode & OTHERS:
                raise click.ClickException(f"others can read {path}: chmod 600 {path}")
            keys = json.load(opened)
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise click.ClickException(f"{path} can't be read ({error}): remove it") from error
    if not isinstance(keys, dict):
        raise click.ClickException(f"{path} holds no keys: remove it")
    return {str(site): str(key) for site, key in keys.items()}


def _write(keys: dict[str, str]) -> None:
    """Whole or not at all, and never readable by others on the way."""
    path = file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)  # mkstemp makes files of mode 0600
    try:
        with os.fdopen(handle, "w") as opened:
            json.dump(keys, opened, indent=2)
        os.chmod(name, OWNER_ONLY)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
