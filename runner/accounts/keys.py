"""Makes, finds and revokes API keys."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from runner.accounts.models import BOTH, ApiKey

MARK = "kbx_"  # lets secret scanners, and people, tell a key of ours
RANDOM_BYTES = 32
STARTS_WITH = 12  # characters that are kept: the mark and 8 of 43
LONGEST_DAYS = 366
DEFAULT_DAYS = 90
MOST_USABLE = 20  # keys of an account at a time
MOST_AN_HOUR = 10
NOTED_EVERY = timedelta(minutes=1)  # a use: a write for each request would cost more than it tells


class KeyRefused(Exception):  # noqa: N818  an answer, no error of ours
    """No key was made; says why and what to do."""


@dataclass(frozen=True)
class NewKey:
    """The only time that `secret` is anywhere on the site."""

    row: ApiKey
    secret: str


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


@transaction.atomic
def make(user: Any, name: str, scopes: str = BOTH, days: int = DEFAULT_DAYS) -> NewKey:
    """A new key of this account. `KeyRefused` above the limits, for calls at once too."""
    get_user_model().objects.select_for_update().get(pk=user.pk)  # one maker at a time
    now = timezone.now()
    keys = ApiKey.objects.filter(user=user)
    if keys.filter(created_at__gt=now - timedelta(hours=1)).count() >= MOST_AN_HOUR:
        raise KeyRefused(f"{MOST_AN_HOUR} keys were made within the hour: try again later.")
    if keys.usable(now).count() >= MOST_USABLE:
        raise KeyRefused(f"{MOST_USABLE} keys are in use: revoke one that you no longer need.")
    secret = MARK + secrets.token_urlsafe(RANDOM_BYTES)
    row = ApiKey.objects.create(
        user=user,
        name=name,
        start=secret[:STARTS_WITH],
        digest=digest(secret),
        scopes=scopes,
        expires_at=now + timedelta(days=days),
    )
    return NewKey(row, secret)


def found(secret: str) -> ApiKey | None:
    """The key with its user, usable or not. Looked up by its hash, so there's nothing to time."""
    return ApiKey.objects.select_related("user").filter(digest=digest(secret)).first()


def note_use(key: ApiKey) -> None:
    now = timezone.now()
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - NOTED_EVERY)
    ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)


def revoke(user: Any, pk: int) -> bool:
    """False when the account has no such key, or it was revoked before."""
    unrevoked = ApiKey.objects.filter(user=user, pk=pk, revoked_at__isnull=True)
    return bool(unrevoked.update(revoked_at=timezone.now()))
