"""Who may open what: every address of the site, asked by everybody, about submissions of each kind.

The addresses are the URL resolver's own: one that is new fails here until it has an entry. Beside
the status, no answer may hold a text that its asker may not see, nor a script of its own.
"""

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from benchmark import vocabulary
from benchmark.models import Audit, Ban, Board, Draft, StaticBuild
from runner.accounts import keys
from runner.models import Device, Job

pytestmark = pytest.mark.django_db
VISITORS = ("anonymous", "owner", "other", "moderator", "admin")
STAFF = {"moderator", "admin"}
# `hidden`: a public one whose sources are not; `gone`: a private one that was withdrawn.
KINDS = ("public", "hidden", "unlisted", "private", "withdrawn", "gone")
TEXT, SOURCE = "text7f{}text", "source7f{}source"  # of a submission of each kind
INLINE = re.compile(r"<script(?![^>]*\ssrc=)[^>]*>|\son[a-z]+\s*=\s*[\"']|javascript:", re.I)


def addresses(of: Any = None, before: str = "", spaces: tuple[str, ...] = ()) -> Iterator[str]:
    """Each address by its name, or by its route where it has none."""
    for pattern in (of or get_resolver()).url_patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = (*spaces, pattern.namespace) if pattern.namespace else spaces
            yield from addresses(pattern, route, inner)
        elif isinstance(pattern, URLPattern):
            yield ":".join((*spaces, pattern.name)) if pattern.name else route


NAMES = sorted(set(addresses()))


@pytest.fixture
def world(site, make, settings, tmp_path) -> SimpleNamespace:
    """A submission of each kind with a run, a job, an audit and builds, all of one owner."""
    settings.STATE_DIR, settings.KBX_OPEN_SUBMISSIONS = tmp_path, False
    settings.KBX_METRICS_ALLOW, settings.KBX_METRICS_TOKEN = [], ""
    users = {name: User.objects.create_user(name, f"{name}@example.org") for name in VISITORS[1:]}
    for name in STAFF:
        User.objects.filter(username=name).update(is_staff=True, is_superuser=name == "admin")
    users["moderator"].groups.add(Group.objects.get(name="Moderators"))
    found = {kind: _entered(site, make, kind, users["owner"]) for kind in KINDS}
    draft = Draft.objects.create(
        created_by=users["owner"], method="M", kind="model", label=TEXT.format("draft"),
        visibility="public",
    )  # fmt: skip
    key = keys.make(users["owner"], TEXT.format("key")).row
    Ban.objects.create(user=User.objects.create_user("banned"), reason="spam")
    Device.objects.create(gpu=site.h200, serial="s", host="h", last_seen_at=timezone.now())
    cache.clear()
    Board.bump()
    clients = {name: Client(raise_request_exception=False) for name in VISITORS}
    for name, user in users.items():
        clients[name].force_login(User.objects.get(pk=user.pk))
    return SimpleNamespace(found=found, draft=draft, key=key, clients=clients, users=users)


def _entered(site: Any, make: Any, kind: str, owner: User) -> SimpleNamespace:
    text, source = TEXT.format(kind), SOURCE.format(kind)
    entry = make.submission(
        make.method(f"m-{kind}", name=f"Method {text}", organisation=text),
        f"label {text}",
        submitted_by=owner,
        notes=[{"place": text, "reason": text, "remedy": ""}],
    )
    candidate = make.candidate(entry, site.relu, text=f"# {source}\n")
    run = make.run(
        entry, site.relu, site.h200, speedup=1.2, detail=text, log_tail=source,
        environment={"host": text},
    )  # fmt: skip
    make.measurement(run, 0, detail=text)
    make.run(entry, site.relu, site.h200, speedup=1.1, round=1)
    Audit.objects.create(run=run, verdict=vocabulary.CLEAN, reason=text, note=text)
    StaticBuild.objects.create(
        source=candidate.source, architecture="sm_90", state="failed", reason=source,
        shared_limit=1, triton_version="3",
    )  # fmt: skip
    job = Job.objects.create(candidate=candidate, gpu=site.cpu, reason=text)
    entry.visibility = {"gone": "private", "withdrawn": "public", "hidden": "public"}.get(
        kind, kind
    )
    entry.source_visibility = vocabulary.HIDDEN if kind == "hidden" else vocabulary.SHOWN
    entry.withdrawn_at = timezone.now() if kind in ("withdrawn", "gone") else None
    entry.save()
    return SimpleNamespace(submission=entry, run=run, job=job, method=entry.method)


