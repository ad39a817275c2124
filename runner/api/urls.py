from rest_framework.routers import SimpleRouter

from runner.api.views import SubmissionViewSet

router = SimpleRouter(use_regex_path=False)
router.register("submissions", SubmissionViewSet, basename="submission")
urlpatterns = router.urls
