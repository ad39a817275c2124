"""Attached boards, and the jobs that wait for them."""

import uuid
from datetime import datetime, timedelta

from django.db import models
from django.db.models import F, Q
from django.urls import reverse
from django.utils import timezone

from benchmark import vocabulary
from benchmark.models import Candidate, Gpu, Run, Source, Task
from benchmark.models.fields import all_or_none, choices, one_of
from runner.accounts.models import Allowance, ApiKey, Quota

__all__ = ["Allowance", "ApiKey", "BuildRequest", "Device", "Job", "Quota"]


BOARD_SILENCE = timedelta(seconds=90)  # boards announce themselves every 15 s


class DeviceQuerySet(models.QuerySet["Device"]):
    def online(self) -> "DeviceQuerySet":
        """Heard of lately and not gone since, whether they take jobs or not."""
        lately = self.filter(last_seen_at__gt=timezone.now() - BOARD_SILENCE)
        return lately.exclude(state=vocabulary.GONE)

    def serving(self) -> "DeviceQuerySet":
        """There, and taking jobs."""
        return self.online().filter(state=vocabulary.SERVING)

    def at_once(self) -> int:
        """How many jobs they have in hand at once, when there are enough."""
        return int(self.aggregate(found=models.Sum("jobs", default=0))["found"])

    def in_trouble(self) -> "DeviceQuerySet":
        """There, and kept from taking jobs, with a reason."""
        return self.online().filter(state__in=(vocabulary.BROKEN, vocabulary.REFUSED))