class Asked(SimpleNamespace):
    """One address about one submission: `get` and `post` are statuses in VISITORS' order."""


# Statuses, in the order of VISITORS.
ALL, NOBODY, MOVED, REFUSED = (200,) * 5, (404,) * 5, (302,) * 5, (405,) * 5
GONE, FORMER = (410,) * 5, (301,) * 5
SIGNED_IN = (302, 200, 200, 200, 200)
NO_PASSWORD = (302, 403, 403, 403, 403)  # the accounts of this test have none to ask for
BY_KEY = (401, 405, 405, 405, 405)  # the API says first who may, then that it can't be done
OWN = (404, 200, 404, 200, 200)
OWN_GONE = (404, 410, 404, 410, 410)


def like(public: tuple, private: tuple, withdrawn: tuple, gone: tuple, **others: tuple) -> dict:
    """By kind; what is hidden or unlisted is answered like what is public, unless it is said."""
    told = {"public": public, "hidden": public, "unlisted": public}
    return told | {"private": private, "withdrawn": withdrawn, "gone": gone} | others


LISTED_ALONE = like(ALL, NOBODY, NOBODY, NOBODY, unlisted=NOBODY)
OWNERS_METHOD = (404, 200, 404, 404, 404)
OWN_TOO = like(ALL, OWNERS_METHOD, NOBODY, NOBODY, unlisted=OWNERS_METHOD)
SEEN, UNSEEN = (403, 302, 403, 302, 302), (404, 302, 404, 302, 302)
MANAGED = like(SEEN, UNSEEN, SEEN, UNSEEN)
SEEN_BY_KEY, UNSEEN_BY_KEY = (401, 200, 403, 200, 200), (401, 200, 404, 200, 200)
TAKEN_BY_KEY = (401, 200, 403, 400, 400)  # a moderator says why, which this test does not
TAKEN_UNSEEN_BY_KEY = (401, 200, 404, 400, 400)
WITHDRAWN_BY_KEY = like(TAKEN_BY_KEY, TAKEN_UNSEEN_BY_KEY, SEEN_BY_KEY, UNSEEN_BY_KEY)
MANAGED_BY_KEY = like(SEEN_BY_KEY, UNSEEN_BY_KEY, SEEN_BY_KEY, UNSEEN_BY_KEY)

# Address: (what names it, from the world and a kind, GET, POST). A GET that differs by kind is a
# dictionary. Where nothing names it there is one of it.
Entry = tuple[Any, Any, Any]
NOTHING: dict[str, Any] = {}
PAIR = "?m=m-public&m=alpha"


def run_of(world: Any, kind: str) -> dict[str, Any]:
    return {"uuid": world.found[kind].run.uuid}


def job_of(world: Any, kind: str) -> dict[str, Any]:
    return {"uuid": world.found[kind].job.uuid}


def submission_of(world: Any, kind: str) -> dict[str, Any]:
    return {"uuid": world.found[kind].submission.uuid}


def method_of(world: Any, kind: str) -> dict[str, Any]:
    return {"slug": world.found[kind].method.slug}


def draft_of(world: Any, kind: str) -> dict[str, Any]:
    return {"uuid": world.draft.uuid}


def chart_of(world: Any, kind: str) -> dict[str, Any]:
    return method_of(world, kind) | {"format": "csv"}


def round_chart_of(world: Any, kind: str) -> dict[str, Any]:
    return chart_of(world, kind) | {"name": "rounds"}


ONE_DRAFT = (404, 200, 404, 404, 404)  # a draft is its author's alone, moderators included

