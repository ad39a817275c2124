"""Allowances to give, keys to revoke, quotas to look at."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from benchmark import curation
from benchmark.admin import ReadOnly
from runner.accounts.models import Allowance, ApiKey, Quota


@admin.register(Allowance)
class AllowanceAdmin(admin.ModelAdmin):
    """Who may have more, or less, judged a day than everybody else."""

    list_display = ("user", "gpu", "per_day")
    list_filter = ("gpu",)
    list_select_related = ("user", "gpu")
    search_fields = ("user__username", "user__email")
    autocomplete_fields = ("user",)


@admin.register(Quota)
class QuotaAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ("day", "user", "gpu", "used")
    list_filter = ("gpu", "day")
    list_select_related = ("user", "gpu")
    search_fields = ("user__username", "user__email")
    date_hierarchy = "day"


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnly, admin.ModelAdmin):
    """Keys are made by their owners; here they can be taken away."""

    list_display = ("start", "user", "name", "scopes", "created_at", "last_used_at", "expires_at",
                    "revoked_at")  # fmt: skip
    list_filter = ("scopes", ("revoked_at", admin.EmptyFieldListFilter))
    list_select_related = ("user",)
    search_fields = ("user__username", "user__email", "name", "start")
    exclude = ("digest",)
    actions = ("revoke",)

    @admin.action(description="Revoke the selected keys")
    def revoke(self, request: HttpRequest, found: QuerySet[ApiKey]) -> None:
        if not request.user.has_perm("runner.change_apikey"):
            self.message_user(request, "You may not change API keys.", "error")
            return
        chosen = list(found.filter(revoked_at__isnull=True))
        ApiKey.objects.filter(pk__in=[key.pk for key in chosen]).update(revoked_at=timezone.now())
        curation.log(request.user, chosen, "Revoked")
        self.message_user(request, f"{len(chosen)} keys revoked.")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm("runner.view_apikey"))
