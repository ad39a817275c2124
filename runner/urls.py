from django.urls import path

from runner import views
from runner.accounts.urls import urlpatterns as accounts

app_name = "runner"
urlpatterns = [
    path("submissions/new/", views.submit, name="submit"),
    path("submissions/drafts/<uuid:uuid>/", views.draft, name="draft"),
    path("submissions/drafts/<uuid:uuid>/confirm/", views.confirm, name="confirm"),
    path("submissions/drafts/<uuid:uuid>/discard/", views.discard, name="discard"),
    path("submissions/<uuid:uuid>/", views.submission, name="submission"),
    path("submissions/<uuid:uuid>/withdraw/", views.withdraw, name="withdraw"),
    path("submissions/<uuid:uuid>/cancel/", views.cancel, name="cancel"),
    path("submissions/<uuid:uuid>/visibility/", views.visibility, name="visibility"),
    path("jobs/<uuid:uuid>/", views.job, name="job"),
    path("queue/", views.queue, name="queue"),
    *accounts,
]
