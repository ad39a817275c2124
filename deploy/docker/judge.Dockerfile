# A GPU host's worker: torch and triton with the site's packages; also what runs `sync_tasks`.
# Build from the repository's root: docker build -f deploy/docker/judge.Dockerfile -t kbx-judge .
# The driver comes from the host through NVIDIA's container toolkit, CUDA with torch's own wheels.
FROM python:3.12-slim-bookworm
# Triton compiles a small launcher in C for each kernel.
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
COPY requirements/site.txt requirements/torch.txt /tmp/
RUN /opt/venv/bin/pip install --quiet --require-hashes -r /tmp/site.txt \
    && /opt/venv/bin/pip install --quiet -r /tmp/torch.txt "numpy<2.6"
WORKDIR /opt/kbx
COPY . .
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    KBX_STATE_DIR=/var/lib/kbx \
    KBX_LOG_FORMAT=json \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
RUN /opt/venv/bin/pip install --quiet --no-deps --editable .
VOLUME /var/lib/kbx
# As root: the walls around candidates need namespaces and other users (runner/sandbox).
CMD ["kbx", "worker"]
