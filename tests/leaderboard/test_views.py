"""Pages: each answers empty and filled, escapes what strangers wrote, and hides what is private."""

import csv
import io
import json

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from benchmark import vocabulary
from benchmark.models import Audit, Board, Task
from leaderboard.charts.registry import CHARTS

LISTS = [
    "/",
    "/leaderboard/",
    "/categories/",
    "/categories/activation/",
    "/tasks/",
    "/about/metrics/",
]
EVIL = '"><script>alert("x")</script>'
CANARY = "canaryzq7"


@pytest.mark.django_db
@pytest.mark.parametrize("url", LISTS)
def test_an_empty_site_answers(client, url):
    response = client.get(url)
    assert response.status_code == 200
    assert b"KernelBench" in response.content


@pytest.mark.django_db
@pytest.mark.parametrize("name", CHARTS)
def test_an_empty_site_has_nothing_to_draw(client, name):
    assert client.get(f"/charts/{name}.json").status_code == 404


@pytest.mark.django_db
def test_a_site_with_an_idle_gpu_says_that_nobody_is_ranked(client, make):
    make.gpu()
    make.task()
    assert "No method is ranked on H200" in client.get("/").content.decode()
    assert "No method is ranked" in client.get("/leaderboard/").content.decode()
    assert "Nothing judged on H200" in client.get("/categories/").content.decode()
    assert "No result yet" in client.get("/tasks/relu/").content.decode()


@pytest.mark.parametrize("url", [*LISTS, "/tasks/relu/", "/methods/alpha/", "/methods/beta/"])
def test_a_filled_site_answers(client, site, url):
    assert client.get(url).status_code == 200


def test_home_says_who_is_best_on_which_gpu_by_how_much(client, site):
    page = client.get("/").content.decode()
    assert "On H200" in page
    assert "solves 2 of 3 kernel tasks" in page
    assert "1.73" in page
    assert "2 tasks ahead" in page


def test_home_and_leaderboard_stay_within_eight_queries(client, site):
    for url in ("/", "/leaderboard/"):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            client.get(url)
        assert len(queries) <= 8, url


def test_anonymous_pages_touch_no_session(client, site):
    for url in [*LISTS, "/tasks/relu/", "/methods/alpha/", f"/runs/{site.fast.uuid}/"]:
        response = client.get(url)
        assert not response.cookies, url
        assert not response.wsgi_request.session.accessed, url


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("/leaderboard/?gpu=h20", "h200"),
        ("/?gpu=h20", "h200"),
        ("/categories/activations/", "activation"),
        ("/tasks/reluu/", "relu"),
        ("/methods/alhpa/", "alpha"),
        ("/charts/speedup.json", "speedups"),
        ("/runs/00000000-0000-0000-0000-000000000000/", "not public"),
        ("/nowhere/", "No page has this address"),
    ],
)
def test_what_is_not_there_is_a_404_with_a_hint(client, site, url, hint):
    response = client.get(url)
    assert response.status_code == 404
    assert hint in response.content.decode()


@pytest.mark.parametrize("url", [*LISTS, "/tasks/relu/"])
def test_pages_only_read(client, site, url):
    assert client.post(url).status_code == 405


def test_a_run_shows_the_arithmetic_and_how_to_repeat_it(client, site):
    page = client.get(f"/runs/{site.fast.uuid}/").content.decode()
    assert "0.100 ms / 0.0500 ms" in page
    assert "2.00x" in page
    assert "1.20e-07" in page
    assert "kbx evaluate relu.py --task relu --device cuda:0" in page
    assert 'id="L-5"' in page or 'name="L-5"' in page


def test_a_failed_run_says_why_and_escapes_the_log(client, site):
    page = client.get(f"/runs/{site.failed.uuid}/").content.decode()
    assert vocabulary.VERDICTS["wrong-values"].replace("'", "&#x27;") in page
    assert "3 of 4096 elements off" in page
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_run_on_the_interpreter_has_no_times(client, site, make):
    run = make.run(site.beta, site.add, site.cpu, speedup=3.0)
    make.measurement(run, 0, speedup=3.0)
    page = client.get(f"/runs/{run.uuid}/").content.decode()
    assert "Correctness only" in page
    assert "3.00x" not in page


def test_source_is_text_that_no_browser_runs(client, site):
    response = client.get(f"/runs/{site.fast.uuid}/source.py")
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"].startswith("attachment")
    assert b"def relu" in response.content


