from django.contrib import admin
from django.urls import include, path

from kbx_site import health
from kbx_site.metrics import metrics
from runner.accounts.admin_login import throttled

admin.site.login = throttled(admin.site.login)  # type: ignore[method-assign]

urlpatterns = [
    path("admin/", admin.site.urls),
    path("accounts/", include("allauth.urls")),
    path("api/v1/", include("kbx_site.api")),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("", include("leaderboard.urls")),
    path("", include("runner.urls")),
]
