"""Conditional answers: 304 while nothing changed, never after it did; nobody's page is shared."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Semaphore

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import Http404, HttpResponse
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from benchmark import vocabulary
from benchmark.models import Audit, Board, Submission
from leaderboard import conditional, kept
from leaderboard.charts.registry import CHARTS
from runner import dispatch
from runner.accounts import keys
from runner.models import Job

THREADS = 4
PUBLIC = [
    "/",
    "/leaderboard/",
    "/leaderboard/?category=activation",
    "/leaderboard/?format=csv",
    "/categories/",
    "/categories/activation/",
    "/tasks/",
    "/tasks/relu/",
    "/methods/alpha/",
    "/about/metrics/",
    *(f"/charts/{name}.{kind}" for name in CHARTS for kind in ("json", "csv")),
]
BOARDS = ["/", "/leaderboard/", "/categories/", "/categories/activation/", "/tasks/"]


@pytest.fixture
def settled(site):
    """The site some time after its last change, with code older than that."""
    Board.bump()
    Board.objects.update(changed_at=timezone.now() - timedelta(seconds=5))
    return site


@pytest.fixture(autouse=True)
def _old_code(monkeypatch):
    monkeypatch.setattr(conditional, "release", lambda: 0.0)


def ask(client, url, before):
    return client.get(url, headers={"If-None-Match": before["ETag"]})


@pytest.mark.parametrize("url", PUBLIC)
def test_what_is_known_already_is_not_sent_again(client, settled, url):
    first = client.get(url)
    assert first.status_code == 200
    again = ask(client, url, first)
    assert (again.status_code, again.content) == (304, b"")
    assert again["ETag"] == first["ETag"]
    since = client.get(url, headers={"If-Modified-Since": first["Last-Modified"]})
    assert since.status_code == 304


@pytest.mark.parametrize("url", PUBLIC)
def test_a_304_costs_one_query(client, settled, url):
    first = client.get(url)
    with CaptureQueriesContext(connection) as queries:
        ask(client, url, first)
    assert len(queries) == 1


@pytest.mark.parametrize("url", PUBLIC)
def test_caches_ask_again_and_keep_cookies_and_fragments_apart(client, settled, url):
    first = client.get(url)
    for response in (first, ask(client, url, first)):
        assert {"public", "no-cache"} <= set(response["Cache-Control"].split(", "))
        assert {"Cookie", "HX-Request"} <= set(response["Vary"].split(", "))


def change_audit(site):
    Audit.objects.create(run=site.fast, verdict=vocabulary.CHEAT, reason="returns a constant")


def change_jobs(site):
    assert dispatch.enqueue([site.fast.candidate], [site.h200])


def change_lost(site):
    job = Job.objects.create(candidate=site.fast.candidate, gpu=site.h200, attempt=99)
    dispatch.retry(job, "our fault")


def change_cancelled(site):
    Job.objects.create(candidate=site.fast.candidate, gpu=site.h200)
    assert dispatch.cancel(Job.objects.all()) == 1


@pytest.mark.parametrize("change", [change_audit, change_jobs, change_lost, change_cancelled])
def test_after_a_change_the_page_is_made_anew(client, settled, change):
    before = {url: client.get(url) for url in BOARDS}
    change(settled)
    for url, first in before.items():
        assert ask(client, url, first).status_code == 200, url
        since = client.get(url, headers={"If-Modified-Since": first["Last-Modified"]})
        assert since.status_code == 200, url


def test_no_date_is_given_while_it_would_not_be_exact(client, settled):
    """A burst of changes, each a second or more after the one before, ends in the future."""
    Board.objects.update(changed_at=timezone.now() + timedelta(seconds=60))
    Board.bump()
    assert Board.seen().changed_at > timezone.now() + timedelta(seconds=60)
    assert "Last-Modified" not in client.get("/")


def test_no_date_is_given_when_the_code_is_newer(client, settled, monkeypatch):
    monkeypatch.setattr(conditional, "release", lambda: timezone.now().timestamp())
    assert "Last-Modified" not in client.get("/")


def test_another_release_has_another_etag(client, settled, monkeypatch):
    first = client.get("/")
    monkeypatch.setattr(conditional, "release", lambda: 1.0)
    assert ask(client, "/", first).status_code == 200


def test_a_fragment_is_not_the_page(client, settled):
    page = client.get("/leaderboard/")
    part = client.get("/leaderboard/", headers={"HX-Request": "true"})
    assert page["ETag"] != part["ETag"]
    asked = client.get(
        "/leaderboard/", headers={"HX-Request": "true", "If-None-Match": page["ETag"]}
    )
    assert asked.status_code == 200


@pytest.mark.parametrize("url", [*PUBLIC, "run"])
def test_who_is_logged_in_gets_a_page_that_no_cache_shares(client, settled, url):
    url = f"/runs/{settled.fast.uuid}/" if url == "run" else url
    anonymous = client.get(url)
    client.force_login(User.objects.create_user("owner"))
    response = client.get(url, headers={"If-None-Match": anonymous.get("ETag", '"x"')})
    assert response.status_code == 200
    assert {"private", "no-cache"} <= set(response["Cache-Control"].split(", "))
    assert "Cookie" in response["Vary"]
    assert "ETag" not in response


RUN, IN_API = "/runs/{}/", "/api/v1/runs/{}/"
OF_A_RUN = pytest.mark.parametrize("address", [RUN, IN_API])


@OF_A_RUN
def test_a_run_that_is_known_already_costs_two_queries_and_is_not_sent_again(
    client, settled, address
):
    url = address.format(settled.fast.uuid)
    first = client.get(url)
    for headers, status in [({}, 200), ({"If-None-Match": first["ETag"]}, 304)]:
        with CaptureQueriesContext(connection) as queries:
            again = client.get(url, headers=headers)
        assert (again.status_code, len(queries)) == (status, 2)  # who may see it, the generation
        assert again["ETag"] == first["ETag"]
        assert again.content == (first.content if status == 200 else b"")


@OF_A_RUN
def test_only_the_visitors_own_cache_keeps_a_run(client, settled, address):
    """It may be reached by its link alone."""
    first = client.get(address.format(settled.fast.uuid))
    for response in (first, ask(client, address.format(settled.fast.uuid), first)):
        assert {"private", "no-cache"} <= set(response["Cache-Control"].split(", "))
        assert {"Cookie", "Authorization"} <= set(response["Vary"].split(", "))
        assert "Last-Modified" not in response


@OF_A_RUN
@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"visibility": vocabulary.PRIVATE}, 404),
        ({"withdrawn_at": timezone.now()}, 410),
        ({"visibility": vocabulary.UNLISTED}, 200),
        ({"source_visibility": vocabulary.HIDDEN}, 200),
    ],
)
def test_what_became_of_a_run_is_told_whoever_knew_it(client, settled, address, fields, status):
    """Written past everything that raises the generation: who may see it is asked each time."""
    url = address.format(settled.fast.uuid)
    first = client.get(url)
    assert b"clamp" in first.content
    Submission.objects.filter(pk=settled.alpha.pk).update(**fields)
    for response in (client.get(url), ask(client, url, first)):
        assert response.status_code == status
        assert ("ETag" in response) == (status == 200)
        assert (b"clamp" in response.content) == (fields == {"visibility": vocabulary.UNLISTED})


@OF_A_RUN
def test_what_an_owner_or_moderator_sees_of_a_run_is_kept_for_nobody_else(client, settled, address):
    """Whoever asks first: the owner and moderators see the hidden source, others never."""
    url = address.format(settled.fast.uuid)
    owner, moderator = (User.objects.create_user(name) for name in ("owner", "moderator"))
    User.objects.filter(pk=moderator.pk).update(is_staff=True)
    Submission.objects.filter(pk=settled.alpha.pk).update(
        submitted_by=owner, source_visibility=vocabulary.HIDDEN
    )
    for user in (owner, None, moderator, None):
        if user:
            client.force_login(User.objects.get(pk=user.pk))
        else:
            client.logout()
        page = client.get(url).content
        assert (b"clamp" in page) == bool(user), user
        assert not (b"moderator" in page or b">owner<" in page) or user


@OF_A_RUN
def test_a_private_run_that_its_owner_asked_for_is_nobodys(client, settled, address):
    url = address.format(settled.fast.uuid)
    owner = User.objects.create_user("owner")
    Submission.objects.filter(pk=settled.alpha.pk).update(
        submitted_by=owner, visibility=vocabulary.PRIVATE
    )
    client.force_login(owner)
    mine = client.get(url)
    assert mine.status_code == 200
    client.logout()
    etag = mine.get("ETag", '"x"')
    assert client.get(url, headers={"If-None-Match": etag}).status_code == 404


@OF_A_RUN
def test_an_audit_is_on_a_runs_page_at_once(client, settled, address):
    url = address.format(settled.fast.uuid)
    first = client.get(url)
    change_audit(settled)
    again = ask(client, url, first)
    assert again.status_code == 200
    assert b"returns a constant" in again.content


def test_a_key_sees_its_owners_run_through_the_api_and_leaves_it_to_nobody(client, settled):
    owner = User.objects.create_user("owner")
    bearer = {"Authorization": f"Bearer {keys.make(owner, 'mine').secret}"}
    Submission.objects.filter(pk=settled.alpha.pk).update(
        submitted_by=owner, visibility=vocabulary.PRIVATE
    )
    url = IN_API.format(settled.fast.uuid)
    assert [client.get(url, headers=sent).status_code for sent in ({}, bearer, {})] == [
        404,
        200,
        404,
    ]


def test_a_run_is_kept_apart_by_how_it_is_written(client, settled):
    url = IN_API.format(settled.fast.uuid)
    plain = client.get(url)
    indented = client.get(url, headers={"Accept": "application/json; indent=4"})
    assert plain.json() == indented.json()
    assert len(indented.content) > len(plain.content)
    assert client.get(url).content == plain.content


def test_an_unlisted_method_is_its_owners_and_kept_for_nobody(client, settled):
    """Through the API as on its page, by session and by key; strangers can't tell that it is."""
    owner = User.objects.create_user("owner")
    Submission.objects.filter(pk=settled.alpha.pk).update(
        submitted_by=owner, visibility=vocabulary.UNLISTED
    )
    Board.bump()
    bearer = {"Authorization": f"Bearer {keys.make(owner, 'mine').secret}"}
    for url in ("/api/v1/methods/alpha/", "/methods/alpha/"):
        assert client.get(url).status_code == 404, url
        client.force_login(owner)
        mine = client.get(url)
        assert (mine.status_code, "private" in mine["Cache-Control"]) == (200, True), url
        client.logout()
        assert client.get(url).status_code == 404, url
    by_key = client.get("/api/v1/methods/alpha/", headers=bearer)
    assert (by_key.status_code, "ETag" in by_key) == (200, False)
    assert "private" in by_key["Cache-Control"]
    assert client.get("/api/v1/methods/alpha/").status_code == 404


