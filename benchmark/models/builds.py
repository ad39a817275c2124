"""What the compiler says of a source without a GPU: one row per source, architecture and Triton."""

from typing import Any

from django.db import models
from django.db.models import Q

from benchmark import vocabulary
from benchmark.models.entries import Candidate, Source
from benchmark.models.fields import choices, one_of


class StaticBuildQuerySet(models.QuerySet["StaticBuild"]):
    """Reads of builds. The methods chain."""

    def newest(self) -> "StaticBuildQuerySet":
        """The last one of each source on each architecture: a newer Triton's supersedes."""
        later = StaticBuild.objects.filter(
            source=models.OuterRef("source"), architecture=models.OuterRef("architecture")
        ).order_by("-created_at", "-id")
        return self.filter(pk=models.Subquery(later.values("pk")[:1]))

    def of(self, candidates: Any) -> "StaticBuildQuerySet":
        """The builds of these candidates' sources."""
        return self.filter(
            source__in=Candidate.objects.filter(pk__in=[one.pk for one in candidates]).values(
                "source_id"
            )
        )


class StaticBuild(models.Model):
    """Whether a candidate's kernels build for an architecture, and what one block of them needs.

    Says nothing about a verdict. `untraced` means that we could not find out which kernels it
    launches: never a failure of the candidate. The figures are those of the kernel that needs most;
    `registers` per thread, `spills` in 32-bit words per thread.
    """

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="builds")
    architecture = models.CharField(max_length=16, help_text="sm_90, gfx942, ...")
    state = models.CharField(max_length=16, choices=choices(vocabulary.BUILD_STATES))
    reason = models.TextField(blank=True, help_text="Why it does not build or was not traced.")
    kernel_count = models.PositiveIntegerField(default=0, help_text="Kernels that were compiled.")
    registers = models.PositiveIntegerField(null=True, blank=True, help_text="Per thread, at most.")
    spills = models.PositiveIntegerField(null=True, blank=True, help_text="32-bit words, at most.")
    shared_bytes = models.PositiveIntegerField(
        null=True, blank=True, help_text="Of a block, at most."
    )
    shared_limit = models.PositiveIntegerField(help_text="Bytes that a block may have there.")
    kernels = models.JSONField(
        default=list, blank=True, help_text="One element per kernel that was compiled."
    )
    traced_case = models.CharField(max_length=120, blank=True, help_text="Whose launches they are.")
    triton_version = models.CharField(max_length=40)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = StaticBuildQuerySet.as_manager()

    class Meta:
        ordering = ["source_id", "architecture", "-created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "architecture", "triton_version"],
                name="static_build_is_unique_per_triton",
            ),
            one_of("state", vocabulary.BUILD_STATES, "static_build_state_is_known"),
            models.CheckConstraint(
                condition=Q(state="built") | ~Q(reason=""), name="static_build_says_why_not"
            ),
            models.CheckConstraint(
                condition=~Q(state="built")
                | Q(
                    kernel_count__gt=0,
                    shared_bytes__isnull=False,
                    shared_bytes__lte=models.F("shared_limit"),
                ),
                name="static_build_built_fits",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source_id[:12]} for {self.architecture}: {self.state}"
