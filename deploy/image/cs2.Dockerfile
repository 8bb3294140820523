# A CS2 server without the game: its files have 60 GB and are mounted from the node. docs/deploy.md has the layout.
#   docker build --file deploy/image/cs2.Dockerfile --tag matchpod-cs2 .
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}
ARG VERSION=0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="matchpod-cs2" \
      org.opencontainers.image.description="The entry point of a Counter-Strike 2 server for Matchpod, without the game." \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY packages/matchpod-gameserver/src/matchpod_gameserver /opt/matchpod_gameserver
COPY --chmod=0755 deploy/image/start_with_token.sh /usr/local/bin/start_with_token.sh
# The game loads steamclient.so from the home of its user; SteamCMD has it.
RUN printf '#!/bin/sh\nexec python3 /opt/matchpod_gameserver "$@"\n' >/usr/local/bin/matchpod-gameserver \
    && chmod 0755 /usr/local/bin/matchpod-gameserver \
    && install -d -o 1000 -g 1000 /home/cs2 /home/cs2/.steam /home/cs2/.steam/sdk64 \
    && ln -s /srv/cs2/steamcmd/linux64/steamclient.so /home/cs2/.steam/sdk64/steamclient.so
ENV HOME=/home/cs2
USER 1000:1000
ENTRYPOINT ["matchpod-gameserver"]
