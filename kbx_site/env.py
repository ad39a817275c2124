"""Settings from the environment: typed, with errors that name the variable and the remedy.

Standard library only: hosts with boards read their environment without Django.
"""

import os


class Misconfigured(Exception):  # noqa: N818  like Django's ImproperlyConfigured
    """The environment lacks a variable, or has an unusable or insecure value in it."""


TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}


def text(name: str, default: str | None = None) -> str:
    """The variable's value. Empty is like unset: the default, or an error where there is none."""
    value = os.environ.get(name) or default
    if value is None:
        raise Misconfigured(f"{name} is not set: set it in the environment (.env.example).")
    return value


def flag(name: str, default: bool) -> bool:
    value = os.environ.get(name, "1" if default else "0").strip().lower()
    if value not in TRUE | FALSE:
        raise Misconfigured(f"{name}={value!r} is no flag: use 1 or 0.")
    return value in TRUE


def integer(name: str, default: int) -> int:
    value = os.environ.get(name, str(default))
    try:
        return int(value)
    except ValueError:
        raise Misconfigured(f"{name}={value!r} is no whole number.") from None


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list."""
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]
