"""How much an account may have judged a day on each GPU: what is left, charging, giving back.

A judgement is one candidate on one GPU. A job remembers the quota that it was charged to until it
has been given back, so nothing is given back twice. Days are UTC. Uploads without an account and
judgements that the site asks for itself are charged to nobody.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from benchmark.models import Gpu
from runner.accounts.models import Allowance, Quota, take


class Exceeded(Exception):  # noqa: N818  an answer, no error of ours
    """Nothing was charged: the reason, and what to do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}: {remedy}")
        self.reason, self.remedy = reason, remedy


@dataclass(frozen=True, slots=True)
class Standing:
    """Judgements of today on one GPU."""

    gpu: str
    slug: str
    per_day: int
    used: int

    @property
    def left(self) -> int:
        return max(0, self.per_day - self.used)

    @property
    def used_percent(self) -> float:
        return min(100.0, 100 * self.used / self.per_day) if self.per_day else 100.0


def today() -> date:
    return timezone.now().date()


def renewal() -> datetime:
    """When the next day begins."""
    return datetime.combine(today() + timedelta(days=1), time.min, tzinfo=timezone.now().tzinfo)


def standing(user: Any, gpus: Iterable[Gpu] | None = None) -> tuple[Standing, ...]:
    """What is used and left today on each judging GPU; empty for visitors without an account."""
    if not getattr(user, "is_authenticated", False):
        return ()
    boards = list(Gpu.objects.judging() if gpus is None else gpus)
    allowed = _allowed(user, boards)
    rows = Quota.objects.filter(user=user, day=today()).order_by()
    used = dict(rows.values_list("gpu_id", "used"))
    return tuple(
        Standing(gpu.name, gpu.slug, allowed[gpu.pk], used.get(gpu.pk, 0)) for gpu in boards
    )


def short_of(user: Any, jobs: Mapping[str, int]) -> tuple[Standing, ...]:
    """The GPUs, by slug, on which these many judgements are more than is left."""
    gpus = Gpu.objects.filter(slug__in=[slug for slug, count in jobs.items() if count])
    return tuple(row for row in standing(user, gpus) if jobs[row.slug] > row.left)


@transaction.atomic
def charge(user: Any, judgements: Mapping[Gpu, int]) -> dict[int, int]:
    """Charge all of it or nothing (`Exceeded`). Returns the quota's id by the GPU's.

    Uploads at once can't use more than there is: a row is charged by one conditional statement.
    """
    if user is None:
        return {}
    # In the same order everywhere: two uploads must not wait for one another's rows.
    wanted = sorted(((g, n) for g, n in judgements.items() if n), key=lambda pair: pair[0].pk)
    allowed = _allowed(user, [gpu for gpu, _ in wanted])
    charged = {}
    for gpu, count in wanted:
        row, _ = Quota.objects.get_or_create(user=user, gpu=gpu, day=today())
        if not take(row, count, allowed[gpu.pk]):
            raise _exceeded(row, count, allowed[gpu.pk])
        charged[gpu.pk] = row.pk
    return charged


@transaction.atomic
def refund(jobs: "QuerySet[Any]") -> int:
    """Give back what these jobs were charged, once; to the day on which it was. Returns how many.

    Call it with jobs that end without having been judged, before the board is bumped: jobs, quotas,
    board are locked in this order.
    """
    charged = list(jobs.filter(quota__isnull=False).select_for_update().order_by("pk"))
    for quota, count in sorted(Counter(job.quota_id for job in charged).items()):
        Quota.objects.filter(pk=quota).update(used=F("used") - count)
    jobs.model.objects.filter(pk__in=[job.pk for job in charged]).update(quota=None)
    return len(charged)


def _allowed(user: Any, gpus: Iterable[Gpu]) -> dict[int, int]:
    """Judgements a day by GPU: the account's for that GPU, or for all, or the site's."""
    rows = Allowance.objects.filter(user=user).order_by().values_list("gpu_id", "per_day")
    own: dict[int | None, int] = dict(rows)
    usual: int = own.get(None, settings.KBX_QUOTA_PER_DAY)
    return {gpu.pk: own.get(gpu.pk, usual) for gpu in gpus}


def _exceeded(row: Quota, count: int, per_day: int) -> Exceeded:
    row.refresh_from_db()
    left = max(0, per_day - row.used)
    return Exceeded(
        f"{count:,} judgements on {row.gpu.name} are more than the {left:,} that are left of your "
        f"{per_day:,} of today",
        f"send fewer tasks or rounds, or wait until {renewal():%Y-%m-%d %H:%M} UTC",
    )
