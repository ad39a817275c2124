"""Quotas: what is charged, refused, given back, and that uploads at once can't use more."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from benchmark.models import Gpu, Submission
from runner import dispatch, recording, submitting
from runner.accounts import quota
from runner.accounts.models import Allowance, Quota
from runner.models import Job

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return User.objects.create_user("ann")


@pytest.fixture(autouse=True)
def tasks(make: Any, settings: Any) -> None:
    settings.KBX_QUOTA_PER_DAY = 5
    for at in range(4):
        make.task(f"task{at}", interpretable=at != 0)


def send(user: Any, make: Any, count: int, label: str = "a") -> Submission:
    names = [f"task{at}" for at in range(count)]
    return submitting.accept(submitting.method_named("M"), label, make.intake(*names), user)


def used(user: User) -> dict[str, int]:
    return dict(Quota.objects.filter(user=user).values_list("gpu__slug", "used"))


def test_an_upload_is_charged_by_gpu_for_what_each_can_judge(
    ann: User, make: Any, h200: Gpu, interpreter: Gpu
) -> None:
    send(ann, make, 3)
    assert used(ann) == {"h200": 3, "cpu-interpreter": 2}
    left = {row.slug: (row.used, row.left) for row in quota.standing(ann)}
    assert left == {"h200": (3, 2), "cpu-interpreter": (2, 3)}


def test_what_is_there_already_is_not_charged_again(ann: User, make: Any, h200: Gpu) -> None:
    send(ann, make, 3)
    send(ann, make, 3)
    assert used(ann) == {"h200": 3}


def test_more_than_is_left_is_refused_whole_with_figures(ann: User, make: Any, h200: Gpu) -> None:
    send(ann, make, 3)
    with pytest.raises(submitting.SubmissionRefused, match=r"4 judgements on H200.* 2 .*of your 5"):
        send(ann, make, 4, "b")
    assert used(ann) == {"h200": 3}
    assert Submission.objects.count() == 1
    assert Job.objects.count() == 3


def test_a_refusal_on_one_gpu_charges_no_other(
    ann: User, make: Any, h200: Gpu, interpreter: Gpu
) -> None:
    Allowance.objects.create(user=ann, gpu=h200, per_day=1)
    with pytest.raises(submitting.SubmissionRefused, match="H200"):
        send(ann, make, 3)
    assert sum(used(ann).values()) == 0


def test_without_an_account_nothing_is_charged(make: Any, h200: Gpu) -> None:
    send(None, make, 4)
    send(None, make, 4, "b")
    assert not Quota.objects.exists()
    assert quota.standing(None) == ()


def test_others_and_other_days_have_their_own(ann: User, make: Any, h200: Gpu) -> None:
    send(ann, make, 4)
    send(User.objects.create_user("bob"), make, 4, "b")
    yesterday = timezone.now().date() - timezone.timedelta(days=1)
    Quota.objects.filter(user=ann).update(day=yesterday)
    send(ann, make, 4, "c")
    assert sorted(Quota.objects.values_list("used", flat=True)) == [4, 4, 4]


@pytest.mark.parametrize(
    ("for_gpu", "for_all", "per_day"), [(2, None, 2), (None, 9, 9), (2, 9, 2), (0, 9, 0)]
)
def test_an_allowance_for_the_gpu_goes_before_one_for_all(
    ann: User, h200: Gpu, for_gpu: int | None, for_all: int | None, per_day: int
) -> None:
    if for_gpu is not None:
        Allowance.objects.create(user=ann, gpu=h200, per_day=for_gpu)
    if for_all is not None:
        Allowance.objects.create(user=ann, per_day=for_all)
    assert [row.per_day for row in quota.standing(ann)] == [per_day]


def test_a_second_allowance_of_a_kind_is_refused(ann: User) -> None:
    from django.db import IntegrityError, transaction

    Allowance.objects.create(user=ann, per_day=9)
    with pytest.raises(IntegrityError), transaction.atomic():
        Allowance.objects.create(user=ann, per_day=10)


def test_what_we_lose_is_given_back_once(ann: User, make: Any, h200: Gpu, settings: Any) -> None:
    settings.KBX_MAX_ATTEMPTS = 2
    send(ann, make, 3)
    job = Job.objects.order_by("id").first()
    recording.record_failure(str(job.uuid), 1, "the host burned down")
    assert used(ann) == {"h200": 3}  # it is tried again
    recording.record_failure(str(job.uuid), 2, "and the next")
    assert used(ann) == {"h200": 2}
    recording.record_failure(str(job.uuid), 2, "said twice")
    assert quota.refund(Job.objects.all().filter(pk=job.pk)) == 0
    assert used(ann) == {"h200": 2}


def test_what_a_gpu_declines_is_given_back(ann: User, make: Any, h200: Gpu) -> None:
    send(ann, make, 2)
    job = Job.objects.order_by("id").first()
    recording.record_declined(str(job.uuid), 1, "needs another architecture")
    assert used(ann) == {"h200": 1}


def test_a_verdict_is_paid_for_whatever_it_is(ann: User, make: Any, h200: Gpu) -> None:
    send(ann, make, 1)
    job = Job.objects.get()
    board = {"gpu": "h200", "serial": "1", "host": "h", "name": "H200"}
    assert recording.record_report(str(job.uuid), 1, board, make.report(job)) is not None
    assert used(ann) == {"h200": 1}
    submitting.withdraw(Submission.objects.get())
    assert used(ann) == {"h200": 1}


def test_withdrawing_gives_back_what_no_board_has_begun(ann: User, make: Any, h200: Gpu) -> None:
    submission = send(ann, make, 3)
    begun = Job.objects.order_by("id").first()
    device = {"gpu": "h200", "serial": "1", "host": "h", "name": "H200"}
    recording.record_started(str(begun.uuid), 1, device)
    submitting.withdraw(submission)
    assert used(ann) == {"h200": 1}
    submitting.withdraw(submission)
    assert dispatch.cancel(Job.objects.all()) == 0
    assert used(ann) == {"h200": 1}


def test_what_is_left_is_on_the_own_page_and_said_before_submitting(
    client: Any, ann: User, make: Any, h200: Gpu
) -> None:
    send(ann, make, 3)
    client.force_login(ann)
    page = " ".join(client.get("/me/").content.decode().split())
    assert (
        '<th scope="row">H200</th><td class="num">5</td><td class="num">3</td><td class="num">2'
        in page
    )
    assert quota.short_of(ann, {"h200": 2}) == ()
    [short] = quota.short_of(ann, {"h200": 3})
    assert (short.slug, short.left) == ("h200", 2)


def test_a_retried_job_asked_again_by_the_site_is_charged_to_nobody(
    ann: User, make: Any, h200: Gpu
) -> None:
    submission = send(ann, make, 2)
    dispatch.cancel(Job.objects.all())
    assert used(ann) == {"h200": 0}
    dispatch.enqueue(submission.candidates.select_related("task"), [h200])
    assert used(ann) == {"h200": 0}
