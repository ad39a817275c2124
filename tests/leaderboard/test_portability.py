"""The portability page: what is compared, what is told of one GPU alone, and what it costs."""

import csv
import io
import json

import plotly.graph_objects as go
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmark import vocabulary
from benchmark.models import Board, StaticBuild
from leaderboard import kept
from leaderboard.charts import portability as charts
from leaderboard.selectors.portability import portability
from leaderboard.views.portability import FIGURES, TABLES


@pytest.fixture
def many(site, make):
    """`site` and an A100 on which gelu fails and relu runs at half the speed."""
    a100 = make.gpu("a100", architecture="sm_80")
    make.run(site.alpha, site.relu, a100, speedup=1.0)
    make.run(site.alpha, site.gelu, a100, verdict=vocabulary.OUT_OF_MEMORY, stage="call")
    site.a100 = a100
    return site


def found(**asked):
    return portability(0, kept.gpus(0))


def rows(response):
    return list(csv.reader(io.StringIO(response.content.decode())))


def test_one_gpu_says_what_is_missing_and_shows_the_rest(client, site):
    page = client.get("/portability/").content.decode()
    assert "Only one GPU has judged kernels so far: H200" in page
    assert "What is missing" in page
    assert "2/3" in page
    assert "The 1 candidate judged on both devices ends alike" in page
    assert 'id="ratios"' not in page


def test_an_empty_site_says_so(client, db):
    page = client.get("/portability/")
    assert page.status_code == 200
    assert "Nothing has been judged yet" in page.content.decode()


def test_gpus_in_service_without_results_are_named(client, site, make):
    make.gpu("b200")
    assert (
        "In service, but without a result yet: B200" in client.get("/portability/").content.decode()
    )


def test_who_passes_here_and_fails_there_links_both_runs(client, many):
    page = client.get("/portability/").content.decode()
    section = page[page.index('id="disagreements"') : page.index('id="pairs"')]
    assert "out-of-memory" in section
    assert section.count("/runs/") == 2
    table = rows(client.get("/portability/disagreements.csv"))
    assert [row[3] for row in table[1:]] == ["passed", "failed"]


def test_the_interpreter_is_in_no_speedup(client, many, make):
    make.run(many.beta, many.add, many.cpu, speedup=50.0)
    compared = found()
    assert [gpu.slug for gpu in compared.timing] == ["h200", "a100"]
    assert {row[1] for row in rows(client.get("/portability/speedup.csv"))[1:]} == {"H200", "A100"}
    assert compared.summary.maximum == pytest.approx(2.0)


def test_the_ratio_is_of_the_same_candidate(many):
    (line,) = found().ratios
    assert line.task.slug == "relu"
    assert line.found.ratio == pytest.approx(2.0)


def test_other_candidates_are_not_compared(many, make):
    """A newer submission counts on the H200; the A100 has only judged the older one."""
    newer = make.submission(many.alpha.method, "newer")
    make.candidate(newer, many.relu, text="another source")
    make.run(newer, many.relu, many.h200, speedup=30.0)
    compared = found()
    assert not compared.ratios
    assert compared.mixed == 1


def test_the_same_source_sent_to_another_gpu_by_itself_is_compared(many, make):
    """As with results that were recorded on two GPUs."""
    elsewhere = make.submission(many.alpha.method, "for the A100")
    make.run(elsewhere, many.add, many.a100, speedup=3.0)
    make.run(many.alpha, many.add, many.h200, speedup=1.0)
    compared = found()
    assert {line.task.slug: line.found.ratio for line in compared.ratios}["add"] == pytest.approx(3)
    assert compared.mixed == 0


def test_the_same_source_of_another_method_is_not_compared(many, make):
    others = make.submission(make.method("copyist"), "copied")
    again = make.submission(others.method, "and again")
    make.run(others, many.add, many.a100, speedup=3.0)
    make.run(again, many.gelu, many.h200, speedup=3.0)
    assert {line.method.slug for line in found().ratios} == {"alpha"}


def test_another_round_is_another_candidate(many, make):
    make.run(many.alpha, many.relu, many.h200, speedup=30.0, round=1)
    assert not found().ratios


@pytest.mark.parametrize("visibility", [vocabulary.PRIVATE, vocabulary.UNLISTED])
def test_what_is_not_listed_is_nowhere(client, many, make, visibility):
    canary = make.submission(make.method("canary"), "canary", visibility=visibility)
    make.run(canary, many.relu, many.h200, speedup=7.77)
    make.run(canary, many.relu, many.a100, verdict="wrong-values", stage="check")
    for url in ["/portability/", *(f"/portability/{name}.csv" for name in TABLES)]:
        text = client.get(url).content.decode().lower()
        assert "canary" not in text, url
        assert "7.77" not in text, url


def test_suspect_runs_are_held_back(many, make):
    gamma = make.submission(make.method("gamma"))
    make.run(gamma, many.relu, many.h200, speedup=900.0, is_suspect=True)
    make.run(gamma, many.relu, many.a100, speedup=1.0)
    assert {line.method.slug for line in found().ratios} == {"alpha"}


