"""What the OpenAPI document allows, tried at random: nothing may end in a failure of ours.

Leave it out with `-m "not fuzz"`. The seed is fixed, so that a change is blamed for its own faults.
"""

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings

from benchmark.models import Board

pytestmark = [pytest.mark.fuzz, pytest.mark.django_db]
# Of each operation; more of them for whoever has the time: KBX_FUZZ=200.
EXAMPLES = int(os.environ.get("KBX_FUZZ", "3"))
SETTINGS = settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def test_nothing_that_is_allowed_is_a_failure_of_ours(site) -> None:
    from kbx_site.wsgi import application

    Board.bump()
    document = schemathesis.openapi.from_wsgi("/api/v1/schema/", application)
    failures: list[str] = []
    tried = 0
    for found in document.get_all_operations():
        operation = found.ok()

        @seed(176)
        @SETTINGS
        @given(case=operation.as_strategy())
        def ask(case) -> None:
            nonlocal tried
            tried += 1
            answer = case.call()
            if answer.status_code >= 500:
                failures.append(f"{answer.status_code} {case.as_curl_command()}")

        ask()
    assert failures == []
    assert tried > 20 * EXAMPLES
