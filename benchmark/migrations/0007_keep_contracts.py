"""Keep what tasks say now beside their present digests: what changes from here on can be told."""

from django.db import migrations

FACTS = ("signature", "description", "tolerance", "difficulty", "dtypes", "differences", "delegates", "cases")


def keep(apps, schema_editor):
    versions = apps.get_model("benchmark", "TaskVersion")
    for task in apps.get_model("benchmark", "Task").objects.all():
        contract = {name: getattr(task, name) for name in FACTS}
        versions.objects.filter(task=task, digest=task.digest).update(contract=contract)


class Migration(migrations.Migration):

    dependencies = [
        ('benchmark', '0006_curation'),
    ]

    operations = [
        migrations.RunPython(keep, migrations.RunPython.noop, elidable=True),
    ]
