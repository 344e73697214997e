"""Place and list orders, as JSON."""

import json

from asgiref.sync import sync_to_async
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from .models import Order
from .services import place_order


@csrf_exempt
def orders(request: HttpRequest) -> JsonResponse:
    """List the orders, or place one."""
    if request.method == "POST":
        asked = json.loads(request.body)
        order = place_order(asked["customer"], asked["total"])
        return JsonResponse({"order": order.pk}, status=201)
    return JsonResponse({"orders": list(Order.objects.order_by("pk").values("id", "customer", "total", "confirmed"))})


@csrf_exempt
@require_POST
async def place_order_async(request: HttpRequest) -> JsonResponse:
    """Place an order from an async view: the whole transaction is one call."""
    asked = json.loads(request.body)
    order = await sync_to_async(place_order)(asked["customer"], asked["total"])
    return JsonResponse({"order": order.pk}, status=201)
