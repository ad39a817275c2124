"""The moderators' group; tokens of the site's first version become hashed keys that expire; the
table in which throttles are counted."""

import hashlib
from datetime import timedelta

from django.contrib.auth.management import create_permissions
from django.core.management import call_command
from django.db import migrations
from django.utils import timezone

GROUP = "Moderators"
PERMISSIONS = {
    "auth": ["view_user"],
    "benchmark": [
        "view_task", "change_task", "view_method", "change_method", "view_gpu", "view_submission",
        "change_submission", "view_candidate", "view_source", "view_run", "view_measurement",
        "view_audit", "add_audit", "view_taskversion", "view_ban", "add_ban", "change_ban",
        "view_methodredirect",
    ],
    "runner": [
        "view_device", "view_job", "add_job", "change_job", "view_buildrequest", "view_allowance",
        "view_quota",
    ],
}
TOKENS = "authtoken_token"
TOKENS_LAST = timedelta(days=180)  # long enough to make another at leisure
START = 4  # characters of an old token that are kept to tell it by; it has 40, of 160 random bits


def make_moderators(apps, schema_editor):
    using = schema_editor.connection.alias
    Permission = apps.get_model("auth", "Permission")
    group, _ = apps.get_model("auth", "Group").objects.using(using).get_or_create(name=GROUP)
    for label, names in PERMISSIONS.items():
        config = apps.get_app_config(label)
        # Django makes permissions after all migrations; this one needs them now.
        config.models_module = True
        create_permissions(config, apps=apps, using=using, verbosity=0)
        config.models_module = None
        found = Permission.objects.using(using).filter(
            content_type__app_label=label, codename__in=names
        )
        group.permissions.add(*found)


def hash_tokens(apps, schema_editor):
    """The plain tokens go, with their table; who holds one goes on using it, until it expires."""
    connection = schema_editor.connection
    if TOKENS not in connection.introspection.table_names():
        return
    ApiKey = apps.get_model("runner", "ApiKey")
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT key, user_id FROM {TOKENS}")
        rows = cursor.fetchall()
    expires_at = timezone.now() + TOKENS_LAST
    ApiKey.objects.using(connection.alias).bulk_create(
        ApiKey(
            user_id=user,
            name="token from before keys expired",
            start=key[:START],
            digest=hashlib.sha256(key.encode()).hexdigest(),
            expires_at=expires_at,
        )
        for key, user in rows
    )
    schema_editor.execute(f"DROP TABLE {TOKENS}")


def make_cache_table(apps, schema_editor):
    """Only where the settings keep the cache in the database."""
    call_command("createcachetable", database=schema_editor.connection.alias, verbosity=0)


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("benchmark", "0007_keep_contracts"),
        ("runner", "0003_accounts"),
    ]

    operations = [
        migrations.RunPython(make_moderators, migrations.RunPython.noop),
        migrations.RunPython(hash_tokens, migrations.RunPython.noop),
        migrations.RunPython(make_cache_table, migrations.RunPython.noop),
    ]
