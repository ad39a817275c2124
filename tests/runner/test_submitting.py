"""An upload is stored whole or not at all, and its candidates go to the judging GPUs."""

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmark.models import Board, Candidate, Gpu, Method, Source, Submission
from runner import submitting
from runner.intake import Found, Intake, Refusal
from runner.models import Job
from runner.submitting import SubmissionRefused, accept, method_named, plan

pytestmark = pytest.mark.django_db


@pytest.fixture
def method(make: Any) -> Method:
    for slug in ("relu", "gelu"):
        make.task(slug)
    return Method.objects.create(slug="some-model", name="Some Model")


def test_an_upload_becomes_a_submission_with_jobs(
    method: Method, h200: Gpu, make: Any, committed: Any, outbox: Any
) -> None:
    before = Board.current()
    with committed():
        submission = accept(method, "a", make.intake("relu", "gelu"))
    assert submission.candidates.count() == 2
    assert submitting.progress(submission)["queued"] == 2
    assert len(outbox.jobs()) == 2
    assert Board.current() > before


def test_equal_sources_are_stored_once(method: Method) -> None:
    text = "# the same"
    accept(method, "a", Intake((Found("relu", 0, text, "a"), Found("relu", 1, text, "b"))))
    assert Source.objects.get().candidates.count() == 2


def test_the_same_upload_again_changes_nothing(method: Method, h200: Gpu, make: Any) -> None:
    first = accept(method, "a", make.intake("relu"))
    again = accept(method, "a", make.intake("relu"))
    assert first == again
    assert (Candidate.objects.count(), Job.objects.count()) == (1, 1)


def test_a_later_round_adds(method: Method, make: Any) -> None:
    accept(method, "a", make.intake("relu"))
    submission = accept(method, "a", make.intake("relu", round=1, text="better"))
    assert list(submission.candidates.values_list("round", flat=True)) == [0, 1]


def test_another_source_for_the_same_round_is_refused_whole(method: Method, make: Any) -> None:
    accept(method, "a", make.intake("relu"))
    with pytest.raises(SubmissionRefused, match="round 0") as caught:
        accept(method, "a", make.intake("gelu", "relu", text="other"))
    assert "label" in caught.value.remedy
    assert Candidate.objects.count() == 1


def test_nothing_is_written_when_a_candidate_can_not_be_stored(
    method: Method, h200: Gpu, make: Any
) -> None:
    """The first candidate is fine, the second names a task that is gone: no row of either."""
    before = Board.current()
    with pytest.raises(SubmissionRefused, match="no task is named 'gone'"):
        accept(method_named("New"), "a", make.intake("relu", "gone"))
    for model in (Submission, Candidate, Source, Job):
        assert not model.objects.exists()
    assert not Method.objects.filter(slug="new").exists()
    assert Board.current() == before


def test_an_upload_without_a_candidate_says_why(method: Method) -> None:
    refused = Intake((), (Refusal("a.txt", "not a kind of file", "send .py"),))
    with pytest.raises(SubmissionRefused, match=r"a\.txt: not a kind of file; send \.py"):
        accept(method, "a", refused)


def test_refusals_of_an_accepted_upload_are_kept(method: Method, make: Any) -> None:
    intake = Intake(make.intake("relu").candidates, (Refusal("b.txt", "no", "send .py"),))
    submission = accept(method, "a", intake)
    assert submission.notes == [{"place": "b.txt", "reason": "no", "remedy": "send .py"}]


def test_a_label_belongs_to_who_used_it_first(method: Method, make: Any) -> None:
    ann, bob = (User.objects.create(username=name) for name in ("ann", "bob"))
    accept(method, "a", make.intake("relu"), ann)
    for other in (bob, AnonymousUser(), None):
        with pytest.raises(SubmissionRefused, match="use another label"):
            accept(method, "a", make.intake("gelu"), other)
    assert accept(method, "a", make.intake("gelu"), ann).candidates.count() == 2


