"""Settings from the environment: typed, with errors that name the variable and the remedy.

Standard library only: hosts with boards read their environment without Django.
"""

import os
from collections.abc import Collection


class Misconfigured(Exception):  # noqa: N818  like Django's ImproperlyConfigured
    """The environment lacks a variable, or has an unusable or insecure value in it."""


TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}
_gathered: list[str] | None = None


def gather() -> None:
    """From here on faults are kept, and what is at fault reads as its default, until `tell`."""
    global _gathered
    _gathered = []


def tell() -> None:
    """End gathering: one `Misconfigured` that says every fault, where there was any."""
    global _gathered
    faults, _gathered = _gathered or [], None
    if len(faults) > 1:
        lines = "".join(f"\n- {fault}" for fault in faults)
        raise Misconfigured(f"{len(faults)} faults keep this site from starting:{lines}")
    if faults:
        raise Misconfigured(faults[0])


def refuse(fault: str) -> None:
    """Raise `Misconfigured`; while faults are gathered, keep this one and go on."""
    if _gathered is None:
        raise Misconfigured(fault) from None
    _gathered.append(fault)


def text(name: str, default: str | None = None) -> str:
    """The variable's value. Empty is like unset: the default, or an error where there is none."""
    value = os.environ.get(name) or default
    if value is None:
        refuse(f"{name} is not set: set it in the environment (.env.example).")
        return ""
    return value


def flag(name: str, default: bool) -> bool:
    value = os.environ.get(name, "1" if default else "0").strip().lower()
    if value not in TRUE | FALSE:
        refuse(f"{name}={value!r} is no flag: use 1 or 0.")
        return default
    return value in TRUE


def integer(name: str, default: int, least: int = 1) -> int:
    value = os.environ.get(name) or str(default)
    try:
        number = int(value)
    except ValueError:
        refuse(f"{name}={value!r} is no whole number: use {least} or more.")
        return default
    if number < least:
        refuse(f"{name}={value!r} is too small: use {least} or more.")
        return default
    return number


def word(name: str, default: str, known: Collection[str]) -> str:
    """One of the known words, in upper case."""
    value = text(name, default).upper()
    if value not in known:
        refuse(f"{name}={value!r} is unknown: use one of {', '.join(known)}.")
        return default.upper()
    return value


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list."""
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]
