"""Answers to uploads, kept by idempotency key so that a repeated request is not a second one."""

from datetime import timedelta

from django.db import models

KEPT_FOR = timedelta(days=7)


class Answered(models.Model):
    """One upload that was taken: who sent it under which key, its digest, and what it was told."""

    owner = models.CharField(max_length=80, help_text="An account, or a stranger's address.")
    key = models.CharField(max_length=255)
    digest = models.CharField(max_length=64, help_text="SHA-256 of fields, file name and bytes.")
    answer = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "key"], name="answered_once_per_key"),
        ]

    def __str__(self) -> str:
        return f"{self.key} of {self.owner}"
