"""The upload form: a file or pasted text becomes a file name and bytes for intake."""

from collections.abc import Callable
from typing import Any, TypeVar

from django import forms

from benchmark import vocabulary
from benchmark.curation import REASON_LENGTH
from benchmark.models import Gpu
from runner import submitting
from runner.intake import limits
from runner.submitting import LABEL_LENGTH, METHOD_LENGTH

Read = TypeVar("Read")


def refuse_nobodys(visibility: str, has_owner: bool) -> str:
    """The visibility, unless nobody could open what it hides."""
    if visibility == vocabulary.PRIVATE and not has_owner:
        raise forms.ValidationError(
            "Without an account nobody could open a private submission: choose unlisted, or "
            "sign in."
        )
    return visibility


def usable(read: Callable[[str], Read], text: str) -> Read:
    """What `read` makes of the text; its refusal as the field's error."""
    try:
        return read(text)
    except submitting.SubmissionRefused as refused:
        raise forms.ValidationError(f"{refused.reason}: {refused.remedy}.") from refused


class SubmissionForm(forms.Form):
    """`cleaned_data` gains `upload`: (file name, bytes)."""

    method = forms.CharField(
        max_length=METHOD_LENGTH,
        help_text="Who or what wrote the kernels, with its version: “DeepSeek-R2 2026-10”.",
    )
    kind = forms.ChoiceField(choices=list(vocabulary.METHOD_KINDS.items()), label="Kind of method")
    label = forms.CharField(
        max_length=LABEL_LENGTH,
        help_text="This set among the method's others: “5 rounds, temperature 0.7”.",
    )
    visibility = forms.ChoiceField(
        choices=[(word, f"{word}: {text}") for word, text in vocabulary.VISIBILITIES.items()],
    )
    source_visibility = forms.ChoiceField(
        choices=[
            (word, f"{word}: {text}") for word, text in vocabulary.SOURCE_VISIBILITIES.items()
        ],
        label="Sources",
        initial=vocabulary.SHOWN,
        required=False,
    )
    file = forms.FileField(
        required=False,
        help_text="predictions.jsonl (KernelBench-X or TritonBench), a zip of .py files, folders "
        "or JSONL, one .py named like its task, or another harness's metrics.json.",
    )
    text = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"spellcheck": "false", "rows": 12}),
        label="Or paste it",
        help_text="Lines of a predictions.jsonl, or the source of one task.",
    )
    task = forms.CharField(
        required=False,
        max_length=120,
        label="Task of the pasted source",
        widget=forms.TextInput(attrs={"list": "task-names", "autocomplete": "off"}),
        help_text="Only for pasted Python: the task that it is for.",
    )

    round = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=limits.MAX_ROUND,
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
        help_text="Only where the files don't say it: the round, from 0, of what they hold.",
    )

    def __init__(self, *args: Any, user: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_method(self) -> str:
        return usable(submitting.method_named, self.cleaned_data["method"]).name

    def clean_label(self) -> str:
        return usable(submitting.clean_label, self.cleaned_data["label"])

    def clean_visibility(self) -> str:
        return refuse_nobodys(self.cleaned_data["visibility"], self.user.is_authenticated)

    def clean_source_visibility(self) -> str:
        return self.cleaned_data["source_visibility"] or vocabulary.SHOWN

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file and file.size > limits.MAX_UPLOAD_BYTES:
            raise forms.ValidationError(
                f"{file.size:,} bytes: send at most {limits.MAX_UPLOAD_BYTES:,} an upload."
            )
        return file

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        file, text = data.get("file"), data.get("text", "")
        if "file" in self.errors:
            return data
        if bool(file) == bool(text.strip()):
            raise forms.ValidationError("Choose a file or paste text: one of the two.")
        data["upload"] = (file.name, file.read()) if file else self._pasted(text, data)
        return data

    def _pasted(self, text: str, data: dict[str, Any]) -> tuple[str, bytes]:
        """JSONL says itself which tasks it is for; Python is named by the form."""
        if text.lstrip().startswith("{"):
            return "pasted.jsonl", text.encode()
        task = data.get("task", "").strip().removesuffix(".py")
        if not task:
            self.add_error("task", "Pasted Python needs the name of its task.")
        return f"{task}.py", text.encode()


class ConfirmForm(forms.Form):
    """`claimed_on`: asked for where the draft holds claimed results."""

    claimed_on = forms.ModelChoiceField(
        Gpu.objects.all(),
        to_field_name="slug",
        required=False,
        label="The claimed results were found on",
        empty_label="choose a GPU",
    )

    def __init__(self, *args: Any, needs_gpu: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["claimed_on"].required = needs_gpu


class WithdrawForm(forms.Form):
    """`reason`: asked of whoever withdraws another's submission."""

    reason = forms.CharField(
        max_length=REASON_LENGTH,
        required=False,
        label="Why",
        widget=forms.TextInput(attrs={"required": True}),
        help_text="Kept in the history, as the admin keeps it.",
    )


class VisibilityForm(forms.Form):
    """Who sees a submission, and who reads its sources."""

    visibility = forms.ChoiceField(
        choices=[(word, f"{word}: {text}") for word, text in vocabulary.VISIBILITIES.items()]
    )
    source_visibility = forms.ChoiceField(
        choices=[
            (word, f"{word}: {text}") for word, text in vocabulary.SOURCE_VISIBILITIES.items()
        ],
        label="Sources",
    )
