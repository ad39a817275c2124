from django.apps import AppConfig


class RunnerConfig(AppConfig):
    name = "runner"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from runner import taking_back  # noqa: F401  it hears what is taken out of judging
