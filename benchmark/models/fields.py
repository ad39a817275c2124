"""Constraint builders over the product's words. Plain strings, so that migrations stay readable."""

from collections.abc import Iterable

from django.db import models


def one_of(field: str, words: Iterable[object], name: str) -> models.CheckConstraint:
    """Refuse a value outside `words`. The field must be NOT NULL: a NULL passes every CHECK."""
    return models.CheckConstraint(condition=models.Q(**{f"{field}__in": list(words)}), name=name)


def choices(words: dict[str, str]) -> list[tuple[str, str]]:
    """Words as Django choices: the word itself is what admins read and what the database holds."""
    return [(word, word) for word in words]


def all_or_none(fields: Iterable[str]) -> models.Q:
    """True where the fields are all NULL or all set; spelled out, because NULL passes a CHECK."""
    names = list(fields)
    none = models.Q(**{f"{name}__isnull": True for name in names})
    every = models.Q(**{f"{name}__isnull": False for name in names})
    return none | every
