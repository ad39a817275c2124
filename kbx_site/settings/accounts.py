"""Accounts: sign-up, sign-in, mail and how much an account may have judged. Part of `base`."""

from urllib.parse import unquote, urlsplit

from kbx_site import env

LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "runner:me"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]

# --- mail ---
MAIL_URL = env.text("KBX_MAIL_URL", "")
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.text("KBX_MAIL_FROM", "kernelbench-x@localhost")


def mail(url: str) -> dict[str, object]:
    """Django's settings of smtp://user:password@host:587 (STARTTLS) or smtps://...:465 (TLS)."""
    if not url:
        return {"EMAIL_BACKEND": "django.core.mail.backends.console.EmailBackend"}
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
        env.refuse(  # without the value: a password may be in it
            "KBX_MAIL_URL can't be read: smtp://user:password@host:587 (STARTTLS) or "
            "smtps://user:password@host:465, with special characters of the password as %XX"
        )
        return {}
    wrapped = parts.scheme == "smtps"
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": port or (465 if wrapped else 587),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": wrapped,
        # A mail server on this very host takes mail without either.
        "EMAIL_USE_TLS": not wrapped and parts.hostname not in ("localhost", "127.0.0.1"),
        "EMAIL_TIMEOUT": 10,  # seconds; a visitor waits for it
    }


globals().update(mail(MAIL_URL))

# --- sign-up and sign-in (django-allauth) ---
# Whether strangers may make an account. Those who have one sign in all the same.
KBX_SIGNUP = env.flag("KBX_SIGNUP", True)
# Mandatory: nobody gets in before the address is verified. Without mail nobody could do that.
ACCOUNT_EMAIL_VERIFICATION = env.word(
    "KBX_EMAIL_VERIFICATION", "mandatory" if MAIL_URL else "none", ("MANDATORY", "OPTIONAL", "NONE")
).lower()
ACCOUNT_ADAPTER = "runner.accounts.adapter.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email", "username"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "username*", "password1*"]
ACCOUNT_USERNAME_MIN_LENGTH = 2
ACCOUNT_USERNAME_VALIDATORS = "runner.accounts.adapter.username_validators"
ACCOUNT_USERNAME_BLACKLIST = ["admin", "administrator", "moderator", "root", "staff", "system"]
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[KernelBench-X] "
ACCOUNT_CHANGE_EMAIL = True  # an account has one address; another takes its place once verified
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_LOGIN_ON_EMAIL_CONFIRMATION = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_RATE_LIMITS = {
    "signup": "5/m/ip,20/h/ip",
    "login": "30/m/ip",
    "login_failed": "10/m/ip,5/300s/key",
    "admin_login": "10/m/ip,10/900s/key",
    "reset_password": "10/m/ip,5/h/key",
}

# --- GitHub ---
GITHUB_CLIENT = env.text("KBX_GITHUB_CLIENT_ID", "")
GITHUB_SECRET = env.text("KBX_GITHUB_SECRET", "")
if bool(GITHUB_CLIENT) != bool(GITHUB_SECRET):
    env.refuse(
        "Signing in with GitHub needs both KBX_GITHUB_CLIENT_ID and KBX_GITHUB_SECRET: set both or "
        "none (.env.example)."
    )
KBX_GITHUB = bool(GITHUB_CLIENT)
SOCIALACCOUNT_PROVIDERS = (
    {
        "github": {
            "APPS": [{"client_id": GITHUB_CLIENT, "secret": GITHUB_SECRET}],
            "OAUTH_PKCE_ENABLED": True,
        }
    }
    if KBX_GITHUB
    else {}
)
ALLAUTH_APPS = ["allauth", "allauth.account", "allauth.socialaccount"] + (
    ["allauth.socialaccount.providers.github"] if KBX_GITHUB else []
)
# Browsers ask about a form's redirects too: "Sign in with GitHub" is a form that leads there.
FORM_TARGETS = ["'self'"] + (["https://github.com"] if KBX_GITHUB else [])

# --- quotas ---
# Judgements (a candidate on a GPU) of an account a day and GPU: five rounds of 176 tasks, and some.
KBX_QUOTA_PER_DAY = env.integer("KBX_QUOTA_PER_DAY", 1000, least=0)
