"""What changed, and the files that results can be had as."""

from typing import Any

from django.http import Http404
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from benchmark.models import Board
from leaderboard.api import query
from leaderboard.api.base import PublicView, describe
from leaderboard.exports.datasets import VERSION
from leaderboard.exports.selection import NAMES, Selection, read_selection
from leaderboard.selectors import changes
from leaderboard.views.data import Offer, offers


class SiteChangeSerializer(s.Serializer):
    at = s.DateTimeField()
    kind = s.ChoiceField(list(changes.KINDS))
    title = s.CharField()
    text = s.CharField()
    url = s.CharField(help_text="Where it shows, below this site's address.")


class ExportSerializer(s.Serializer):
    """A file; rows, bytes and SHA-256 are null until somebody asked for it."""

    table = s.CharField()
    version = s.IntegerField()
    format = s.CharField()
    url = s.CharField()
    rows = s.IntegerField(allow_null=True)
    bytes = s.IntegerField(allow_null=True)
    sha256 = s.CharField(allow_null=True)


KIND = query.parameter("kind", "Only changes of this kind.", changes.KINDS)


class Changes(PublicView):
    """New results, tasks and judges that changed, audits: the newest hundred."""

    @describe("changes", SiteChangeSerializer(many=True), KIND, tag="data")
    def get(self, request: Request) -> Response:
        found = changes.changes(query.one_of(request, "kind", changes.KINDS))
        return Response(SiteChangeSerializer(found, many=True).data)


class Exports(PublicView):
    """Results as files. Here no `gpu` means all of them, and `round=all` every round."""

    @describe("exports", ExportSerializer(many=True), *query.CHOICE, tag="data")
    def get(self, request: Request) -> Response:
        rows = [
            _export(dataset.name, offer)
            for dataset, made in offers(_selection(request))
            for offer in made
        ]
        return Response(ExportSerializer(rows, many=True).data)


def _selection(request: Request) -> Selection:
    asked, gpus, seen = request.query_params.dict(), query.gpus(request), Board.seen()
    try:
        return read_selection(asked, gpus, seen)
    except Http404:
        for name in NAMES:
            try:
                read_selection({name: asked.get(name, "")}, gpus, seen)
            except Http404 as missing:
                raise query.unusable(name, missing) from missing
        raise


def _export(table: str, offer: Offer) -> dict[str, Any]:
    made = offer.made
    return {
        "table": table,
        "version": VERSION,
        "format": offer.format,
        "url": offer.url,
        "rows": made.rows if made else None,
        "bytes": made.size if made else None,
        "sha256": made.sha256 if made else None,
    }
