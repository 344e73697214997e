"""The addresses of the shop."""

from django.urls import path

from . import views

urlpatterns = [path("", views.orders), path("async/", views.place_order_async)]
