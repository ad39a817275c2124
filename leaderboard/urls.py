from django.urls import path, register_converter

from leaderboard import views


class ChartFormat:
    regex = "json|csv"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(ChartFormat, "chart_format")

app_name = "leaderboard"
urlpatterns = [
    path("", views.home, name="home"),
    path("leaderboard/", views.board, name="board"),
    path("categories/", views.categories, name="categories"),
    path("categories/<slug:slug>/", views.category, name="category"),
    path("tasks/", views.task_list, name="tasks"),
    path("tasks/<slug:slug>/", views.task, name="task"),
    path("methods/<slug:slug>/", views.method, name="method"),
    path("runs/<uuid:uuid>/", views.run, name="run"),
    path("runs/<uuid:uuid>/source.py", views.source, name="source"),
    path("charts/<slug:name>.<chart_format:format>", views.chart, name="chart"),
    path("about/metrics/", views.metrics, name="metrics"),
]