class Device(models.Model):
    """One attached board that has reported to this site, and whether it takes jobs."""

    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="devices")
    serial = models.CharField(max_length=64, help_text="Hash of the board's UUID.")
    host = models.CharField(max_length=120)
    last_seen_at = models.DateTimeField()
    jobs = models.PositiveSmallIntegerField(
        default=1, db_default=1, help_text="It has so many in hand at once."
    )
    state = models.CharField(
        max_length=16, choices=choices(vocabulary.BOARD_STATES), default=vocabulary.SERVING
    )
    reason = models.TextField(blank=True, help_text="Why it takes no jobs.")
    remedy = models.TextField(blank=True)
    judge_version = models.CharField(max_length=40, blank=True)
    suite_digest = models.CharField(max_length=64, blank=True)

    objects = DeviceQuerySet.as_manager()

    class Meta:
        ordering = ["gpu_id", "host", "serial"]
        constraints = [
            models.UniqueConstraint(fields=["host", "serial"], name="device_is_unique_per_host"),
            one_of("state", vocabulary.BOARD_STATES, "device_state_is_known"),
            models.CheckConstraint(
                condition=Q(state__in=["broken", "refused"]) & ~Q(reason="")
                | ~Q(state__in=["broken", "refused"]) & Q(reason="", remedy=""),
                name="device_in_trouble_has_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.gpu_id} {self.serial[:12]} on {self.host}"


class JobQuerySet(models.QuerySet["Job"]):
    def open(self) -> "JobQuerySet":
        return self.filter(state__in=vocabulary.OPEN_JOB_STATES)

    def waiting(self) -> "JobQuerySet":
        """Queued here, with no message in the broker yet, and due."""
        due = Q(wait_until__isnull=True) | Q(wait_until__lte=timezone.now())
        return self.filter(due, state=vocabulary.QUEUED, sent_at__isnull=True)

    def sent(self) -> "JobQuerySet":
        """In the broker or on a board."""
        return self.open().filter(sent_at__isnull=False)

    def set_aside(self) -> "JobQuerySet":
        """Lost, and not asked for again since: for a moderator to look at and put back."""
        return self.newest().filter(state=vocabulary.LOST)

    def newest(self) -> "JobQuerySet":
        """The last job of each candidate on each GPU: earlier ones were asked again."""
        later = Job.objects.filter(
            candidate=models.OuterRef("candidate"),
            gpu=models.OuterRef("gpu"),
            pk__gt=models.OuterRef("pk"),
        )
        return self.filter(~models.Exists(later))

    def overdue(self, now: datetime) -> "JobQuerySet":
        """Sent, and nothing was heard within the lease."""
        return self.sent().filter(lease_expires_at__lt=now)


class Job(models.Model):
    """A candidate waiting for or under judgement on a GPU.

    `attempt` counts from 1 and names every message, so that an answer to an attempt that was given
    up is recognised. As many `failures` as are allowed set the job aside: it is lost, until a
    moderator puts it back. `sent_at` and `lease_expires_at` are NULL while no message about the job
    is in the broker; a lease that ran out makes the sweeper look after the job.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="jobs")
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="jobs")
    state = models.CharField(
        max_length=16, choices=choices(vocabulary.JOB_STATES), default=vocabulary.QUEUED
    )
    attempt = models.PositiveSmallIntegerField(default=1)
    failures = models.PositiveSmallIntegerField(
        default=0, help_text="Attempts that failed; not those that a board gave back unspent."
    )
    wait_until = models.DateTimeField(
        null=True, blank=True, help_text="Not sent before: a pause after a failed attempt."
    )
    sent_at = models.DateTimeField(null=True, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    device = models.ForeignKey(Device, null=True, blank=True, on_delete=models.SET_NULL)
    stage = models.CharField(max_length=8, blank=True)
    steps_done = models.PositiveIntegerField(default=0)
    steps_total = models.PositiveIntegerField(default=0)
    reason = models.TextField(blank=True, help_text="Why it was retried, declined or lost.")
    run = models.OneToOneField(Run, null=True, blank=True, on_delete=models.CASCADE)
    quota = models.ForeignKey(
        Quota,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="jobs",
        help_text="What it was charged to; none: to nobody, or given back.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        ordering = ["created_at", "id"]
        indexes = [
            models.Index(fields=["gpu", "state", "created_at"], name="job_next_in_line"),
            models.Index(fields=["state", "lease_expires_at"], name="job_expired_leases"),
        ]
        constraints = [
            one_of("state", vocabulary.JOB_STATES, "job_state_is_known"),
            models.UniqueConstraint(
                fields=["candidate", "gpu"],
                condition=Q(state__in=["queued", "running"]),
                name="job_is_open_once_per_candidate_and_gpu",
            ),
            models.CheckConstraint(
                condition=~Q(state="running") | Q(lease_expires_at__isnull=False),
                name="job_running_has_a_lease",
            ),
            models.CheckConstraint(
                condition=all_or_none(["sent_at", "lease_expires_at"]),
                name="job_sent_has_a_lease",
            ),
            models.CheckConstraint(
                condition=Q(state="done", run__isnull=False)
                | ~Q(state="done") & Q(run__isnull=True),
                name="job_has_a_run_when_done",
            ),
            models.CheckConstraint(condition=Q(attempt__gte=1), name="job_attempt_counts_from_1"),
            models.CheckConstraint(
                condition=Q(failures__lte=F("attempt")), name="job_fails_once_an_attempt"
            ),
        ]

    def __str__(self) -> str:
        return f"job {self.uuid}"

    def get_absolute_url(self) -> str:
        return reverse("runner:job", args=[self.uuid])


class BuildRequestQuerySet(models.QuerySet["BuildRequest"]):
    def waiting(self) -> "BuildRequestQuerySet":
        """Not in the broker, and not given up."""
        return self.filter(sent_at__isnull=True, gave_up_at__isnull=True)

    def sent(self) -> "BuildRequestQuerySet":
        """In the broker or with a worker."""
        return self.filter(sent_at__isnull=False)


class BuildRequest(models.Model):
    """A source that waits to be compiled for architectures that are not here, or is being compiled.

    The row goes when its builds are stored. After as many failures of ours as a job may have it is
    given up: it says nothing about the candidate.
    """

    source = models.OneToOneField(Source, on_delete=models.CASCADE, related_name="build_request")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="+")
    attempt = models.PositiveSmallIntegerField(default=1)
    sent_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    gave_up_at = models.DateTimeField(null=True, blank=True)
    reason = models.TextField(blank=True, help_text="Why the last attempt failed.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = BuildRequestQuerySet.as_manager()

    class Meta:
        ordering = ["created_at", "id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(started_at__isnull=True) | Q(sent_at__isnull=False),
                name="build_request_started_was_sent",
            ),
            models.CheckConstraint(
                condition=Q(gave_up_at__isnull=True) | Q(sent_at__isnull=True),
                name="build_request_given_up_is_not_sent",
            ),
        ]

    def __str__(self) -> str:
        return f"build of {self.source_id[:12]}"