def test_a_key_gets_no_kept_answer_and_an_unknown_one_is_refused(client, settled):
    url = "/api/v1/methods/alpha/"
    assert "Authorization" in client.get(url)["Vary"]
    unknown = client.get(url, headers={"Authorization": "Bearer kbx_nobody"})
    assert unknown.status_code == 401


def test_an_unknown_value_is_a_404_that_nobody_keeps(client, settled):
    response = client.get("/leaderboard/?gpu=h20")
    assert response.status_code == 404
    assert "ETag" not in response
    assert "public" not in response.get("Cache-Control", "")


def test_a_site_without_results_has_no_version_yet(client, db):
    assert "ETag" not in client.get("/")


def test_an_answer_is_kept_until_something_changes(client, settled):
    first = client.get("/leaderboard/")
    with CaptureQueriesContext(connection) as queries:
        again = client.get("/leaderboard/")
    assert len(queries) == 1  # the generation
    assert again.content == first.content
    apart = {"X-Request-ID"}  # names the request, not the answer
    assert {*again.headers.items()} ^ {*first.headers.items()} <= {
        (name, response[name]) for name in apart for response in (first, again) if name in response
    }
    change_audit(settled)
    assert client.get("/leaderboard/").content != first.content


def test_answers_are_kept_apart_by_address_and_host(client, settled, settings):
    settings.ALLOWED_HOSTS = ["testserver", "other.example"]
    client.get("/leaderboard/")
    for url, headers in [
        ("/leaderboard/?round=0", {}),
        ("/leaderboard/", {"Host": "other.example"}),
    ]:
        with CaptureQueriesContext(connection) as queries:
            client.get(url, headers=headers)
        assert len(queries) > 1, (url, headers)


