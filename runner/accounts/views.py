"""`/me/`: an account's own submissions, what it may still have judged, its API keys."""

from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from benchmark.web import page
from runner.accounts import keys, quota, selectors
from runner.accounts.forms import KeyForm


@require_safe
@never_cache
@login_required
def me(request: HttpRequest) -> HttpResponse:
    return _me_page(request, KeyForm())


@require_POST
@never_cache
@login_required
@sensitive_variables("made")
def make_key(request: HttpRequest) -> HttpResponse:
    """The answer shows the new key: it is on no other page, and in no session or cookie."""
    form = KeyForm(request.POST)
    if not form.is_valid():
        return _me_page(request, form, code=400)
    data = form.cleaned_data
    try:
        made = keys.make(request.user, data["name"], data["scopes"], data["days"])
    except keys.KeyRefused as refused:
        form.add_error(None, str(refused))
        return _me_page(request, form, code=429)
    return page(request, "runner/me_key.html", {"made": made, "site": _address(request)})


@require_POST
@login_required
def revoke_key(request: HttpRequest, pk: int) -> HttpResponse:
    if not keys.revoke(request.user, pk):
        raise Http404("You have no such API key, or it was revoked before.")
    return redirect("runner:me")


@require_safe
def sign_in(request: HttpRequest) -> HttpResponse:
    """Where signing in was before accounts could be made here; links to it are kept."""
    after = {"next": request.GET.get("next", "/submissions/new/")}
    return redirect(reverse("account_login", query=after))


def _address(request: HttpRequest) -> str:
    return f"{request.scheme}://{request.get_host()}"


def _me_page(request: HttpRequest, form: KeyForm, code: int = 200) -> HttpResponse:
    submissions, part = selectors.own_submissions(request.user, request.GET.get("page"))
    context: dict[str, Any] = {
        "nav": "me",
        "submissions": submissions,
        "part": part,
        "drafts": selectors.own_drafts(request.user),
        "quotas": quota.standing(request.user),
        "renewal": quota.renewal(),
        "keys": selectors.own_keys(request.user),
        "form": form,
        "unverified": _unverified(request.user),
        "github": settings.KBX_GITHUB,
        "site": _address(request),
    }
    response = page(request, "runner/me.html", context)
    response.status_code = code
    return response


def _unverified(user: Any) -> bool:
    """True for an address that waits to be verified; without one there is nothing to verify."""
    return EmailAddress.objects.filter(user=user, primary=True, verified=False).exists()
