"""Open jobs of what moderators take out of judging end with it."""

from collections.abc import Sequence
from typing import Any

from django.dispatch import receiver

from benchmark import curation
from benchmark.models import Gpu, Task
from runner import dispatch
from runner.models import Job


@receiver(curation.taken_out)
def take_back(
    sender: object,
    reason: str,
    tasks: Sequence[Task] = (),
    gpus: Sequence[Gpu] | None = None,
    user: Any = None,
    **_: object,
) -> None:
    """What no board has begun is given back to its quota; a board's late report is ignored."""
    if user is not None:
        dispatch.cancel_of_user(user, reason)
    if gpus is None:
        dispatch.cancel_of_tasks(tasks, reason)
    else:
        jobs = Job.objects.open().filter(candidate__task__in=tasks, gpu__in=gpus)
        dispatch.cancel(jobs, reason)
