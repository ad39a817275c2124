from django.urls import path

from leaderboard.api import analysis, boards, files, runs

urlpatterns = [
    path("gpus/", boards.Gpus.as_view(), name="gpus"),
    path("leaderboard/", boards.Leaderboard.as_view(), name="leaderboard"),
    path("categories/", boards.Categories.as_view(), name="categories"),
    path("categories/<slug:slug>/", boards.Category.as_view(), name="category"),
    path("tasks/", boards.Tasks.as_view(), name="tasks"),
    path("tasks/<slug:slug>/", boards.TaskPage.as_view(), name="task"),
    path("methods/", boards.Methods.as_view(), name="methods"),
    path("methods/<slug:slug>/", boards.MethodPage.as_view(), name="method"),
    path("compare/", analysis.Compare.as_view(), name="compare"),
    path("portability/", analysis.Portability.as_view(), name="portability"),
    path("rounds/", analysis.Rounds.as_view(), name="rounds"),
    path("rounds/<slug:slug>/", analysis.MethodRounds.as_view(), name="method-rounds"),
    path("findings/", analysis.Findings.as_view(), name="findings"),
    path("findings/published/", analysis.Published.as_view(), name="published"),
    path("changes/", files.Changes.as_view(), name="changes"),
    path("exports/", files.Exports.as_view(), name="exports"),
    path("runs/", runs.Runs.as_view(), name="runs"),
    path("runs/<uuid:uuid>/", runs.RunPage.as_view(), name="run"),
]
