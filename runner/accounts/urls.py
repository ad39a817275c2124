from django.urls import path

from runner.accounts import views

urlpatterns = [
    path("me/", views.me, name="me"),
    path("me/keys/", views.make_key, name="make-key"),
    path("me/keys/<int:pk>/revoke/", views.revoke_key, name="revoke-key"),
    path("login/", views.sign_in, name="login"),
]
