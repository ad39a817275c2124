"""What moderators decide beside verdicts: who may not submit, and where a merged method went."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from benchmark.models.catalog import Method


class BanQuerySet(models.QuerySet["Ban"]):
    def standing(self) -> "BanQuerySet":
        return self.filter(lifted_at__isnull=True)


class Ban(models.Model):
    """An account whose submissions are refused. Lifted, it stays as a record."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="bans"
    )
    reason = models.TextField(help_text="Told to the account when it tries to submit.")
    hidden = models.JSONField(
        default=dict,
        blank=True,
        editable=False,
        help_text="Submissions made private by the ban: uuid and what they were.",
    )
    banned_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    lifted_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = BanQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["user"], condition=Q(lifted_at__isnull=True), name="ban_stands_once"
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="ban_has_a_reason"),
        ]

    def __str__(self) -> str:
        return f"ban of user {self.user_id}"


class MethodRedirect(models.Model):
    """A method that was merged into another: its old slug and name lead there."""

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=120)
    method = models.ForeignKey(Method, on_delete=models.CASCADE, related_name="redirects")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return f"{self.slug}: now {self.method_id}"
