"""What is compared: tasks and their versions, methods, GPUs."""

from django.db import models
from django.db.models import Q
from django.urls import reverse

from benchmark import vocabulary
from benchmark.models.fields import one_of


class TaskQuerySet(models.QuerySet["Task"]):
    def current(self) -> "TaskQuerySet":
        """Tasks that are judged and ranked: neither drafts nor retired."""
        return self.filter(is_draft=False, retired_at__isnull=True)

    def shown(self) -> "TaskQuerySet":
        """Tasks that pages may name: published, or retired since."""
        return self.filter(is_draft=False)

    def judged_on(self, gpu: "Gpu") -> "TaskQuerySet":
        """Of the current ones, those that apply to this GPU: its denominator."""
        tasks = self.current().exclude(not_on__has_key=gpu.slug)
        return tasks if gpu.can_time else tasks.filter(interpretable=True)

    def in_category(self, slug: str) -> "TaskQuerySet":
        return self.filter(category=slug)


class Task(models.Model):
    """An operator to implement: the site's copy of the contract, brought in by `sync_tasks`."""

    slug = models.SlugField(max_length=80, unique=True, help_text="The entry point's name.")
    category = models.CharField(
        max_length=32, choices=[(c.slug, c.label) for c in vocabulary.CATEGORIES]
    )
    difficulty = models.PositiveSmallIntegerField(help_text="1 (easy) to 5, as published.")
    dtypes = models.JSONField(default=list)
    signature = models.TextField()
    description = models.TextField(help_text="Formula, shapes, dtypes, edge rules.")
    tolerance = models.TextField(blank=True)
    differences = models.JSONField(
        default=list, help_text="Where the contract differs from the published one, and why."
    )
    delegates = models.JSONField(default=list, help_text="aten operators a library may do here.")
    aliases = models.JSONField(default=list)
    cases = models.JSONField(default=list, help_text="name, kind, dtype, family, shape of each.")
    reference_source = models.TextField()
    plain_source = models.TextField(blank=True, help_text="Our own plain Triton solution.")
    digest = models.CharField(max_length=64, help_text="Of code, cases and tolerances.")
    interpretable = models.BooleanField(
        default=True, help_text="Judgeable without a GPU, by Triton's interpreter."
    )
    is_draft = models.BooleanField(
        default=False, help_text="Not shown, judged or ranked until a moderator publishes it."
    )
    retired_at = models.DateTimeField(null=True, blank=True)
    stays_retired = models.BooleanField(
        default=False, help_text="A moderator retired it: `sync_tasks` leaves it so."
    )
    not_on = models.JSONField(
        default=dict,
        blank=True,
        help_text="Slugs of GPUs on which it is not applicable, each with the reason.",
    )

    objects = TaskQuerySet.as_manager()

    class Meta:
        ordering = ["slug"]
        constraints = [
            one_of("category", list(vocabulary.CATEGORY_BY_SLUG), "task_category_is_known"),
            one_of("difficulty", vocabulary.DIFFICULTIES, "task_difficulty_is_1_to_5"),
            models.CheckConstraint(
                condition=Q(digest__regex=r"^[0-9a-f]{64}$"), name="task_digest_is_64_hex"
            ),
        ]

    def __str__(self) -> str:
        return self.slug

    def get_absolute_url(self) -> str:
        return reverse("leaderboard:task", args=[self.slug])

    @property
    def state(self) -> str:
        if self.is_draft:
            return vocabulary.DRAFT
        return vocabulary.RETIRED if self.retired_at else vocabulary.LIVE

    def applies_to(self, gpu: "Gpu") -> bool:
        """A GPU that can't time is the interpreter, which can't compute in every dtype either."""
        return gpu.slug not in self.not_on and (gpu.can_time or self.interpretable)


class TaskVersion(models.Model):
    """One digest that a task has had: results of an earlier one are stale, not ranked."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="versions")
    digest = models.CharField(max_length=64)
    reference_source = models.TextField()
    contract = models.JSONField(
        default=dict,
        help_text="What else the task said then: signature, cases, tolerance. Empty: not kept.",
    )
    first_seen_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-first_seen_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["task", "digest"], name="task_version_is_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.task_id}@{self.digest[:12]}"


class Method(models.Model):
    """Who or what writes kernels: a language model, an agent, a compiler, a human."""

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=120)
    kind = models.CharField(
        max_length=16, choices=list(vocabulary.METHOD_KINDS.items()), default="model"
    )
    organisation = models.CharField(max_length=120, blank=True)
    url = models.URLField(blank=True)
    description = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "id"]
        constraints = [one_of("kind", list(vocabulary.METHOD_KINDS), "method_kind_is_known")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("leaderboard:method", args=[self.slug])


class GpuQuerySet(models.QuerySet["Gpu"]):
    def judging(self) -> "GpuQuerySet":
        """GPUs to which new candidates are sent."""
        return self.filter(is_judging=True)


class Gpu(models.Model):
    """A GPU product. Peaks are the vendor's dense figures; `peak_source` says where they stand."""

    slug = models.SlugField(max_length=40, unique=True, help_text="Also its queue: gpu.<slug>.")
    name = models.CharField(max_length=80)
    vendor = models.CharField(max_length=40, blank=True)
    architecture = models.CharField(max_length=40, blank=True, help_text="sm_90, gfx942, ...")
    memory_bytes = models.BigIntegerField(null=True, blank=True)
    peak_bandwidth = models.FloatField(null=True, blank=True, help_text="Bytes per second.")
    peak_flops = models.JSONField(
        default=dict, blank=True, help_text="FLOP/s by dtype, dense, without sparsity."
    )
    peak_source = models.CharField(max_length=200, blank=True)
    can_time = models.BooleanField(
        default=True, help_text="False: correctness only (Triton's interpreter on the CPU)."
    )
    is_judging = models.BooleanField(
        default=False, help_text="New candidates are sent to this GPU's queue."
    )

    objects = GpuQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        verbose_name = "GPU"

    def __str__(self) -> str:
        return self.name

    @property
    def queue(self) -> str:
        return f"gpu.{self.slug}"
