"""What is asked for when an API key is made."""

from django import forms

from runner.accounts.models import SCOPES

DAYS = {7: "a week", 30: "30 days", 90: "90 days", 365: "a year"}


class KeyForm(forms.Form):
    name = forms.CharField(
        max_length=80,
        label="What it is for",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="“laptop”, “nightly upload”: to know it again when you revoke it.",
    )
    scopes = forms.ChoiceField(choices=list(SCOPES.items()), label="It may")
    days = forms.TypedChoiceField(
        choices=list(DAYS.items()), coerce=int, initial=90, label="It ends after"
    )
