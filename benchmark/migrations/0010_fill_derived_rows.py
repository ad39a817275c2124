"""Fill the derived tables of a site that has results and was never told to derive anything."""

from django.db import migrations


def fill(apps, schema_editor):
    if not apps.get_model("benchmark", "Run").objects.exists():
        return
    if apps.get_model("benchmark", "RunTally").objects.exists():
        return
    from benchmark import aggregates  # must follow whatever adds a column that it reads

    for _ in aggregates.rebuild():
        pass


class Migration(migrations.Migration):
    dependencies = [
        ("benchmark", "0009_board_lanes"),
    ]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