def test_names_from_uploads_are_data(client, site, make):
    gpu, relu = site.h200, site.relu
    evil = make.submission(make.method("evil", name=EVIL, organisation=EVIL), label=EVIL)
    run = make.run(
        evil,
        relu,
        gpu,
        speedup=3.0,
        detail=EVIL,
        findings=[{"code": EVIL, "message": EVIL}],
        environment={"items": EVIL, "torch": EVIL},
        kernels=[{"name": EVIL}],
    )
    make.measurement(run, 0, detail=EVIL)
    for url in [
        *LISTS,
        "/tasks/relu/",
        "/methods/evil/",
        f"/runs/{run.uuid}/",
        f"/submissions/{evil.uuid}/",
    ]:
        page = client.get(url).content.decode()
        assert "<script>alert" not in page, url
    for name in CHARTS:
        assert "<script" not in json.dumps(client.get(f"/charts/{name}.json").json())


def test_csv_disarms_formulas(client, site, make):
    evil = make.submission(make.method("evil", name='=HYPERLINK("http://x")'))
    make.run(evil, site.relu, site.h200, speedup=3.0)
    for url in ("/leaderboard/?format=csv", *(f"/charts/{name}.csv" for name in CHARTS)):
        response = client.get(url)
        assert response["Content-Type"].startswith("text/csv")
        cells = [c for row in csv.reader(io.StringIO(response.content.decode())) for c in row]
        assert any("HYPERLINK" in cell for cell in cells), url
        assert not any(cell.startswith("=") for cell in cells), url


def test_the_board_as_csv_has_the_ranking(client, site):
    rows = list(
        csv.DictReader(io.StringIO(client.get("/leaderboard/?format=csv").content.decode()))
    )
    assert [(row["rank"], row["method"], row["correct"]) for row in rows] == [
        ("1", "Alpha", "2"),
        ("2", "Beta", "0"),
    ]
    assert rows[1]["speedup"] == ""
    assert rows[0]["baseline"] == "PyTorch eager"


def test_htmx_gets_the_board_alone_and_others_the_page(client, site):
    part = client.get("/leaderboard/", headers={"HX-Request": "true"})
    assert b"<html" not in part.content
    assert b'id="board"' in part.content
    assert "HX-Request" in part["Vary"]
    for more in ({"HX-Boosted": "true"}, {"HX-History-Restore-Request": "true"}):
        whole = client.get("/leaderboard/", headers={"HX-Request": "true", **more})
        assert b"<html" in whole.content


def test_the_lanes_are_labelled(client, site, make):
    make.run(site.beta, site.add, site.h200, speedup=99.0, origin=vocabulary.CLAIMED)
    assert "99.0x" not in client.get("/leaderboard/").content.decode()
    page = client.get("/leaderboard/?lane=claimed").content.decode()
    assert "Claimed, not measured" in page
    assert "99.0x" in page


def test_a_withdrawn_run_leaves_a_tombstone_without_its_source(client, site, make):
    gone = make.submission(make.method("gone"), withdrawn_at=make.START)
    run = make.run(gone, site.relu, site.h200, speedup=3.0)
    response = client.get(f"/runs/{run.uuid}/")
    assert response.status_code == 410
    assert b"clamp" not in response.content
    assert client.get(f"/runs/{run.uuid}/source.py").status_code == 404
    assert b"clamp" not in client.get(f"/submissions/{gone.uuid}/").content


@pytest.fixture
def hidden(site, make):
    """A private submission whose every name and text holds the canary."""
    owner = User.objects.create_user("owner")
    hidden = make.submission(
        make.method(CANARY, name=CANARY, organisation=CANARY, description=CANARY),
        label=CANARY,
        visibility=vocabulary.PRIVATE,
        submitted_by=owner,
        notes=[{"place": CANARY, "reason": CANARY, "remedy": CANARY}],
    )
    make.candidate(hidden, site.relu, text=f"# {CANARY}\n")
    run = make.run(hidden, site.relu, site.h200, speedup=9.0, detail=CANARY, log_tail=CANARY)
    make.run(hidden, site.add, site.h200, verdict=vocabulary.TIMEOUT, stage="call", detail=CANARY)
    return run


