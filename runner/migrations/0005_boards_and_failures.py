from django.db import migrations, models


def count_failures(apps, schema_editor):
    """Until now every attempt that was given up had failed."""
    jobs = apps.get_model("runner", "Job").objects.using(schema_editor.connection.alias)
    jobs.exclude(state="lost").update(failures=models.F("attempt") - 1)
    jobs.filter(state="lost").update(failures=models.F("attempt"))


class Migration(migrations.Migration):
    dependencies = [
        ("runner", "0004_moderators_and_tokens"),
    ]

    operations = [
        migrations.AddField(
            model_name="device",
            name="judge_version",
            field=models.CharField(blank=True, max_length=40),
        ),
        migrations.AddField(
            model_name="device",
            name="reason",
            field=models.TextField(blank=True, help_text="Why it takes no jobs."),
        ),
        migrations.AddField(
            model_name="device",
            name="remedy",
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name="device",
            name="state",
            field=models.CharField(
                choices=[
                    ("starting", "starting"),
                    ("serving", "serving"),
                    ("draining", "draining"),
                    ("broken", "broken"),
                    ("refused", "refused"),
                    ("gone", "gone"),
                ],
                default="serving",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="device",
            name="suite_digest",
            field=models.CharField(blank=True, max_length=64),
        ),
        migrations.AddField(
            model_name="job",
            name="failures",
            field=models.PositiveSmallIntegerField(
                default=0,
                help_text="Attempts that failed; not those that a board gave back unspent.",
            ),
        ),
        migrations.AddConstraint(
            model_name="device",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["starting", "serving", "draining", "broken", "refused", "gone"])
                ),
                name="device_state_is_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="device",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("state__in", ["broken", "refused"]),
                        models.Q(("reason", ""), _negated=True),
                    ),
                    models.Q(
                        models.Q(("state__in", ["broken", "refused"]), _negated=True),
                        ("reason", ""),
                        ("remedy", ""),
                    ),
                    _connector="OR",
                ),
                name="device_in_trouble_has_a_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(("failures__lte", models.F("attempt"))),
                name="job_fails_once_an_attempt",
            ),
        ),
        # Last: PostgreSQL alters no table whose rows were written in the same transaction.
        migrations.RunPython(count_failures, migrations.RunPython.noop),
    ]
