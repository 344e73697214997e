"""One third-party framework per module or folder: migrations, web frameworks, task queues, tests.

No other part of the package imports these modules, and none of them is imported before its framework is. The
exception is the transport of Celery, which needs no Celery.
"""
