"""What was entered: submissions, their candidates, the sources of these, and drafts of uploads."""

import hashlib
import uuid
from typing import Any

from django.conf import settings as site
from django.db import models
from django.db.models import ExpressionWrapper, Q
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


def _shows_sources(user: Any) -> Q:
    there = Q(withdrawn_at__isnull=True)
    if user is not None and user.is_authenticated:
        if user.is_staff:
            return there
        return there & (Q(submitted_by=user) | Q(source_visibility=vocabulary.SHOWN))
    return there & Q(source_visibility=vocabulary.SHOWN)


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

    def with_sources_for(self, user: Any) -> "SubmissionQuerySet":
        """Those whose sources this user may read: every read of a source's text starts here.

        Of a withdrawn submission nobody reads them.
        """
        return self.visible_to(user).filter(_shows_sources(user))

    def telling_sources(self, user: Any) -> "SubmissionQuerySet":
        """With `shows_sources`: whether this user, who may see the submission, may read them."""
        told = ExpressionWrapper(_shows_sources(user), models.BooleanField())
        return self.annotate(shows_sources=told)

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
    source_visibility = models.CharField(
        max_length=16,
        choices=choices(vocabulary.SOURCE_VISIBILITIES),
        default=vocabulary.SHOWN,
        help_text="Who may read the sources; never more than may see the submission.",
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
    told_at = models.DateTimeField(
        null=True, blank=True, help_text="When its submitter was told that all of it is judged."
    )
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    objects = SubmissionQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["method", "label"], name="submission_label_is_unique_per_method"
            ),
            one_of("visibility", vocabulary.VISIBILITIES, "submission_visibility_is_known"),
            one_of(
                "source_visibility",
                vocabulary.SOURCE_VISIBILITIES,
                "submission_source_visibility_is_known",
            ),
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


class DraftQuerySet(models.QuerySet["Draft"]):
    def visible_to(self, user: Any) -> "DraftQuerySet":
        """A user's own; one that a stranger made is for whoever has its address."""
        if user is not None and user.is_authenticated:
            return self.filter(Q(created_by=user) | Q(created_by__isnull=True))
        return self.filter(created_by__isnull=True)

    def open(self) -> "DraftQuerySet":
        """Neither confirmed nor emptied."""
        return self.filter(submission__isnull=True)


class Draft(models.Model):
    """An upload that was read and waits for its author's word.

    `content` holds what intake found, compressed; the upload itself is not kept. Once confirmed the
    draft is empty and names its submission, so that a second confirmation finds the first.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    created_by = models.ForeignKey(
        site.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE
    )
    method = models.CharField(max_length=120)
    kind = models.CharField(max_length=16, choices=choices(vocabulary.METHOD_KINDS))
    label = models.CharField(max_length=80)
    visibility = models.CharField(max_length=16, choices=choices(vocabulary.VISIBILITIES))
    source_visibility = models.CharField(
        max_length=16, choices=choices(vocabulary.SOURCE_VISIBILITIES), default=vocabulary.SHOWN
    )
    filename = models.CharField(max_length=200, blank=True)
    content = models.BinaryField(default=bytes)
    submission = models.ForeignKey(
        Submission, null=True, blank=True, on_delete=models.CASCADE, related_name="drafts"
    )
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    objects = DraftQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            one_of("kind", vocabulary.METHOD_KINDS, "draft_method_kind_is_known"),
            one_of("visibility", vocabulary.VISIBILITIES, "draft_visibility_is_known"),
            one_of(
                "source_visibility",
                vocabulary.SOURCE_VISIBILITIES,
                "draft_source_visibility_is_known",
            ),
        ]

    def __str__(self) -> str:
        return f"draft {self.uuid}"

    def get_absolute_url(self) -> str:
        return reverse("runner:draft", args=[self.uuid])
