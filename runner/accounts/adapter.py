"""What this site decides about django-allauth's accounts."""

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.core.validators import RegexValidator
from django.http import HttpRequest

USERNAME_LENGTH = 39  # as GitHub's, so that a name can be the same on both

EMAIL_VERIFICATION = "runner.accounts.stages.EmailVerification"

# Letters, digits, and single marks between: a name can't look like a path, a mail address or,
# with letters of several scripts, like somebody else's.
username_validators = [
    RegexValidator(
        rf"\A(?=.{{1,{USERNAME_LENGTH}}}\Z)[A-Za-z0-9]+([._-][A-Za-z0-9]+)*\Z",
        f"Use up to {USERNAME_LENGTH} letters and digits, with single . _ or - between them.",
    )
]


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.KBX_SIGNUP)

    def get_login_stages(self) -> list[str]:
        ours = {"allauth.account.stages.EmailVerificationStage": EMAIL_VERIFICATION}
        return [ours.get(stage, stage) for stage in super().get_login_stages()]
