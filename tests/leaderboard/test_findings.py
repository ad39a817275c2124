"""Findings: golden figures of the paper through the code that live data take, and odd data."""

import json
import math
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import plotly.graph_objects as go
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from benchmark import vocabulary
from benchmark.models import Audit, Board, Gpu
from leaderboard import kept
from leaderboard.charts import findings as charts
from leaderboard.charts import findings_captions as captions
from leaderboard.charts.base import csv_text
from leaderboard.figures import MISSING
from leaderboard.filters import Choice, read_choice
from leaderboard.findings import beside, published, roofline, shares, taxonomy
from leaderboard.findings.attribution import Absent, Attribution, Tally, attribute
from leaderboard.findings.roofline import CaseTimes, Roof
from leaderboard.findings.taxonomy import Ended
from leaderboard.models import Publication
from leaderboard.rows import COUNTED, GpuRow, MethodRow, Result, TaskRow
from leaderboard.selectors import findings as selected
from leaderboard.selectors.board import BoardData

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "leaderboard" / "data" / "kernelbench-x.json"


@pytest.fixture(scope="module")
def paper():
    return published.read(SHIPPED)


def percent(fit, name):
    return round(100 * fit.model(name).explained, 1)


# --- explained deviance -------------------------------------------------------------------------


def test_the_papers_counts_give_its_method_figure_and_another_category_figure(paper):
    """Golden: four methods, as its analysis keeps. It prints 3.3 and 9.4."""
    fit = attribute(paper.tallies("correct", paper.kept))
    assert (fit.trials, fit.successes, len(paper.kept)) == (704, 142, 4)
    assert percent(fit, "method") == 3.3
    assert percent(fit, "category") == 10.2
    assert percent(fit, "both") == 13.8
    assert percent(fit, "interaction") == 22.2
    assert [fit.model(name).df for name in ("method", "category", "both")] == [3, 14, 17]
    assert fit.null_deviance == pytest.approx(707.88, abs=0.01)


def test_a_fifth_method_that_solves_nothing_turns_the_order_round(paper):
    fit = attribute(paper.tallies("correct", paper.methods))
    assert (fit.trials, fit.successes, len(paper.methods)) == (880, 142, 5)
    assert percent(fit, "method") == 12.0
    assert percent(fit, "category") == 8.8
    assert "KernelLLM" in fit.edges


def test_likelihood_ratios_and_bic_of_the_papers_counts(paper):
    fit = attribute(paper.tallies("correct", paper.kept))
    category = fit.step("category", "method")
    method = fit.step("method", "category")
    interaction = fit.step("interaction", "both")
    assert (round(category.ratio, 1), category.df) == (74.5, 14)
    assert (round(method.ratio, 1), method.df) == (26.1, 3)
    assert category.p == pytest.approx(3e-10, rel=0.05)
    assert method.p == pytest.approx(9e-6, rel=0.05)
    assert (interaction.df, round(interaction.p, 2)) == (42, 0.04)
    assert round(fit.model("method").bic, 1) == 710.6
    assert round(fit.model("category").bic, 1) == 734.3
    assert fit.preferred.name == "method"


def test_live_results_take_the_same_way_to_the_same_figures(db, paper):
    """The paper's counts as a board's results: a method a column, a candidate a task."""
    found = selected.findings(board_of(paper))
    assert percent(found.correct, "method") == 3.3
    assert percent(found.correct, "category") == 10.2
    assert percent(found.called, "method") == 4.3
    assert (found.judged, found.missing, found.held) == (704, 0, 0)
    assert found.all_endings.words == {"correct": 142, "wrong": 200, "build": 362}


def board_of(paper):
    methods = [MethodRow(i, f"m{i}", name, "model", "") for i, name in enumerate(paper.kept)]
    tasks, results = [], {}
    for count in paper.counts:
        slug = vocabulary.CATEGORY_BY_NAME[count.category].slug
        for place in range(count.tasks):
            task = TaskRow(len(tasks), f"{slug}-{place}", slug, 1, ("float32",), True)
            tasks.append(task)
            for method in methods:
                verdict, stage = ending(place, count.compiled[method.id], count.correct[method.id])
                results[method.id, task.id] = Result(
                    method=method.id,
                    task=task.id,
                    round=0,
                    key=str(uuid4()),
                    verdict=verdict,
                    stage=stage,
                    speedup=None,
                    state=COUNTED,
                )
    gpu = GpuRow(0, "h200", "H200", "sm_90", True, len(results))
    return BoardData(Choice(gpu), tuple(tasks), tuple(methods), results)