@pytest.mark.parametrize("label", ["", "   ", "x" * 81, "a\u200bb", "\u202eb", "a\0b"])
def test_an_unusable_label_is_refused(method: Method, make: Any, label: str) -> None:
    with pytest.raises(SubmissionRefused, match="label"):
        accept(method, label, make.intake("relu"))


@pytest.mark.parametrize("name", ["", "!!!", "x" * 121, "\u202emodel", "a\u200bb", "a\0b", "模型"])
def test_an_unusable_method_name_is_refused(db: None, name: str) -> None:
    with pytest.raises(SubmissionRefused, match="can't name a method"):
        method_named(name)


def test_names_that_differ_in_case_and_spaces_are_one_method(method: Method, make: Any) -> None:
    accept(method, "a", make.intake("relu"))
    accept(method_named(" some  MODEL "), "b", make.intake("relu"))
    assert Method.objects.get().name == "Some Model"


@pytest.mark.parametrize(
    ("one", "other"), [("GPT-4.1", "GPT-41"), ("x" * 100, "x" * 101), ("C++", "C"), ("a b", "a-b")]
)
def test_other_names_are_other_methods(method: Method, make: Any, one: str, other: str) -> None:
    first = accept(method_named(one), "a", make.intake("relu")).method
    second = accept(method_named(other), "a", make.intake("relu")).method
    assert (first.name, second.name) == (one, other)
    assert first.slug != second.slug
    assert method_named(other) == second


def test_a_plan_tells_new_from_known_from_clashing_and_counts_jobs(
    method: Method, h200: Gpu, interpreter: Gpu, make: Any
) -> None:
    make.task("bf16", interpretable=False)
    accept(method, "a", make.intake("relu"))
    planned = plan(make.intake("relu", "gelu", "bf16"), method, "a")
    assert [found.task for found in planned.known] == ["relu"]
    assert [found.task for found in planned.new] == ["gelu", "bf16"]
    assert planned.jobs == {"h200": 2, "cpu-interpreter": 1}
    assert [f.task for f in plan(make.intake("relu", text="x"), method, "a").clashing] == ["relu"]
    assert Candidate.objects.count() == 1


def test_withdrawing_leaves_a_tombstone_and_takes_open_jobs_back(
    method: Method, h200: Gpu, make: Any
) -> None:
    submission = accept(method, "a", make.intake("relu", "gelu"))
    assert submitting.withdraw(submission) == 2
    assert not Submission.objects.listed().exists()
    assert submitting.progress(submission)["cancelled"] == 2
    with pytest.raises(SubmissionRefused, match="withdrawn"):
        accept(method, "a", make.intake("relu"))


def test_an_upload_of_528_candidates_takes_few_queries(
    method: Method, h200: Gpu, make: Any
) -> None:
    names = [make.task(f"t{at}").slug for at in range(176)]
    found = [Found(name, n, f"# {name} {n}", name) for name in names for n in range(3)]
    with CaptureQueriesContext(connection) as queries:
        submission = accept(method, "big", Intake(tuple(found)))
    assert submission.candidates.count() == Job.objects.count() == 528
    assert len(queries) < 49


def test_import_submission_reads_files_and_may_run_twice(
    h200: Gpu, make: Any, tmp_path: Any, capsys: Any
) -> None:
    make.task("relu")
    (tmp_path / "relu.py").write_text(
        "import triton\n@triton.jit\ndef k(x):\n    pass\ndef relu(input):\n    return input\n"
    )
    for _ in range(2):
        call_command("import_submission", str(tmp_path), "--method", "Mine", "--judge-on", "h200")
    assert Job.objects.get().candidate.submission.method.name == "Mine"
    with pytest.raises(CommandError, match="known are h200"):
        call_command("import_submission", str(tmp_path), "--method", "M", "--judge-on", "abacus")
    with pytest.raises(CommandError, match="no such file"):
        call_command("import_submission", str(tmp_path / "none"), "--method", "M")