ENTRIES: dict[str, Entry] = {
    # Probes and pages without anything of anybody.
    "healthz": (NOTHING, ALL, REFUSED),
    "readyz": (NOTHING, ALL, REFUSED),
    "metrics": (NOTHING, NOBODY, REFUSED),  # for who holds its token
    "leaderboard:metrics": (NOTHING, ALL, REFUSED),
    "leaderboard:published": (NOTHING, ALL, REFUSED),
    "leaderboard:published-csv": ({"slug": "x", "table": "y"}, NOBODY, REFUSED),
    "api:root": (NOTHING, ALL, REFUSED),
    "api:schema": (NOTHING, ALL, REFUSED),
    "api:docs": (NOTHING, ALL, REFUSED),
    "api:nothing": ({"rest": "nothing"}, NOBODY, NOBODY),
    # What is listed.
    "leaderboard:home": (NOTHING, ALL, REFUSED),
    "leaderboard:board": (NOTHING, ALL, REFUSED),
    "leaderboard:categories": (NOTHING, ALL, REFUSED),
    "leaderboard:category": ({"slug": "activation"}, ALL, REFUSED),
    "leaderboard:tasks": (NOTHING, ALL, REFUSED),
    "leaderboard:task": ({"slug": "relu"}, ALL, REFUSED),
    "leaderboard:findings": (NOTHING, ALL, REFUSED),
    "leaderboard:findings-chart": ({"name": "endings", "format": "csv"}, ALL, REFUSED),
    "leaderboard:portability": (NOTHING, ALL, REFUSED),
    "leaderboard:portability-chart": ({"name": "correctness", "format": "csv"}, ALL, REFUSED),
    "leaderboard:rounds": (NOTHING, ALL, REFUSED),
    "leaderboard:chart": ({"name": "correctness", "format": "csv"}, ALL, REFUSED),
    "leaderboard:compare": ({"query": PAIR}, ALL, REFUSED),
    "leaderboard:compare-chart": ({"name": "tasks", "format": "csv", "query": PAIR}, ALL, REFUSED),
    "leaderboard:data": (NOTHING, ALL, REFUSED),
    "leaderboard:data-file": ({"name": "cases", "format": "csv"}, ALL, REFUSED),
    "leaderboard:data-checksum": ({"name": "runs", "format": "jsonl"}, ALL, REFUSED),
    "leaderboard:cite": ({"format": "bib"}, ALL, REFUSED),
    "leaderboard:changes": (NOTHING, ALL, REFUSED),
    "leaderboard:feed": (NOTHING, ALL, REFUSED),
    "leaderboard:embed": ({"name": "standings"}, ALL, REFUSED),
    "api:gpus": (NOTHING, ALL, REFUSED),
    "api:leaderboard": (NOTHING, ALL, REFUSED),
    "api:categories": (NOTHING, ALL, REFUSED),
    "api:category": ({"slug": "activation"}, ALL, REFUSED),
    "api:tasks": (NOTHING, ALL, REFUSED),
    "api:task": ({"slug": "relu"}, ALL, REFUSED),
    "api:methods": (NOTHING, ALL, REFUSED),
    "api:compare": ({"query": PAIR}, ALL, REFUSED),
    "api:portability": (NOTHING, ALL, REFUSED),
    "api:rounds": (NOTHING, ALL, REFUSED),
    "api:findings": (NOTHING, ALL, REFUSED),
    "api:published": (NOTHING, ALL, REFUSED),
    "api:changes": (NOTHING, ALL, REFUSED),
    "api:exports": (NOTHING, ALL, REFUSED),
    "api:runs": (NOTHING, ALL, REFUSED),
    "api:queue": (NOTHING, ALL, BY_KEY),
    "api:submission-list": (NOTHING, ALL, (401, 400, 400, 400, 400)),
    # A method's: also its owner's, where nobody else sees it.
    "leaderboard:method": (method_of, OWN_TOO, REFUSED),
    "leaderboard:history": (chart_of, NOBODY, REFUSED),  # one submission makes no history
    "leaderboard:method-rounds": (method_of, OWN_TOO, REFUSED),
    "leaderboard:rounds-chart": (round_chart_of, LISTED_ALONE, REFUSED),
    "leaderboard:badge": (method_of, LISTED_ALONE, REFUSED),
    "api:method": (method_of, OWN_TOO, REFUSED),
    "api:method-rounds": (method_of, LISTED_ALONE, REFUSED),
    # A run's.
    "leaderboard:run": (run_of, like(ALL, OWN, GONE, OWN_GONE), REFUSED),
    "leaderboard:source": (run_of, like(ALL, OWN, NOBODY, NOBODY, hidden=OWN), REFUSED),
    "api:run": (run_of, like(ALL, OWN, GONE, OWN_GONE), BY_KEY),
    # A submission's.
    "runner:submission": (submission_of, like(ALL, OWN, ALL, OWN), REFUSED),
    "runner:withdraw": (submission_of, REFUSED, MANAGED),
    "runner:cancel": (submission_of, REFUSED, MANAGED),
    "runner:visibility": (submission_of, REFUSED, MANAGED),
    "runner:job": (job_of, like(ALL, OWN, NOBODY, NOBODY), REFUSED),
    "api:job": (job_of, like(ALL, OWN, NOBODY, NOBODY), BY_KEY),
    "api:submission-detail": (submission_of, like(ALL, OWN, ALL, OWN), BY_KEY),
    "api:submission-candidates": (submission_of, like(ALL, OWN, GONE, OWN_GONE), BY_KEY),
    "api:submission-builds": (submission_of, like(ALL, OWN, GONE, OWN_GONE), BY_KEY),
    "api:submission-cancel": (submission_of, REFUSED, MANAGED_BY_KEY),
    "api:submission-withdraw": (submission_of, REFUSED, WITHDRAWN_BY_KEY),
    # The way in.
    "runner:queue": (NOTHING, ALL, REFUSED),
    "runner:submit": (NOTHING, ALL, (200, 400, 400, 400, 400)),  # a stranger is asked to sign in
    "runner:draft": (draft_of, ONE_DRAFT, REFUSED),
    "runner:confirm": (draft_of, REFUSED, (404, 400, 404, 404, 404)),  # there is nothing in it
    "runner:discard": (draft_of, REFUSED, (404, 302, 404, 404, 404)),
    "api:draft-list": (NOTHING, REFUSED, (401, 400, 400, 400, 400)),
    "api:draft-detail": (draft_of, ONE_DRAFT, BY_KEY),
    "api:draft-confirm": (draft_of, REFUSED, (401, 400, 404, 404, 404)),
    # An account's own.
    "runner:me": (NOTHING, SIGNED_IN, REFUSED),
    "runner:login": (NOTHING, MOVED, REFUSED),
    "runner:make-key": (NOTHING, REFUSED, (302, 400, 400, 400, 400)),
    "runner:revoke-key": (
        lambda world, kind: {"pk": world.key.pk}, REFUSED, (302, 302, 404, 404, 404)
    ),
    "api:me": (NOTHING, (401, 200, 200, 200, 200), BY_KEY),
    "account_login": (NOTHING, (200, 302, 302, 302, 302), (200, 302, 302, 302, 302)),
    "account_logout": (NOTHING, SIGNED_IN, MOVED),
    "account_inactive": (NOTHING, ALL, REFUSED),
    "account_signup": (NOTHING, (200, 302, 302, 302, 302), (200, 302, 302, 302, 302)),
    "account_reauthenticate": (NOTHING, NO_PASSWORD, NO_PASSWORD),
    "account_request_reauthentication_code": (NOTHING, NO_PASSWORD, NO_PASSWORD),
    "account_confirm_reauthentication_code": (NOTHING, MOVED, MOVED),
    "account_email": (NOTHING, SIGNED_IN, MOVED),
    "account_email_verification_sent": (NOTHING, ALL, REFUSED),
    "account_change_password": (NOTHING, MOVED, MOVED),
    "account_set_password": (NOTHING, NO_PASSWORD, NO_PASSWORD),
    "account_reset_password": (NOTHING, ALL, ALL),
    "account_reset_password_done": (NOTHING, ALL, REFUSED),
    "account_reset_password_from_key": ({"uidb36": "1", "key": "a-b"}, ALL, ALL),
    "account_reset_password_from_key_done": (NOTHING, ALL, REFUSED),
    "account_confirm_login_code": (NOTHING, MOVED, MOVED),
    "account_confirm_email": ({"key": "abc"}, ALL, NOBODY),
    "socialaccount_login_cancelled": (NOTHING, ALL, REFUSED),
    "socialaccount_login_error": (NOTHING, (401,) * 5, REFUSED),
    "socialaccount_signup": (NOTHING, MOVED, MOVED),
    "socialaccount_connections": (NOTHING, SIGNED_IN, SIGNED_IN),
    "accounts/social/login/cancelled/": (NOTHING, FORMER, FORMER),
    "accounts/social/login/error/": (NOTHING, FORMER, FORMER),
    "accounts/social/signup/": (NOTHING, FORMER, FORMER),
    "accounts/social/connections/": (NOTHING, FORMER, FORMER),
}  # fmt: skip


