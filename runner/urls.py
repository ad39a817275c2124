from django.contrib.auth.views import LoginView
from django.urls import path

from runner import views

app_name = "runner"
urlpatterns = [
    path("submissions/new/", views.submit, name="submit"),
    path("submissions/<uuid:uuid>/", views.submission, name="submission"),
    path("submissions/<uuid:uuid>/withdraw/", views.withdraw, name="withdraw"),
    path("jobs/<uuid:uuid>/", views.job, name="job"),
    path(
        "login/",
        LoginView.as_view(template_name="runner/login.html", next_page="runner:submit"),
        name="login",
    ),
    path("queue/", views.queue, name="queue"),
]