def test_nothing_private_is_in_any_anonymous_page(client, hidden):
    from runner.models import Job

    job = Job.objects.create(candidate=hidden.candidate, gpu=hidden.gpu, reason=CANARY)
    submission = hidden.candidate.submission
    urls = [
        *(f"{url}{query}" for url in LISTS for query in ("", "?gpu=h200")),
        "/tasks/relu/",
        "/tasks/add/",
        "/tasks/nothing-like-it/",
        "/methods/alpha/",
        "/methods/canaryzq/",
        "/leaderboard/?format=csv",
        "/queue/",
        "/submissions/new/",
        f"/runs/{hidden.uuid}/",
        f"/runs/{hidden.uuid}/source.py",
        f"/jobs/{job.uuid}/",
        f"/submissions/{submission.uuid}/",
        *(f"/charts/{name}.{kind}" for name in CHARTS for kind in ("json", "csv")),
    ]
    for url in urls:
        assert CANARY not in client.get(url).content.decode(), url


def test_the_owner_sees_it(client, hidden):
    client.force_login(User.objects.get(username="owner"))
    assert CANARY in client.get(f"/runs/{hidden.uuid}/").content.decode()
    assert (
        CANARY in client.get(f"/submissions/{hidden.candidate.submission.uuid}/").content.decode()
    )
    assert CANARY not in client.get("/leaderboard/").content.decode()


def test_the_error_page_of_last_resort_renders_without_a_request(settings):
    from django.template.loader import render_to_string

    for name in ("400.html", "403.html", "404.html", "500.html", "403_csrf.html"):
        assert "KernelBench" in render_to_string(name)


def test_a_kept_board_is_shown_without_asking_again_until_results_change(client, site, make):
    Board.bump()
    client.get("/leaderboard/")
    with CaptureQueriesContext(connection) as queries:
        client.get("/leaderboard/")
    assert len(queries) == 1  # the generation
    run = make.run(site.beta, site.add, site.h200, speedup=77.0)
    Audit.objects.create(run=run, verdict=vocabulary.CLEAN, reason="bumps the generation")
    assert "77.0" in client.get("/leaderboard/").content.decode()


def test_what_becomes_private_leaves_the_kept_board(client, site):
    Board.bump()
    assert "Beta" in client.get("/").content.decode()
    site.beta.visibility = vocabulary.PRIVATE
    site.beta.save()
    Board.bump()  # as the admin does with every change
    assert "Beta" not in client.get("/").content.decode()


def test_a_board_that_grows_says_how_much_still_waits(client, site, make):
    from runner.models import Job

    candidate = make.candidate(site.beta, site.add)
    job = Job.objects.create(candidate=candidate, gpu=site.h200)
    for url in ("/", "/leaderboard/", "/categories/", "/categories/math/"):
        assert "1 candidate waits or is under judgement on H200" in _flat(client.get(url)), url
    assert "Judging goes on" not in _flat(client.get(f"/?gpu={site.cpu.slug}"))
    job.delete()
    assert "Judging goes on" not in _flat(client.get("/"))


def test_the_interpreter_is_not_said_to_time_anything(client, site):
    page = _flat(client.get(f"/?gpu={site.cpu.slug}"))
    assert "Correctness only." in page
    assert "95 % intervals." not in page.split("<footer")[0]
    method = _flat(client.get("/methods/alpha/"))
    assert "Speedup, geometric mean" in method  # the H200 times


def test_methods_of_the_same_rank_are_said_to_be_tied(client, site, make):
    for name in ("gamma", "delta"):
        make.run(make.submission(make.method(name), name), site.relu, site.h200, speedup=1.0)
    page = _flat(client.get("/leaderboard/?category=activation"))
    assert page.count("tied</small>") >= 2


def test_a_cell_says_when_fewer_than_all_were_judged(client, site):
    assert "2/2</td>" in _flat(client.get("/categories/"))
    assert "0/2<small>1 judged</small>" in _flat(client.get("/categories/"))


def test_every_spread_of_the_suite_is_explained(client, db):
    from benchmark.suite.inputs import FAMILIES

    page = client.get("/about/metrics/").content.decode()
    assert [word for word in FAMILIES if f'<th scope="row">{word}</th>' not in page] == []


def test_every_stage_and_verdict_is_explained(client, db):
    page = client.get("/about/metrics/").content.decode()
    for word in (*vocabulary.STAGES, *vocabulary.VERDICTS):
        assert f">{word}</th>" in page


