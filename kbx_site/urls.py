from django.contrib import admin
from django.urls import include, path

from kbx_site import health

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", include("kbx_site.api")),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("", include("leaderboard.urls")),
    path("", include("runner.urls")),
]
