"""`/api/v1/me/`: whose key this is, what it may do, and what is left of today's quota."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from runner.accounts import quota
from runner.accounts.models import ApiKey


class QuotaSerializer(serializers.Serializer):
    """Judgements of today on one GPU."""

    gpu = serializers.CharField(source="slug")
    name = serializers.CharField(source="gpu")
    per_day = serializers.IntegerField()
    used = serializers.IntegerField()
    left = serializers.IntegerField()


class ApiKeySerializer(serializers.Serializer):
    name = serializers.CharField()
    start = serializers.CharField()
    scopes = serializers.SerializerMethodField()
    expires_at = serializers.DateTimeField()

    def get_scopes(self, key: ApiKey) -> list[str]:
        return key.scopes.split()


class MeSerializer(serializers.Serializer):
    """`key` is null where a session asks; `renews_at` is when the next day of quotas begins."""

    username = serializers.CharField()
    key = ApiKeySerializer(allow_null=True)
    quota = QuotaSerializer(many=True)
    renews_at = serializers.DateTimeField()


class MeView(APIView):
    """Whose API key this is, and what its account may still have judged today."""

    needs_no_scope = True  # `kbx login` tries keys here, also those that only submit
    permission_classes = [IsAuthenticated]
    serializer_class = MeSerializer

    @extend_schema(operation_id="me", tags=["submissions"], responses=MeSerializer)
    def get(self, request: Request) -> Response:
        """Whose key this is, what it may do, and what is left of today's quota."""
        said: dict[str, Any] = {
            "username": request.user.get_username(),
            "key": request.auth,
            "quota": quota.standing(request.user),
            "renews_at": quota.renewal(),
        }
        return Response(MeSerializer(said).data)
