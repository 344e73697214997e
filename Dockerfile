# The document ingestion service (apps/ingestion): API, relay, validation and enrichment are commands of one image.
FROM python:3.11-slim AS packages
RUN python -m venv /opt/venv
COPY apps/ingestion/requirements.txt /tmp/requirements.txt
RUN /opt/venv/bin/pip install --no-cache-dir --require-hashes -r /tmp/requirements.txt

FROM python:3.11-slim
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin ingestion
COPY --from=packages /opt/venv /opt/venv
WORKDIR /app
COPY src/pillarbox src/pillarbox
COPY apps/__init__.py apps/__init__.py
COPY apps/runtime apps/runtime
COPY apps/ingestion apps/ingestion
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONPATH=/app/src:/app \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    INGESTION_LISTEN=0.0.0.0:8081
USER 10001
EXPOSE 8081
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["python", "-m", "apps.ingestion", "probe"]
# SIGTERM drains: requests are answered, and what the relay has in flight is settled.
STOPSIGNAL SIGTERM
ENTRYPOINT ["python", "-m", "apps.ingestion"]
CMD ["serve"]