def path_of(name: str, world: Any, kind: str) -> str:
    named = ENTRIES[name][0]
    parts = dict(named(world, kind) if callable(named) else named)
    query = parts.pop("query", "")
    return f"/{name}" if name.endswith("/") else f"{reverse(name, kwargs=parts)}{query}"


def ask(client: Client, method: str, path: str) -> tuple[Any, str]:
    """The answer and its text. What it wrote is taken back, and a sign-out too."""
    cookies = client.cookies.copy()
    with transaction.atomic():
        response = getattr(client, method)(path)
        text = response.getvalue().decode("utf-8", "replace")
        transaction.set_rollback(True)
    client.cookies = cookies
    return response, text


def leaks(text: str, visitor: str, about: str) -> list[str]:
    """The texts in an answer that this visitor may not see; `about`: the kind that was asked for.

    Beside its owner and moderators, an unlisted one is for whoever has its address, and so is the
    tombstone of a withdrawn one, which says its label. Nobody reads a withdrawn one's source.
    """
    if visitor in ("owner", *STAFF):
        secret = [SOURCE.format(kind) for kind in ("withdrawn", "gone")]
    else:
        open_to = {"public", "hidden", *({about} & {"unlisted", "withdrawn"})}
        readable = open_to - {"hidden", "withdrawn"}
        secret = [TEXT.format(kind) for kind in KINDS if kind not in open_to]
        secret += [SOURCE.format(kind) for kind in KINDS if kind not in readable]
    if visitor != "owner":
        secret += [TEXT.format("draft"), TEXT.format("key")]
    return [word for word in secret if word in text]


