from django.urls import URLPattern

app_name = "runner"
urlpatterns: list[URLPattern] = []
