from django.urls import URLPattern

app_name = "leaderboard"
urlpatterns: list[URLPattern] = []
