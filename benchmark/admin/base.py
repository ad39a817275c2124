"""What several admins share."""

from typing import Any

from django.http import HttpRequest

from benchmark.models import Board


class ReadOnly:
    """Rows that admins look at: no adding, changing or deleting, whatever the permissions."""

    def has_add_permission(self, *_: Any) -> bool:
        return False

    def has_change_permission(self, *_: Any) -> bool:
        return False

    def has_delete_permission(self, *_: Any) -> bool:
        return False


class BumpsBoard:
    """What pages show changes with these rows, so cached pages are of an older generation."""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)  # type: ignore[misc]
        Board.bump()

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        super().delete_model(request, obj)  # type: ignore[misc]
        Board.bump()
