"""A private submission's text is in no anonymous answer of API, files, feed, badges or embeds."""

from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import User
from django.test import Client

from benchmark import vocabulary
from benchmark.models import Audit, Board, StaticBuild
from leaderboard.charts.registry import CHARTS
from leaderboard.exports.datasets import DATASETS
from leaderboard.exports.writers import FORMATS
from runner.models import Job

pytestmark = pytest.mark.django_db
CANARY = "canary7f3a"


@pytest.fixture(autouse=True)
def _own_folder(settings, tmp_path) -> None:
    settings.STATE_DIR = tmp_path


def everything(paths: dict) -> list[str]:
    """Addresses of the OpenAPI document with values for what they name, and the rest."""
    values = {"{slug}": ["alpha", "relu", "activation", CANARY, f"{CANARY}-method"]}
    values["{uuid}"] = paths["uuids"]
    found = []
    for path in paths["documented"]:
        [key] = [key for key in values if key in path] or [""]
        found += [path.replace(key, value) for value in values.get(key, [""])] if key else [path]
    found += [f"/data/v1/{name}.{format}" for name in DATASETS for format in FORMATS]
    found += [f"/data/v1/{name}.csv?round=all" for name in DATASETS]
    found += [f"/data/v1/{name}.csv.sha256" for name in DATASETS]
    found += [f"/embed/{name}/" for name in ("standings", *CHARTS)]
    found += [f"/badge/{slug}.svg" for slug in ("alpha", CANARY, f"{CANARY}-method")]
    return [*found, "/data/", "/changes/", "/feed.atom", "/data/citation.bib", "/data/citation.cff"]


@pytest.fixture
def hidden(site, make):
    """A private submission with the canary in every text, an unlisted and a withdrawn one."""
    ann = User.objects.create(username=f"{CANARY}-user")
    method = make.method(f"{CANARY}-method", name=f"{CANARY} name", organisation=f"{CANARY} labs")
    fields = {"submitted_by": ann, "visibility": vocabulary.PRIVATE}
    text = f"# {CANARY}\n"
    private = make.submission(
        method,
        f"{CANARY} label",
        notes=[{"place": CANARY, "reason": CANARY, "remedy": ""}],
        **fields,
    )
    make.candidate(private, site.relu, text=text)
    run = make.run(
        private, site.relu, site.h200, speedup=99.0, detail=CANARY, log_tail=CANARY,
        judge_version=f"{CANARY}-judge", environment={"host": CANARY},
    )  # fmt: skip
    make.measurement(run, 0, detail=CANARY, shape=CANARY)
    Audit.objects.create(run=run, verdict=vocabulary.CLEAN, reason=CANARY, evidence=CANARY)
    StaticBuild.objects.create(
        source=run.candidate.source, architecture="sm_90", state="failed", reason=CANARY,
        shared_limit=1, triton_version=CANARY,
    )  # fmt: skip
    job = Job.objects.create(candidate=run.candidate, gpu=site.h200, reason=CANARY)
    Board.bump()
    return {"uuids": [str(private.uuid), str(run.uuid), str(job.uuid)], "run": run, "user": ann}


def test_a_private_submission_is_nowhere(client: Client, hidden) -> None:
    import json

    document = json.loads(client.get("/api/v1/schema/").content)
    paths = {"uuids": hidden["uuids"], "documented": document["paths"]}
    asked = everything(paths)
    assert len(asked) > 80
    for path in asked:
        answer = client.get(path)
        assert answer.status_code < 500, path
        content = answer.getvalue()
        if path.endswith(".parquet"):
            content = parquet_text(content)
        echoed = path.count(CANARY)  # an address that isn't there may be named in the 404
        assert content.decode().count(CANARY) <= (2 * echoed if answer.status_code == 404 else 0), (
            path
        )


def parquet_text(content: bytes) -> bytes:
    import io

    from pyarrow import parquet

    return str(parquet.read_table(io.BytesIO(content)).to_pylist()).encode()


def test_its_submitter_sees_it(hidden) -> None:
    from rest_framework.test import APIClient

    client = APIClient()
    client.force_authenticate(hidden["user"])
    for path in (f"runs/{hidden['run'].uuid}/", "submissions/"):
        assert CANARY in client.get(f"/api/v1/{path}").content.decode()


def test_an_unlisted_submission_is_in_no_list(client: Client, site) -> None:
    site.alpha.visibility = vocabulary.UNLISTED
    site.alpha.save()
    Board.bump()
    for path in ("/data/v1/runs.jsonl", "/data/v1/methods.jsonl", "/feed.atom", "/changes/",
                 "/api/v1/runs/", "/api/v1/methods/", "/api/v1/submissions/"):  # fmt: skip
        assert b"alpha" not in client.get(path).getvalue(), path
    assert client.get(f"/api/v1/runs/{site.fast.uuid}/").status_code == 200


def test_a_hidden_source_is_not_shown_with_its_run(client: Client, site) -> None:
    site.alpha.source_visibility = vocabulary.HIDDEN
    site.alpha.save()
    found = client.get(f"/api/v1/runs/{site.fast.uuid}/").json()
    assert (found["run"]["source"], found["run"]["log_tail"], found["builds"]) == ("", "", [])


def test_feeds_stay_well_formed(client: Client, hidden) -> None:
    assert ElementTree.fromstring(client.get("/feed.atom").content) is not None
