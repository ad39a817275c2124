from django.urls import path
from rest_framework.routers import SimpleRouter

from runner.api.drafts import DraftViewSet
from runner.api.views import JobView, QueueView, SubmissionViewSet

router = SimpleRouter(use_regex_path=False)
router.register("submissions", SubmissionViewSet, basename="submission")
router.register("drafts", DraftViewSet, basename="draft")
urlpatterns = [
    path("jobs/<uuid:uuid>/", JobView.as_view(), name="job"),
    path("queue/", QueueView.as_view(), name="queue"),
    *router.urls,
]
