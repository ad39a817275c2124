"""`/api/v1/`: the apps' own APIs under one roof."""

from django.urls import include, path

app_name = "api"
urlpatterns = [path("", include("runner.api.urls"))]
