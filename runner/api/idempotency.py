"""An upload that is repeated under its idempotency key is answered again, not taken again."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from benchmark.api import Problem
from runner.api.models import KEPT_FOR, Answered
from runner.throttling import UploadThrottle

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
LONGEST = 255


def key_of(request: Request) -> str:
    """The key, "" where none was sent; `Problem` where it is unusable."""
    key = request.headers.get(HEADER, "").strip()
    if len(key) > LONGEST or not (key.isascii() and key.isprintable()):
        raise Problem(
            f"The key has {len(key)} characters, or some that are not printable ASCII.",
            f"send up to {LONGEST}, a random UUID for example",
            HEADER,
        )
    return key


def digest_of(entry: Mapping[str, Any], name: str, content: bytes) -> str:
    """Of everything that decides what an upload does."""
    digest = hashlib.sha256()
    for word in (*(f"{key}={entry[key]}" for key in sorted(entry)), name):
        digest.update(f"{len(word)}:{word}".encode(errors="surrogatepass"))
    digest.update(content)
    return digest.hexdigest()


def answered(request: Request, digest: str, take: Callable[[], dict[str, Any]]) -> Response:
    """201 with what `take` says. Under a key it is called once: of two requests at a time the
    second waits for the first, and its answer is the first's. What `take` refuses keeps no key.
    """
    key, owner = key_of(request), _owner(request)
    if not key:
        return Response(take(), status=status.HTTP_201_CREATED)
    before = _before(owner, key, digest)
    if before is None:
        try:
            with transaction.atomic():
                row = Answered.objects.create(owner=owner, key=key, digest=digest, answer={})
                row.answer = take()
                row.save(update_fields=["answer"])
                _forget_old()
                return Response(row.answer, status=status.HTTP_201_CREATED)
        except IntegrityError:
            before = _before(owner, key, digest)  # somebody was quicker under the same key
            if before is None:
                raise
    return Response(before, status=status.HTTP_201_CREATED, headers={REPLAYED: "true"})


def _before(owner: str, key: str, digest: str) -> dict[str, Any] | None:
    row = Answered.objects.filter(owner=owner, key=key).first()
    if row is None:
        return None
    if row.digest != digest:
        raise Problem(
            f"The key {key[:40]!r} was sent before with another upload, which was taken.",
            "send a new key with a new upload, or repeat the first one unchanged",
            HEADER,
            code="idempotency-key-reused",
            status_code=status.HTTP_422_UNPROCESSABLE_ENTITY,
        )
    return dict(row.answer)


def _owner(request: Request) -> str:
    """A key is its sender's own: another account's or address's is another key."""
    if request.user.is_authenticated:
        return f"account {request.user.pk}"
    return f"address {UploadThrottle().get_ident(request)}"[:80]


def _forget_old() -> None:
    Answered.objects.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()
