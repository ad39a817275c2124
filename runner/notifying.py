"""Mails submitters when all of a submission is judged. Who has no address looks at its page.

Asked by the sweeper, so that a mail server that is away holds nothing up: a submission is told of
once, and tried again only where the mail could not be handed over.
"""

import logging
from collections import Counter
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import send_mail
from django.db.models import Exists, OuterRef
from django.utils import timezone

from benchmark import vocabulary
from benchmark.models import Submission
from kbx_site import env
from runner.models import Job

logger = logging.getLogger("kbx.notifying")

AT_A_TIME = 20  # a sweep: mails go out one after another


def sweep() -> int:
    """Tell of submissions that are over; returns how many mails went out."""
    return sum(_tell(submission) for submission in _over()[:AT_A_TIME])


def _over() -> list[Submission]:
    """Judged to the end, of somebody with an address, and not told of yet."""
    jobs = Job.objects.filter(candidate__submission=OuterRef("pk"))
    return list(
        Submission.objects.filter(
            Exists(jobs),
            ~Exists(jobs.open()),
            told_at__isnull=True,
            withdrawn_at__isnull=True,
            submitted_by__is_active=True,
        )
        .exclude(submitted_by__email="")
        .select_related("method", "submitted_by")
        .order_by("id")[:AT_A_TIME]
    )


def _tell(submission: Submission) -> bool:
    """Send the mail, unless another sweep is at it; on failure the next sweep tries again."""
    owner = submission.submitted_by
    mine = Submission.objects.filter(pk=submission.pk, told_at__isnull=True)
    if owner is None or not mine.update(told_at=timezone.now()):
        return False
    try:
        send_mail(_subject(submission), _text(submission), None, [owner.email])
    except (SMTPException, OSError):
        logger.exception("submission=%s: the mail could not be sent", submission.uuid)
        Submission.objects.filter(pk=submission.pk).update(told_at=None)
        return False
    logger.info("submission=%s told of", submission.uuid)
    return True


def site_url() -> str:
    """Where this site is for its users: the worker that writes the mail has seen no request."""
    host = next(iter(settings.ALLOWED_HOSTS), "127.0.0.1").lstrip(".")
    usual = f"https://{host}" if settings.SECURE_SSL_REDIRECT else f"http://{host}:8000"
    return env.text("KBX_SITE_URL", usual).rstrip("/")


def _subject(submission: Submission) -> str:
    return f"Judged: {submission.method}, {submission.label}"


def _text(submission: Submission) -> str:
    lines = [f"All of {submission.label} by {submission.method} is judged."]
    lines += [f"  {gpu}: {said}" for gpu, said in _by_gpu(submission).items()]
    if submission.visibility != vocabulary.PUBLIC:
        meaning = vocabulary.VISIBILITIES[submission.visibility]
        lines.append(f"It is {submission.visibility}: {meaning}. You can publish it on its page.")
    return "\n".join([*lines, "", f"{site_url()}{submission.get_absolute_url()}", ""])


def _by_gpu(submission: Submission) -> dict[str, str]:
    """By GPU, how many ended in each verdict, or in the state of those without one."""
    counts: dict[str, Counter[str]] = {}
    jobs = Job.objects.filter(candidate__submission=submission).newest().order_by("gpu__name")
    for gpu, state, verdict in jobs.values_list("gpu__name", "state", "run__verdict"):
        counts.setdefault(gpu, Counter())[verdict or state] += 1
    return {
        gpu: ", ".join(f"{n} {word}" for word, n in found.most_common())
        for gpu, found in counts.items()
    }
