"""What was entered: submissions, their candidates, and the sources of these."""

import hashlib
import uuid
from typing import Any

from django.conf import settings as site
from django.db import models
from django.db.models import Q
from django.urls import reverse

from benchmark import vocabulary
from benchmark.models.catalog import Method, Task
from benchmark.models.fields import choices, one_of


class Source(models.Model):
    """A candidate's text, stored once by its SHA-256. Data: never imported, never evaluated.

    Of a recorded result only the SHA-256 is known here: no text, and no size.
    """

    sha256 = models.CharField(max_length=64, primary_key=True)
    text = models.TextField(blank=True)
    size = models.PositiveIntegerField(help_text="Bytes in UTF-8; 0: the text is not stored here.")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(size__gt=0, size__lte=vocabulary.MAX_SOURCE_BYTES) & ~Q(text="")
                | Q(size=0, text=""),
                name="source_size_is_within_the_limit",
            ),
        ]

    def __str__(self) -> str:
        return self.sha256[:12]

    @property
    def is_stored(self) -> bool:
        return self.size > 0

    @staticmethod
    def digest(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()


class SubmissionQuerySet(models.QuerySet["Submission"]):
    def visible_to(self, user: Any) -> "SubmissionQuerySet":
        """What this user may see by following a link: every read of submissions starts here."""
        if user is not None and user.is_authenticated:
            if user.is_staff:
                return self
            return self.filter(
                Q(submitted_by=user) | Q(visibility__in=[vocabulary.PUBLIC, vocabulary.UNLISTED])
            )
        return self.filter(visibility__in=[vocabulary.PUBLIC, vocabulary.UNLISTED])

    def listed(self) -> "SubmissionQuerySet":
        """What lists, rankings and feeds may name: public and not withdrawn."""
        return self.filter(visibility=vocabulary.PUBLIC, withdrawn_at__isnull=True)


class Submission(models.Model):
    """A method's set of candidates under one label."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    method = models.ForeignKey(Method, on_delete=models.PROTECT, related_name="submissions")
    label = models.CharField(max_length=80)
    settings = models.JSONField(default=dict, blank=True, help_text="Temperature, prompt, ...")
    submitted_by = models.ForeignKey(
        site.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    visibility = models.CharField(
        max_length=16,
        choices=choices(vocabulary.VISIBILITIES),
        default=vocabulary.PUBLIC,
    )
    notes = models.JSONField(
        default=list, blank=True, help_text="What intake refused, by file and line."
    )
    recorded = models.JSONField(
        null=True,
        blank=True,
        help_text="Of results that our judge measured elsewhere: date, hardware, judge version.",
    )
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    objects = SubmissionQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["method", "label"], name="submission_label_is_unique_per_method"
            ),
            one_of("visibility", vocabulary.VISIBILITIES, "submission_visibility_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.method} / {self.label}"

    def get_absolute_url(self) -> str:
        return reverse("runner:submission", args=[self.uuid])


class Candidate(models.Model):
    """The source offered for one task in one round."""

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="candidates")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="candidates")
    round = models.PositiveSmallIntegerField(default=0)
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="candidates")
    place = models.CharField(max_length=300, blank=True, help_text="Where in the upload it stood.")

    class Meta:
        ordering = ["submission_id", "task_id", "round"]
        constraints = [
            models.UniqueConstraint(
                fields=["submission", "task", "round"], name="candidate_is_unique_per_round"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task_id} round {self.round}"