def test_the_url_chooses_devices_and_scale(client, many):
    page = client.get("/portability/?gpu=h200&gpu=a100&scale=relative").content.decode()
    assert "Interpreter" not in page.split("<main")[1].split("</form>")[1]
    assert "<strong>best</strong>" in page
    assert "?gpu=h200&amp;gpu=a100#speedup" in page
    only = client.get("/portability/?gpu=h200").content.decode()
    assert "Only one GPU" in only


@pytest.mark.parametrize(
    ("query", "hint"), [("gpu=h20", "h200"), ("scale=relativ", "relative"), ("gpu=", "h200")]
)
def test_unknown_values_are_404s_with_a_hint(client, many, query, hint):
    response = client.get(f"/portability/?{query}")
    assert response.status_code == 404
    assert hint in response.content.decode()


def test_unknown_charts_are_404s(client, many):
    for url in ("/portability/ratio.csv", "/portability/pairs.json", "/portability/builds.csv"):
        assert client.get(url).status_code == 404


def test_nothing_to_draw_is_a_404(client, db):
    assert client.get("/portability/ratios.json").status_code == 404


@pytest.mark.parametrize("name", FIGURES)
def test_plotly_accepts_the_figures(client, many, make, name):
    evil = make.submission(make.method("evil", name='<a href="x">y</a>'), "evil")
    make.run(evil, many.relu, many.h200, speedup=2.0)
    figure = json.loads(client.get(f"/portability/{name}.json").content)
    go.Figure(figure)
    assert "<a" not in json.dumps(figure)


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_csv_with_rows(client, many, name):
    table = rows(client.get(f"/portability/{name}.csv"))
    assert len(table) > 1
    assert len({len(row) for row in table}) == 1


def test_picture_and_table_of_ratios_say_the_same(many):
    figure, table = charts.ratios_figure(found()), charts.bins_table(found())
    assert figure["data"][0]["y"] == [row[2] for row in table.rows]


def test_queries_do_not_grow_with_results(client, many, make):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            client.get("/portability/")
        return len(captured)

    before = queries()
    for i in range(5):
        made = make.submission(make.method(f"m{i}"), "x")
        for task in (many.relu, many.gelu, many.add):
            make.run(made, task, many.h200, speedup=1.5)
            make.run(made, task, many.a100, speedup=1.0)
    assert queries() == before
    assert before <= 4 + 4 * 3


def test_a_kept_page_reads_only_the_generation_and_builds(
    client, many, django_assert_max_num_queries
):
    Board.bump()
    client.get("/portability/")
    with django_assert_max_num_queries(2):
        client.get("/portability/")
    make_slower = portability(Board.current(), kept.gpus(Board.current()))
    assert make_slower is portability(Board.current(), kept.gpus(Board.current()))


def test_new_results_show_at_once(client, many, make):
    Board.bump()
    assert "out-of-memory" in client.get("/portability/").content.decode()
    make.run(many.alpha, many.gelu, many.a100, speedup=1.0)
    Board.bump()
    assert "out-of-memory" not in client.get("/portability/").content.decode()


class TestBuilds:
    def build(self, make, of, architecture, state="built", **fields):
        defaults = {"reason": "" if state == "built" else "shared memory: too much"}
        defaults |= {"kernel_count": 1, "shared_bytes": 64, "shared_limit": 1000}
        return StaticBuild.objects.create(
            source=of.source,
            architecture=architecture,
            state=state,
            **{**defaults, "triton_version": "3.7.1", **fields},
        )

    @pytest.fixture
    def built(self, site, make):
        first = make.candidate(site.alpha, site.add, text="# one\n")
        second = make.candidate(site.beta, site.add, text="# two\n")
        self.build(make, first, "sm_80", spills=4)
        self.build(make, first, "sm_89", "failed")
        self.build(make, second, "sm_80", "untraced")
        return site

    def test_the_matrix_counts_by_state(self, client, built):
        table = rows(client.get("/portability/builds.csv"))
        assert table[1:] == [
            ["Alpha", "sm_80", "3", "1", "0", "0", "1"],
            ["Alpha", "sm_89", "3", "0", "1", "0", "0"],
            ["Beta", "sm_80", "2", "0", "0", "1", "0"],
            ["Beta", "sm_89", "2", "0", "0", "0", "0"],
        ]

    def test_who_builds_here_and_not_there_is_named_with_the_reason(self, client, built):
        page = client.get("/portability/").content.decode()
        assert "shared memory: too much" in page
        assert "1 not traced" in page

    def test_an_earlier_round_does_not_count(self, client, built, make):
        make.candidate(built.alpha, built.add, round=1, text="# later\n")
        table = rows(client.get("/portability/builds.csv"))
        assert [row for row in table if row[0] == "Alpha"] == []

    def test_private_candidates_are_not_in_it(self, client, built, make):
        hidden = make.submission(make.method("hidden"), "h", visibility=vocabulary.PRIVATE)
        self.build(make, make.candidate(hidden, built.add, text="# three\n"), "sm_80")
        assert "Hidden" not in client.get("/portability/builds.csv").content.decode()

    def test_a_site_without_gpus_still_shows_what_compiles(self, client, built):
        assert "What Triton" in client.get("/portability/").content.decode()


def test_a_visitor_who_has_the_page_is_not_sent_it_again(client, many):
    Board.bump()
    first = client.get("/portability/")
    again = client.get("/portability/", headers={"if-none-match": first["ETag"]})
    assert (first.status_code, again.status_code) == (200, 304)