def faults(world: Any, name: str) -> Iterator[str]:
    named, *expected = ENTRIES[name]
    for kind in KINDS if callable(named) else ("public",):
        path = path_of(name, world, kind)
        for method, wanted in zip(("get", "post"), expected, strict=True):
            statuses = wanted[kind] if isinstance(wanted, dict) else wanted
            # What takes no such request takes it from nobody: the one who may most asks alone.
            first = 4 if wanted is REFUSED else 0
            for visitor, status in zip(VISITORS[first:], statuses[first:], strict=True):
                answer, text = ask(world.clients[visitor], method, path)
                who = f"{method} {path} ({kind}) by {visitor}"
                if answer.status_code != status:
                    yield f"{who}: {answer.status_code}, not {status}"
                yield from (f"{who}: holds {word}" for word in leaks(text, visitor, kind))
                if "html" in answer.get("Content-Type", "") and (found := INLINE.search(text)):
                    yield f"{who}: {found[0]}"


def test_everybody_gets_what_is_theirs_and_nothing_else(world) -> None:
    found = [fault for name in ENTRIES for fault in faults(world, name)]
    assert found == []


# The admin: what a moderator and an administrator may do with the rows of each model. v: view, a:
# add, c: change, d: delete.
MODELS = {
    "auth_group": ("", "vacd"),
    "auth_user": ("v", "vacd"),
    "account_emailaddress": ("", "vacd"),
    "socialaccount_socialapp": ("", "vacd"),
    "socialaccount_socialtoken": ("", "vacd"),
    "socialaccount_socialaccount": ("", "vacd"),
    "benchmark_task": ("vc", "vc"),
    "benchmark_method": ("vc", "vacd"),
    "benchmark_gpu": ("v", "vac"),
    "benchmark_submission": ("vc", "vc"),
    "benchmark_candidate": ("v", "v"),
    "benchmark_ban": ("vac", "vac"),
    "benchmark_run": ("v", "v"),
    "benchmark_audit": ("va", "va"),
    "runner_allowance": ("v", "vacd"),
    "runner_quota": ("v", "v"),
    "runner_apikey": ("", "v"),
    "runner_device": ("v", "v"),
    "runner_job": ("v", "v"),
    "runner_buildrequest": ("v", "v"),
}
STEPS = {"changelist": "v", "add": "a", "change": "v", "history": "v", "delete": "d"}
# Beside the models: what each visitor gets.
ADMIN = {
    "admin:index": (302, 302, 302, 200, 200),
    "admin:login": (200, 200, 200, 302, 302),
    "admin:logout": (302, 302, 302, 405, 405),
    "admin:password_change": (302, 302, 302, 200, 200),
    "admin:password_change_done": (302, 302, 302, 200, 200),
    "admin:autocomplete": (302, 302, 302, 403, 403),  # of no field
    "admin:jsi18n": (302, 302, 302, 200, 200),
    "admin:runner_judge_again": (302, 302, 302, 200, 200),
    "admin:auth_user_password_change": (302, 302, 302, 403, 200),
}


