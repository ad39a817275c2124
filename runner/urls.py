from django.urls import path

from runner import views
from runner.accounts.urls import urlpatterns as accounts

app_name = "runner"
urlpatterns = [
    path("submissions/new/", views.submit, name="submit"),
    path("submissions/<uuid:uuid>/", views.submission, name="submission"),
    path("submissions/<uuid:uuid>/withdraw/", views.withdraw, name="withdraw"),
    path("jobs/<uuid:uuid>/", views.job, name="job"),
    path("queue/", views.queue, name="queue"),
    *accounts,
]
