"""What came with curation, for the moderators' group: bans, merged methods, judging again."""

from django.contrib.auth.management import create_permissions
from django.db import migrations

GROUP = "Moderators"
PERMISSIONS = {
    "benchmark": ["view_ban", "add_ban", "change_ban", "view_methodredirect", "view_taskversion"],
    "runner": ["add_job"],
}


def permit(apps, schema_editor):
    using = schema_editor.connection.alias
    group = apps.get_model("auth", "Group").objects.using(using).filter(name=GROUP).first()
    if group is None:  # a site's own admins may have taken it away
        return
    for label, names in PERMISSIONS.items():
        config = apps.get_app_config(label)
        # Django makes permissions after all migrations; this one needs them now.
        config.models_module = True
        create_permissions(config, apps=apps, using=using, verbosity=0)
        config.models_module = None
        permissions = apps.get_model("auth", "Permission").objects.using(using)
        group.permissions.add(
            *permissions.filter(content_type__app_label=label, codename__in=names)
        )


class Migration(migrations.Migration):

    dependencies = [
        ('benchmark', '0007_keep_contracts'),
        ('runner', '0004_moderators_and_tokens'),
    ]

    operations = [
        migrations.RunPython(permit, migrations.RunPython.noop),
    ]
