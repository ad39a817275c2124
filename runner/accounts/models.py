"""API keys, and what an account has had judged of what it may have judged."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from benchmark.models import Gpu
from benchmark.models.fields import choices, one_of

READ, SUBMIT = "read", "submit"
BOTH = f"{READ} {SUBMIT}"
SCOPES = {
    BOTH: "submit, and read what your account may see",
    SUBMIT: "submit only",
    READ: "read only, your private submissions too",
}


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def usable(self, now: datetime | None = None) -> "ApiKeyQuerySet":
        """Neither revoked nor expired, of an account that may sign in."""
        now = now or timezone.now()
        return self.filter(revoked_at__isnull=True, expires_at__gt=now, user__is_active=True)


class ApiKey(models.Model):
    """Lets a program act for an account. Not the key is kept, but its SHA-256 and its beginning.

    A key holds 256 random bits, so a fast hash of it can't be searched; a password's could.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=80)
    start = models.CharField(max_length=12, help_text="The key's first characters, to tell it by.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    scopes = models.CharField(max_length=16, choices=choices(SCOPES), default=BOTH)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="Within a minute.")
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [one_of("scopes", SCOPES, "api_key_scopes_are_known")]

    def __str__(self) -> str:
        return f"{self.start}… of {self.user}"

    def may(self, scope: str) -> bool:
        return scope in self.scopes.split()

    @property
    def state(self) -> str:
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at <= timezone.now() else "usable"


class Allowance(models.Model):
    """How much one account may have judged a day, where it isn't what the site gives everybody."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="allowances")
    gpu = models.ForeignKey(
        Gpu, models.CASCADE, null=True, blank=True, related_name="+", help_text="Empty: each GPU."
    )
    per_day = models.PositiveIntegerField(help_text="Judgements a day; 0: none.")

    class Meta:
        ordering = ["user_id", "gpu_id"]
        constraints = [
            models.UniqueConstraint(fields=["user", "gpu"], name="allowance_is_one_per_gpu"),
            models.UniqueConstraint(
                fields=["user"], condition=Q(gpu__isnull=True), name="allowance_for_all_is_one"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.per_day} a day on {self.gpu or 'each GPU'} for {self.user}"


class Quota(models.Model):
    """Judgements that an account was charged for on a day (UTC) on a GPU."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="quotas")
    gpu = models.ForeignKey(Gpu, models.CASCADE, related_name="quotas")
    day = models.DateField()
    used = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-day", "user_id", "gpu_id"]
        constraints = [
            models.UniqueConstraint(fields=["user", "gpu", "day"], name="quota_is_one_a_day"),
            models.CheckConstraint(condition=Q(used__gte=0), name="quota_used_is_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.used} of {self.user} on {self.gpu} on {self.day:%Y-%m-%d}"


def take(quota: Quota, count: int, per_day: int) -> bool:
    """Charge `count`, in one statement, unless more than `per_day` would be used."""
    room = Quota.objects.filter(pk=quota.pk, used__lte=per_day - count)
    return bool(room.update(used=F("used") + count))