def test_of_threads_that_ask_at_once_one_makes_the_answer():
    answers, begun, made = kept.Answers(2), Semaphore(0), []

    def make():
        for _ in range(THREADS):  # until all have asked
            begun.acquire(timeout=10)
        made.append("once")
        return HttpResponse("the page")

    def ask_for_it(_):
        begun.release()
        return answers.made(("page",), make).content

    with ThreadPoolExecutor(THREADS) as pool:
        assert {*pool.map(ask_for_it, range(THREADS))} == {b"the page"}
    assert made == ["once"]


def test_who_waited_for_a_failure_tries_anew():
    answers = kept.Answers(2)

    def fail():
        raise Http404

    with pytest.raises(Http404):
        answers.made(("page",), fail)
    assert answers.made(("page",), lambda: HttpResponse("found")).content == b"found"


def test_what_is_kept_is_bounded_and_the_least_asked_leaves():
    answers = kept.Answers(2)
    for place in ("a", "b", "c"):
        answers.put((place,), HttpResponse(place))
        answers.get(("a",))
    assert [answers.get((place,)) is not None for place in ("a", "b", "c")] == [True, False, True]


def test_refusals_cookies_and_huge_answers_are_not_kept():
    answers = kept.Answers(2)
    answers.put(("huge",), HttpResponse(b"x" * (kept.LARGEST_ANSWER + 1)))
    assert answers.get(("huge",)) is None
    with_cookie = HttpResponse("mine")
    with_cookie.set_cookie("a", "b")
    answers.put(("cookie",), with_cookie)
    answers.put(("missing",), HttpResponse("none", status=404))
    assert answers.get(("cookie",)) is None
    assert answers.get(("missing",)) is None


def test_nobodys_own_page_is_kept_for_others(client, settled):
    """An owner's method page names a private submission; a visitor's, asked after it, does not."""
    owner = User.objects.create_user("owner")
    Submission.objects.create(
        method=settled.alpha.method, label="canary", visibility="private", submitted_by=owner
    )
    client.force_login(owner)
    assert b"canary" in client.get("/methods/alpha/").content
    client.logout()
    assert b"canary" not in client.get("/methods/alpha/").content
