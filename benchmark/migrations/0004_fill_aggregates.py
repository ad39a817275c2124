"""Once filled the derived tables. That is done last now, when they have all their columns: 0010."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("benchmark", "0003_aggregates"),
    ]

    operations: list = []