def ending(place, compiled, correct):
    if place < correct:
        return vocabulary.PASSED, "time"
    if place < compiled:
        return vocabulary.WRONG_VALUES, "check"
    return vocabulary.CALL_ERROR, "call"


def live(**asked):
    generation = Board.current()
    choice = read_choice(asked, kept.gpus(generation))
    return selected.findings(kept.board(generation, choice)[0])


def test_one_method_leaves_the_category_alone():
    fit = attribute((Tally("a", "m", 1, 4), Tally("b", "m", 3, 4)))
    assert [model.name for model in fit.models] == ["none", "category"]
    assert "Only one method" in fit.missing[0]
    assert fit.method is None


def test_one_category_leaves_the_method_alone():
    fit = attribute((Tally("a", "m", 1, 4), Tally("a", "n", 3, 4)))
    assert [model.name for model in fit.models] == ["none", "method"]
    assert "Only one category" in fit.missing[0]


@pytest.mark.parametrize(
    ("tallies", "words"),
    [
        ((), "No candidate"),
        ((Tally("a", "m", 0, 0),), "No candidate"),
        ((Tally("a", "m", 0, 4), Tally("b", "n", 0, 3)), "none succeeded"),
        ((Tally("a", "m", 4, 4), Tally("b", "n", 3, 3)), "each succeeded"),
        ((Tally("a", "m", 2, 4),), "one method and one category"),
    ],
)
def test_where_there_is_nothing_to_fit_a_sentence_says_why(tallies, words):
    found = attribute(tallies)
    assert isinstance(found, Absent)
    assert words in found.reason


def test_full_separation_has_a_deviance_of_nothing():
    """One method solves everything, the other nothing: the method explains all there is."""
    tallies = tuple(
        Tally(category, method, 5 if method == "m" else 0, 5)
        for category in ("a", "b", "c")
        for method in ("m", "n")
    )
    fit = attribute(tallies)
    assert fit.method.explained == pytest.approx(1, abs=1e-6)
    assert fit.category.explained == pytest.approx(0, abs=1e-9)
    assert fit.edges == ("m", "n")


def test_pairs_without_candidates_cost_no_degree_of_freedom():
    fit = attribute((Tally("a", "m", 1, 4), Tally("b", "m", 3, 4), Tally("a", "n", 2, 4)))
    assert fit.cells == 3
    assert fit.both.df == 2
    assert fit.interaction is None  # three cells are fitted by both factors already
    assert fit.step("interaction", "both") is None


counts = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(counts, min_size=9, max_size=9))
def test_deviances_fall_as_models_grow_and_single_factors_have_their_closed_form(cells):
    """Of three categories and three methods, any counts, separated or not."""
    tallies = tuple(Tally(f"c{i // 3}", f"m{i % 3}", k, n) for i, (k, n) in enumerate(cells) if n)
    fit = attribute(tallies)
    if isinstance(fit, Absent):
        return
    for smaller, larger in (("none", "method"), ("none", "category"), ("method", "both")):
        if fit.model(smaller) and fit.model(larger):
            assert fit.model(larger).deviance <= fit.model(smaller).deviance + 1e-6
    for name in ("method", "category"):
        if fit.model(name):
            assert fit.model(name).deviance == pytest.approx(closed_form(tallies, name), abs=1e-5)
    assert all(0 <= step.p <= 1 for step in fit.steps)


def closed_form(tallies, factor):
    """A single factor's likelihood is that of its own rates."""
    sums = {}
    for tally in tallies:
        won, of = sums.get(getattr(tally, factor), (0, 0))
        sums[getattr(tally, factor)] = (won + tally.successes, of + tally.trials)
    return -2 * sum(k * math.log(k / of) for won, of in sums.values() for k in (won, of - won) if k)


