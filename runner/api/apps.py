from django.apps import AppConfig


class ApiConfig(AppConfig):
    """Holds the answers that repeated uploads get again; its tables are its own."""

    name = "runner.api"
    label = "api"
    default_auto_field = "django.db.models.BigAutoField"
