# A simulated game server with the entry point for Agones, to try a cluster without the game. docs/deploy.md uses it.
#   docker build --file deploy/image/simulated-server.Dockerfile --tag matchpod-simulated-server .
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS build
ENV UV_PROJECT_ENVIRONMENT=/opt/simulator UV_PYTHON_DOWNLOADS=never UV_NO_CACHE=1 UV_SYSTEM_CERTS=1
WORKDIR /source
# Another package registry: --secret id=pip,src=pip.conf --secret id=uv,src=uv.toml
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    python3 -m venv /opt/uv && /opt/uv/bin/pip install --no-cache-dir --disable-pip-version-check uv==0.13.7 \
    && python3 -m venv --without-pip /opt/simulator
COPY pyproject.toml uv.lock ./
COPY packages packages
RUN --mount=type=secret,id=uv,target=/etc/uv/uv.toml \
    /opt/uv/bin/uv sync --locked --no-dev --no-editable --compile-bytecode \
    --package cs2-simulator --package matchpod-gameserver

FROM ${BASE}
ARG VERSION=0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="matchpod-simulated-server" \
      org.opencontainers.image.description="A simulated Counter-Strike 2 server for trying Matchpod with Agones." \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/simulator /opt/simulator
ENV PATH=/opt/simulator/bin:/usr/local/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["matchpod-gameserver"]
CMD ["--password-file", "/run/matchpod/password", "--", "cs2-simulator", "-port", "{port}", "-ip", "{ip}", "--quiet"]