def test_a_download_is_named_like_its_task(client, site):
    response = client.get(f"/runs/{site.fast.uuid}/source.py")
    assert response["Content-Disposition"] == 'attachment; filename="relu.py"'


def _flat(response) -> str:
    return " ".join(response.content.decode().split())


def test_a_methods_page_offers_its_badge_and_frame(client, site):
    text = client.get("/methods/alpha/").content.decode()
    assert 'src="/badge/alpha.svg?gpu=h200"' in text
    assert "[![KernelBench-X](http://testserver/badge/alpha.svg?gpu=h200)]" in text
    for url in ("/badge/alpha.svg?gpu=h200", "/embed/standings/?gpu=h200"):
        assert url in text
        assert client.get(url).status_code == 200


def test_the_papers_lane_leads_to_its_figures(client, site):
    answer = client.get("/leaderboard/?lane=published")
    assert (answer.status_code, answer["Location"]) == (302, "/findings/published/")
    fragment = client.get("/leaderboard/?lane=published", headers={"HX-Request": "true"})
    assert fragment["HX-Redirect"] == "/findings/published/"
    assert client.get("/leaderboard/?lane=claimed").status_code == 200


def test_what_a_recordings_rounds_were_stands_on_the_methods_pages(client, site, make):
    make.run(site.alpha, site.relu, site.h200, speedup=2.5, round=1)
    recorded = {"date": "2026-11-01", "hardware": "H200", "judge": "1", "predictions": ""}
    recorded["rounds"] = {"10": "last", "0": "as generated", "1": "one <fix>"}
    site.alpha.recorded = recorded
    site.alpha.save()
    text = client.get("/methods/alpha/").content.decode()
    assert "round 0: as generated; round 1: one &lt;fix&gt;; round 10: last" in text
    assert "Its rounds: 0, as generated; 1, one" in client.get("/rounds/alpha/").content.decode()


@pytest.mark.parametrize(
    "url", ["/", "/leaderboard/", "/tasks/relu/", "/portability/", "/findings/"]
)
def test_made_up_results_say_so_on_every_page(client, site, make, url):
    Board.bump()
    assert "Made-up data" not in client.get(url).content.decode()
    made_up = make.gpu("synthetic-gpu-1", name="Synthetic GPU 1")
    run = make.run(site.beta, site.gelu, made_up, speedup=1.5)
    Board.bump()
    assert "Made-up data" in client.get(url).content.decode()
    assert "Made-up data" in client.get(f"/runs/{run.uuid}/").content.decode()
    assert "Made-up data" not in client.get(f"/runs/{site.fast.uuid}/").content.decode()


SHOWING_TASKS = ["/", "/leaderboard/?format=csv", "/tasks/", "/categories/activation/"]
SHOWING_TASKS += ["/methods/alpha/", "/rounds/alpha/tasks.csv", "/findings/roofline.csv"]
SHOWING_TASKS += ["/portability/disagreements.csv", "/compare/tasks.csv?m=alpha&m=beta"]


@pytest.mark.parametrize("url", SHOWING_TASKS)
@pytest.mark.parametrize("state", [{"is_draft": True}, {"retired_at": timezone.now()}])
def test_a_task_that_is_not_judged_is_on_no_page_but_its_own(client, site, make, url, state):
    """gelu, which alone has a second round and disagrees between devices."""
    make.run(site.alpha, site.relu, site.h200, speedup=3.0, round=1)
    make.run(site.alpha, site.gelu, site.h200, speedup=3.0, round=1)
    make.run(site.beta, site.gelu, site.h200, speedup=1.1)
    make.run(site.alpha, site.gelu, site.cpu, round=1, verdict="timeout", stage="call")
    Board.bump()
    assert client.get(url).status_code == 200
    Task.objects.filter(pk=site.gelu.pk).update(**state)
    Board.bump()
    assert "gelu" not in client.get(url).content.decode()
    own = client.get("/tasks/gelu/")
    assert own.status_code == (404 if "is_draft" in state else 200)
    assert own.status_code == 404 or "Retired" in own.content.decode()


@pytest.mark.parametrize("name", ["standings", "speedups"])
def test_a_frame_on_an_empty_site_is_a_page_and_says_so(client, db, name):
    answer = client.get(f"/embed/{name}/")
    assert answer.status_code == 200
    assert "Nothing has been judged yet" in answer.content.decode()
    assert "X-Frame-Options" not in answer
