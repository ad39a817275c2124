"""The REST API: its errors, throttles and OpenAPI document. Part of the base settings."""

API_APPS = ["drf_spectacular", "drf_spectacular_sidecar", "runner.api"]

API = {
    "DEFAULT_THROTTLE_CLASSES": ["benchmark.throttles.ReadThrottle"],
    "DEFAULT_SCHEMA_CLASS": "benchmark.api.Schema",
    "DEFAULT_METADATA_CLASS": None,  # OPTIONS says nothing that the OpenAPI document doesn't
    "EXCEPTION_HANDLER": "benchmark.api.answer_error",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "URL_FORMAT_OVERRIDE": None,  # one format, and `format` stays a word of the pages
}
# Of an account or an address, in each window. What has not changed (304) counts as well.
THROTTLES = {"submissions": "60/hour", "reads": "600/min", "exports": "60/hour"}

SPECTACULAR_SETTINGS = {
    "TITLE": "KernelBench-X",
    "DESCRIPTION": "Everything that the pages show, as JSON from the same numbers, and submissions "
    "by POST. Speedups are reference time / candidate time against PyTorch eager on the same GPU; "
    "null is not measured, never 0. Answers of 400 and above have one shape: Error. Requests are "
    "counted by account or address; a 429 says in Retry-After when to come back.",
    "VERSION": "1",
    "LICENSE": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PUBLIC": True,
    "SERVE_AUTHENTICATION": [],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    # Of our own static files: nothing comes from elsewhere.
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "/static/img/icon.svg",
    "SWAGGER_UI_SETTINGS": {
        "deepLinking": True,
        "docExpansion": "list",
        "defaultModelsExpandDepth": 0,
    },
    "TAGS": [
        {"name": "boards", "description": "Rankings on a GPU, by category."},
        {"name": "tasks", "description": "Contracts, and who solved them."},
        {"name": "methods", "description": "Who or what writes kernels."},
        {"name": "analysis", "description": "Comparisons, portability, rounds, findings."},
        {"name": "runs", "description": "Single judgements with their cases."},
        {"name": "submissions", "description": "Send candidates, follow them."},
        {"name": "data", "description": "Results as files, and what changed."},
        {"name": "drafts", "description": "Look at an upload before it is submitted."},
    ],
    "ENUM_NAME_OVERRIDES": {
        "Verdict": "benchmark.vocabulary.VERDICTS",
        "AuditVerdict": "benchmark.vocabulary.AUDIT_VERDICTS",
        "CaseKind": "benchmark.vocabulary.CASE_KINDS",
        "MethodKind": "benchmark.vocabulary.METHOD_KINDS",
        "JobState": "benchmark.vocabulary.JOB_STATES",
        "Visibility": "benchmark.vocabulary.VISIBILITIES",
    },
}
