"""What the pages show that is no result of the site's own: published figures."""

from django.db import models


class Publication(models.Model):
    """A publication's figures as imported: the published lane, never ranked."""

    slug = models.SlugField(max_length=60, unique=True)
    document = models.JSONField(
        help_text="As leaderboard/data/README.md describes it; checked by import_published."
    )
    imported_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug
