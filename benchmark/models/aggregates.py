"""Derived tables: what pages read instead of every run. `benchmark.aggregates` keeps them."""

from django.db import models
from django.db.models import Q

from benchmark import vocabulary
from benchmark.models.catalog import Gpu, Method, Task
from benchmark.models.entries import Submission
from benchmark.models.fields import choices, one_of
from benchmark.models.results import Run


class CountingRun(models.Model):
    """The run that counts for a method on a task, GPU and lane in a round, copied from the facts.

    It is the newest run of the newest listed submission that has one in this round, without the
    runs that an audit took out. `is_final`: it also counts where no round is asked for. What
    changes by itself is not copied: whether the task's digest is still the same is asked on
    reading.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True)
    uuid = models.UUIDField()
    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="+")
    method = models.ForeignKey(Method, on_delete=models.CASCADE, related_name="+", db_index=False)
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="+")
    gpu = models.ForeignKey(Gpu, on_delete=models.CASCADE, related_name="+", db_index=False)
    origin = models.CharField(max_length=16, choices=choices(vocabulary.ORIGINS))
    round = models.PositiveSmallIntegerField()
    is_final = models.BooleanField()
    verdict = models.CharField(max_length=16, choices=choices(vocabulary.VERDICTS))
    stage = models.CharField(max_length=8)
    speedup = models.FloatField(null=True)
    speedup_low = models.FloatField(null=True)
    speedup_high = models.FloatField(null=True)
    task_digest = models.CharField(max_length=64)
    is_suspect = models.BooleanField()
    audit = models.CharField(max_length=16, blank=True, help_text="The newest, if there is one.")

    class Meta:
        ordering = ["method_id", "task_id", "gpu_id", "origin", "round"]
        indexes = [
            models.Index(fields=["gpu", "origin", "round"], name="counting_run_of_a_round"),
            models.Index(
                fields=["gpu", "origin"], condition=Q(is_final=True), name="counting_run_of_a_board"
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["method", "task", "gpu", "origin", "round"],
                name="counting_run_is_one_per_round",
            ),
            models.UniqueConstraint(
                fields=["method", "task", "gpu", "origin"],
                condition=Q(is_final=True),
                name="counting_run_is_final_once",
            ),
            one_of("verdict", vocabulary.VERDICTS, "counting_run_verdict_is_known"),
            one_of("origin", vocabulary.ORIGINS, "counting_run_origin_is_known"),
        ]

    def __str__(self) -> str:
        return f"run {self.uuid} counts"


class RunTally(models.Model):
    """How many runs a submission has on a GPU in a lane."""

    submission = models.ForeignKey(
        Submission, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    gpu = models.ForeignKey(Gpu, on_delete=models.CASCADE, related_name="+", db_index=False)
    origin = models.CharField(max_length=16, choices=choices(vocabulary.ORIGINS))
    runs = models.PositiveIntegerField()

    class Meta:
        ordering = ["submission_id", "gpu_id", "origin"]
        constraints = [
            models.UniqueConstraint(
                fields=["submission", "gpu", "origin"], name="run_tally_is_one_per_lane"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.runs} runs"
