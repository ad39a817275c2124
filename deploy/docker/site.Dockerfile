# The site: web, its worker, its clock. No torch: pages and intake never import it.
# Build from the repository's root: docker build -f deploy/docker/site.Dockerfile -t kbx-site .
FROM python:3.12-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
COPY requirements/site.txt /tmp/site.txt
RUN /opt/venv/bin/pip install --quiet --require-hashes -r /tmp/site.txt

FROM python:3.12-slim-bookworm
# pg_dump and pg_restore, for `manage.py backup` and `manage.py restore`.
RUN apt-get update \
    && apt-get install -y --no-install-recommends postgresql-client \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/kbx --create-home kbx
COPY --from=build /opt/venv /opt/venv
WORKDIR /opt/kbx
COPY . .
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DJANGO_SETTINGS_MODULE=kbx_site.settings.production \
    KBX_STATE_DIR=/var/lib/kbx \
    KBX_STATIC_ROOT=/opt/static \
    KBX_BIND=0.0.0.0:8000
# Hashed names and compressed twins, once. Collecting reads no secret and reaches no server: what
# the settings ask for is made up here and stays in this command.
RUN pip install --quiet --no-deps --editable . \
    && secret=$(python -c "import secrets; print(secrets.token_urlsafe(60))") \
    && KBX_SECRET_KEY=$secret KBX_ALLOWED_HOSTS=build.invalid \
       DATABASE_URL=postgresql://build:$secret@build.invalid/build \
       KBX_BROKER_URL=redis://:$secret@build.invalid/0 \
       python manage.py collectstatic --no-input -v0
USER kbx
VOLUME /var/lib/kbx
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=12s --start-period=60s \
    CMD ["python", "deploy/probe.py"]
CMD ["gunicorn", "-c", "deploy/gunicorn.conf.py", "kbx_site.wsgi"]
