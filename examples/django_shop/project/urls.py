"""The addresses of the project."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [path("admin/", admin.site.urls), path("orders/", include("shop.urls"))]