def test_statsmodels_waits_for_the_first_fit():
    """A second of import and its memory are not paid by a process that fits nothing."""
    program = (
        "import os, sys, django\n"
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'kbx_site.settings.test'\n"
        "django.setup()\n"
        "import leaderboard.views.findings\n"
        "from leaderboard.findings.attribution import Tally, attribute\n"
        "late = [n for n in ('statsmodels', 'scipy', 'pandas', 'numpy') if n in sys.modules]\n"
        "attribute((Tally('a', 'm', 1, 4), Tally('b', 'm', 3, 4)))\n"
        "print(late, 'statsmodels' in sys.modules, 'torch' in sys.modules)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.stdout.strip() == "[] True False", ran.stderr


# --- shares, endings, roofline ------------------------------------------------------------------


@pytest.mark.parametrize(("count", "of"), [(0, 1), (1, 1), (0, 20), (20, 20), (66, 142), (1, 7)])
def test_wilsons_interval_is_the_librarys(count, of):
    from statsmodels.stats.proportion import proportion_confint

    share = shares.wilson(count, of)
    low, high = proportion_confint(count, of, method="wilson")
    assert (share.low, share.high) == (pytest.approx(low, abs=1e-12), pytest.approx(high))
    assert share.low <= share.value <= share.high


def test_no_share_of_nothing():
    assert shares.wilson(0, 0) is None
    assert shares.speeds("m", []).share is None
    assert shares.pooled([0.5], [0]) is None


def test_slower_counts_what_the_neutral_band_calls_even():
    row = shares.speeds("m", [0.5, 0.94, 0.97, 1.0, 1.04, 1.06, 2.0])
    assert (row.timed, row.slower) == (7, 3)
    assert (row.slow, row.even, row.fast) == (2, 3, 2)
    assert row.share.value == pytest.approx(3 / 7)


def test_endings_count_tasks_that_nobody_solves():
    ended = [Ended("Math", 1, "correct"), Ended("Math", 1, "wrong"), Ended("Math", 2, "wrong")]
    row = taxonomy.endings("Math", [*ended, Ended("Math", 3, "build")])
    assert (row.judged, row.correct, row.tasks, row.unsolved) == (4, 1, 3, 2)
    assert row.failures == (("wrong", 2), ("build", 1))
    assert row.share("wrong") == 0.5
    assert taxonomy.words_of([row, row]) == ("wrong", "build")


ROOF = Roof(bandwidth=4e12, peaks={"float32": 60e12})


def kernel(cases):
    return next(iter(roofline.kernels([OF], [cases], [ROOF])), None)


OF = ("Alpha", "relu", "Activation", uuid4())


def test_the_longer_of_memory_and_compute_is_the_roof():
    memory = CaseTimes("float32", bytes=4e9, flops=1e9, candidate_ms=2.0, reference_ms=4.0)
    compute = CaseTimes("float32", bytes=4e6, flops=60e9, candidate_ms=4.0, reference_ms=1.0)
    assert roofline.least_seconds(memory, ROOF) == (pytest.approx(1e-3), "memory")
    assert roofline.least_seconds(compute, ROOF) == (pytest.approx(1e-3), "compute")
    found = kernel([memory])
    assert (found.share, found.reference_share) == (pytest.approx(0.5), pytest.approx(0.25))
    both = kernel([memory, compute])
    assert both.share == pytest.approx(math.sqrt(0.5 * 0.25))


def test_a_dtype_without_a_peak_is_bound_by_its_bytes_alone():
    case = CaseTimes("int64", bytes=4e9, flops=1e15, candidate_ms=1.0, reference_ms=1.0)
    assert kernel([case]).bound == "memory"


def test_a_case_that_moves_nothing_has_no_share():
    case = CaseTimes("int64", bytes=0, flops=1e9, candidate_ms=1.0, reference_ms=1.0)
    assert kernel([case]) is None
    assert kernel([]) is None


def test_a_summary_of_one_kernel_is_that_kernel():
    case = CaseTimes("float32", bytes=4e9, flops=0, candidate_ms=2.0, reference_ms=1.0)
    found = roofline.summary("Math", [kernel([case])])
    assert (found.quarter, found.median, found.best) == (pytest.approx(0.5),) * 3
    assert roofline.summary("Math", []) is None


# --- what counts --------------------------------------------------------------------------------


@pytest.fixture
def timed(site, make):
    """The small site with one run whose cases have times, bytes and the board's bandwidth."""
    gamma = make.submission(make.method("gamma"), "gamma-set")
    run = make.run(
        gamma,
        site.add,
        site.h200,
        speedup=0.8,
        environment={"board": {"copy_bytes_per_second": 4e12}},
    )
    make.measurement(run, 0, speedup=0.8, bytes=1e8, flops=1e6)
    Board.bump()
    return site


def test_only_solved_counted_and_timed_results_are_under_the_roof(timed, make):
    found = live()
    assert [kernel.task for kernel in found.roofline.kernels] == ["add"]
    assert found.roofline.measured == 1
    assert found.roofline.kernels[0].share == pytest.approx(1e8 / 4e12 / 0.05e-3)
    assert live(gpu="cpu-interpreter").roofline.kernels == ()


def test_without_a_measured_bandwidth_the_data_sheet_counts(timed):
    timed.h200.peak_bandwidth = 4.8e12
    timed.h200.save()
    Board.bump()
    found = live().roofline
    assert {kernel.task: kernel.run for kernel in found.kernels}.keys() == {"add", "relu"}
    assert found.measured == 1
    assert "which 1 kernels without one are measured by" in captions.roofline(found)


def test_hidden_and_held_results_are_in_no_figure(timed, make):
    before = live()
    hidden = make.submission(make.method("hidden"), "x", visibility=vocabulary.PRIVATE)
    make.run(hidden, timed.relu, timed.h200, speedup=3.0)
    held = make.submission(make.method("held"), "x")
    make.run(held, timed.relu, timed.h200, speedup=3.0, is_suspect=True)
    Board.bump()
    after = live()
    assert after.judged == before.judged
    assert after.held == before.held + 1
    assert after.pooled == before.pooled


def test_a_rejected_result_is_a_failure(timed):
    Audit.objects.create(run=timed.fast, verdict=vocabulary.CHEAT, reason="cached")
    found = live()
    assert found.all_endings.words["rejected"] == 1
    assert found.pooled.timed == 2


def test_findings_are_kept_until_the_board_changes(timed, make, django_assert_num_queries):
    first = live()
    with django_assert_num_queries(2):  # the generation, the GPU's facts
        assert live() is first
    make.run(timed.beta, timed.add, timed.h200, speedup=1.1)
    Board.bump()
    assert live() is not first


def test_other_peaks_make_other_findings(timed):
    """Of alpha's relu, whose board recorded no bandwidth; gamma's add has its own."""
    assert [kernel.task for kernel in live().roofline.kernels] == ["add"]
    shares = {}
    for peak in (1e12, 2e12):
        Gpu.objects.filter(pk=timed.h200.pk).update(peak_bandwidth=peak)
        shares[peak] = {kernel.task: kernel.share for kernel in live().roofline.kernels}
    assert shares[1e12]["add"] == shares[2e12]["add"]
    assert shares[1e12]["relu"] == pytest.approx(2 * shares[2e12]["relu"])


def test_a_new_result_costs_its_own_cases_and_gives_what_all_would(timed, make):
    live()
    board = {"board": {"copy_bytes_per_second": 3e12}}
    later = make.run(timed.beta, timed.relu, timed.h200, speedup=2.0, round=1, environment=board)
    make.measurement(later, 0, speedup=2.0, flops=1e9, bytes=1e8)
    Board.bump()
    with CaptureQueriesContext(connection) as queries:
        found = live().roofline
    (cases,) = [q["sql"] for q in queries if "benchmark_measurement" in q["sql"]]
    assert later.uuid.hex in cases.replace("-", "")
    selected.forget()
    assert found == live().roofline
    assert {kernel.method for kernel in found.kernels} == {"Beta", "Gamma"}


def test_what_has_no_timed_case_is_not_asked_again(timed, make):
    make.run(timed.beta, timed.relu, timed.h200, speedup=2.0, round=1)  # nothing is known of cases
    live()
    Board.bump()
    Board.touch([(timed.h200.pk, vocabulary.MEASURED)])
    with CaptureQueriesContext(connection) as queries:
        live()
    assert [q["sql"] for q in queries if "benchmark_measurement" in q["sql"]] == []
    assert [q["sql"] for q in queries if "benchmark_countingrun" in q["sql"]]  # was read anew


def test_findings_take_few_queries_however_many_results(timed, make, django_assert_num_queries):
    data, _ = kept.board(0, read_choice({}, kept.gpus(0)))
    with django_assert_num_queries(3):  # the GPU's facts, timed cases, bandwidths
        selected.findings(data)


# --- published figures --------------------------------------------------------------------------


def test_what_comes_with_the_site_is_the_paper(paper):
    assert paper.tasks == vocabulary.PUBLISHED_TASK_COUNT
    assert {count.category: count.tasks for count in paper.counts} == {
        category.name: category.size for category in vocabulary.CATEGORIES
    }
    shares_by_gpu = dict(beside.slower_by_gpu(paper))
    assert round(100 * shares_by_gpu["L20"]) == 74
    assert round(100 * shares_by_gpu["A100"]) == 37
    assert beside.totals(paper)[2] == ("KernelAgent", 77, 19, 176)
    assert beside.commonest_failure(paper) == "not compiled, 362 of 704"


def test_each_figure_stands_beside_the_printed_and_the_recomputed(paper):
    rows = {row.name: row for row in beside.explained(Absent("none"), paper)}
    assert rows["Category alone"].here == MISSING
    assert rows["Category alone"].printed == "9.4 %"
    assert rows["Category alone"].recomputed == ("10.2 % (14 df)", "8.79 % (14 df)")
    assert rows["Likelihood ratio: method on top of category"].printed == "13"
    assert rows["BIC: method alone"].recomputed == ("710.6, lowest", "718.3, lowest")
    calls = {row.name: row for row in beside.explained_of_calls(Absent("none"), paper)}
    assert calls["Method alone"].printed == "5.18 %"


def test_without_a_paper_the_live_figures_stand_alone():
    fit = attribute((Tally("a", "m", 1, 4), Tally("b", "n", 3, 4), Tally("a", "n", 0, 4)))
    assert isinstance(fit, Attribution)
    assert all(row.printed == MISSING and not row.recomputed for row in beside.explained(fit, None))
    assert beside.slower_by_gpu(None) == beside.scores(None) == beside.totals(None) == ()
    assert beside.endings(None) == {}
    assert beside.commonest_failure(None) == ""


@pytest.fixture
def document():
    return json.loads(SHIPPED.read_text())


MISTAKES = {
    "schema": (lambda d: d.update(schema="kbx-published/9"), "schema: write 'kbx-published/1'"),
    "no title": (lambda d: d.pop("title"), "title: write text"),
    "slug": (lambda d: d.update(slug="a/b"), "slug: write at most 60"),
    "address": (lambda d: d.update(url="javascript:alert(1)"), "url: write an address"),
    "methods": (lambda d: d.update(methods=["a", "a"]), "methods: a word is there twice"),
    "excluded": (lambda d: d.update(excluded=["x"]), "excluded: 'x' is none of the methods"),
    "category": (lambda d: d["counts"][0].update(category="Maths"), "counts[0].category"),
    "twice": (lambda d: d["counts"].append(d["counts"][0]), "counts[15].category"),
    "width": (lambda d: d["counts"][0].update(correct=[1]), "counts[0].correct: 1 counts for 5"),
    "count": (lambda d: d["counts"][0]["correct"].__setitem__(0, 99), "counts[0].correct[0]"),
    "more": (lambda d: d["counts"][1]["correct"].__setitem__(1, 1), "more are correct"),
    "bool": (lambda d: d["counts"][0].update(tasks=True), "counts[0].tasks: write a whole"),
    "figure": (lambda d: d["figures"].update(slower_share="many"), "figures.slower_share"),
    "row": (lambda d: d["tables"][0]["rows"].append([1]), "tables[0].rows[5]: 1 values for 6"),
    "cell": (lambda d: d["tables"][0]["rows"][0].__setitem__(1, []), "tables[0].rows[0]: write"),
    "table": (lambda d: d["tables"].append(d["tables"][0]), "tables[10].slug: 'overall'"),
    "no list": (lambda d: d.update(tables={}), "tables: write a list"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_place(document, name):
    spoil, words = MISTAKES[name]
    spoil(document)
    with pytest.raises(published.Malformed) as caught:
        published.parse(document)
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ["", "[", "NaN", '{"a": Infinity}', "[" * 100_000])
def test_what_is_no_json_is_refused_in_words(text, tmp_path):
    path = tmp_path / "figures.json"
    path.write_text(text)
    with pytest.raises(published.Malformed):
        published.read(path)


def test_the_command_imports_the_file_that_comes_with_the_site(db, capsys):
    call_command("import_published", str(SHIPPED))
    call_command("import_published", str(SHIPPED))
    assert Publication.objects.count() == 1
    assert "kernelbench-x: 10 tables, 15 categories of 5 methods" in capsys.readouterr().out
    assert selected.publications() == selected.shipped()


def test_an_import_replaces_what_comes_with_the_site_and_moves_the_board(db, document, tmp_path):
    before = Board.current()
    document["title"] = "Corrected"
    path = tmp_path / "corrected.json"
    path.write_text(json.dumps(document))
    call_command("import_published", str(path))
    assert [found.title for found in selected.publications()] == ["Corrected"]
    assert Board.current() > before


def test_a_bad_file_changes_nothing(db, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text("{}")
    with pytest.raises(CommandError, match="schema"):
        call_command("import_published", str(path))
    with pytest.raises(CommandError, match="No such file"):
        call_command("import_published", str(tmp_path / "none.json"))
    assert not Publication.objects.exists()


def test_published_figures_are_in_no_ranking(client, site):
    call_command("import_published", str(SHIPPED))
    assert b"AutoTriton" not in client.get("/leaderboard/").content
    assert b"AutoTriton" not in client.get("/leaderboard/?lane=published").content


# --- pages --------------------------------------------------------------------------------------


def test_the_page_shows_the_live_figure_beside_the_papers(client, timed):
    text = client.get("/findings/").content.decode()
    assert "1 of 3</strong> correct kernels are slower" in text
    assert "10.2 % (14 df)" in text
    assert "turns the order round: method 12.0 %" in text
    assert "adds up to 77 of 176" in text
    assert 'id="roofline"' in text


@pytest.mark.parametrize(
    "query",
    [
        *("", "?gpu=cpu-interpreter", "?category=math", "?round=0", "?round=9", "?lane=claimed"),
        *("?lane=published", "?dtype=float16", "?difficulty=5"),
    ],
)
def test_every_choice_has_a_page_and_charts(client, timed, query):
    assert client.get(f"/findings/{query}").status_code == 200
    for name in ("explained", "slower", "endings", "roofline"):
        figure = client.get(f"/findings/{name}.json{query}")
        go.Figure(figure.json())
        assert client.get(f"/findings/{name}.csv{query}").status_code == 200


def test_an_empty_site_says_so_and_still_has_the_papers_figures(client, db):
    assert "Nothing has been judged yet" in client.get("/findings/").content.decode()
    assert client.get("/findings/slower.json").status_code == 404
    assert "64.2" in client.get("/findings/published/").content.decode()


def test_a_gpu_that_has_judged_nothing_says_so(client, db, make):
    make.gpu()
    text = client.get("/findings/").content.decode()
    assert "Nothing judged on H200 in this selection yet" in text
    assert "No candidate has been judged in this selection." in text


def test_unknown_names_are_404_with_a_hint(client, timed):
    assert "slower" in client.get("/findings/slow.json").content.decode()
    assert client.get("/findings/?gpu=h300").status_code == 404
    assert client.get("/findings/published/none/overall.csv").status_code == 404
    assert client.get("/findings/published/kernelbench-x/none.csv").status_code == 404


def test_published_tables_are_csv_too(client, db):
    lines = client.get("/findings/published/kernelbench-x/overall.csv").content.decode()
    assert lines.splitlines()[1] == "AutoTriton,36.4,17.0,46.9,1.35,60.7"


def test_names_are_data_on_page_chart_and_csv(client, timed, make):
    evil = make.submission(make.method("evil", name="=<img src=x>"), "evil")
    make.run(evil, timed.relu, timed.h200, speedup=1.0)
    Board.bump()
    assert "<img" not in client.get("/findings/").content.decode()
    assert "=&lt;img src=x&gt;" in client.get("/findings/slower.json").json()["data"][0]["y"]
    assert "'=<img src=x>" in client.get("/findings/slower.csv").content.decode()


def test_a_warm_page_takes_few_queries(client, timed, django_assert_max_num_queries):
    client.get("/findings/")
    with django_assert_max_num_queries(3):
        client.get("/findings/")


def test_charts_draw_what_their_tables_say(timed):
    found = live()
    table = charts.speeds_table(found.speeds)
    figure = charts.speeds_figure(found.speeds)
    assert [trace["text"][0] for trace in figure["data"]] == [
        str(n or "") for n in table.rows[0][6:]
    ]
    assert (
        sum(row[1] for row in charts.endings_table(found.endings, found.words).rows) == found.judged
    )
    assert len(charts.roofline_table(found.roofline.best).rows) == len(found.roofline.best)
    assert "kernel" in captions.slower(found)
    assert csv_text(table).startswith("method,timed")
