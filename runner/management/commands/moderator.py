"""Make somebody a moderator, or no longer."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import Group, User
from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q

GROUP = "Moderators"


class Command(BaseCommand):
    help = "Let an account curate at /admin/: tasks, methods, submissions, verdicts and bans."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="user name or e-mail address of the account")
        parser.add_argument("--remove", action="store_true", help="take it back")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["name"]
        found = User.objects.filter(Q(username=name) | Q(email__iexact=name))
        if found.count() != 1:
            raise CommandError(f"{found.count()} accounts are called {name!r}: it must be one")
        user, group = found.get(), Group.objects.get(name=GROUP)
        if options["remove"]:
            user.groups.remove(group)
            user.is_staff = user.is_superuser
        else:
            user.groups.add(group)
            user.is_staff = True
        user.save(update_fields=["is_staff"])
        self.stdout.write(f"{user}: {'moderator' if not options['remove'] else 'no moderator'}")
