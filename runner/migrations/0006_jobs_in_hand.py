from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runner", "0005_boards_and_failures"),
    ]

    operations = [
        migrations.AddField(
            model_name="device",
            name="jobs",
            field=models.PositiveSmallIntegerField(
                db_default=1, default=1, help_text="It has so many in hand at once."
            ),
        ),
    ]