def rows_of(name: str) -> str:
    """The model that an address of the admin is about, and what it does with it."""
    model, _, step = name.removeprefix("admin:").rpartition("_")
    return f"{model} {step}" if step in STEPS and model in MODELS else ""


def admin_faults(world: Any, name: str) -> Iterator[str]:
    app, model = rows_of(name).split()[0].split("_", 1) if rows_of(name) else ("", "")
    args: list[Any] = []
    if model and not name.endswith(("changelist", "add")):
        row = apps.get_model(app, model).objects.order_by("pk").first()
        if row is None:
            return
        args = [row.pk]
    elif name == "admin:auth_user_password_change":
        args = [world.users["other"].pk]
    path = reverse(name, args=args)
    for visitor, status in zip(VISITORS, admin_statuses(name), strict=True):
        answer, text = ask(world.clients[visitor], "get", path)
        if answer.status_code != status:
            yield f"{path} by {visitor}: {answer.status_code}, not {status}"
        if found := INLINE.search(text):
            yield f"{path} by {visitor}: {found[0]}"


def admin_statuses(name: str) -> tuple[int, ...]:
    if not rows_of(name):
        return ADMIN[name]
    model, step = rows_of(name).split()
    allowed = [200 if STEPS[step] in may else 403 for may in MODELS[model]]
    return (302, 302, 302, *allowed)


def test_the_admin_is_for_moderators_as_far_as_they_may_and_for_administrators(world) -> None:
    names = [*ADMIN, *(name for name in NAMES if rows_of(name))]
    found = [fault for name in names for fault in admin_faults(world, name)]
    assert found == []


# Lead to one of the addresses above, which asks who it is.
LEADING_ON = re.compile(r"admin/(?!r/)|admin:(view_on_site|app_list)$")


def test_every_address_has_an_entry() -> None:
    told = {*ENTRIES, *ADMIN, *(name for name in NAMES if rows_of(name) or LEADING_ON.match(name))}
    assert [name for name in NAMES if name not in told] == []
    assert [name for name in ENTRIES if name not in NAMES] == []  # nor one that is no more
