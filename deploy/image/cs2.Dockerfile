# A CS2 server without the game, whose files need 60 GB and are mounted from the node. docs/deploy.md has the layout.
#   docker build --file deploy/image/cs2.Dockerfile --tag matchpod-cs2 .
# BASE is Steam Linux Runtime 3 (sniper), the only one that Valve supports for the game: Debian 11 with Python 3.9. Pin it
# by digest once it runs with your build of the game: `docker buildx imagetools inspect` shows the digest.
ARG BASE=registry.gitlab.steamos.cloud/steamrt/sniper/platform:latest-container-runtime-depot
FROM ${BASE}
ARG VERSION=0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="matchpod-cs2" \
      org.opencontainers.image.description="The entry point of a Counter-Strike 2 server for Matchpod, without the game." \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# libicu: .NET in CounterStrikeSharp ends the game without it. lib32: SteamCMD, which installs the game, is a 32-bit
# program. The name of libicu has the version of the release, so it is a pattern.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
       ca-certificates lib32gcc-s1 lib32stdc++6 lib32z1 '^libicu[0-9]+$' python3 util-linux \
    && rm -rf /var/lib/apt/lists/*
COPY packages/matchpod-gameserver/src/matchpod_gameserver /opt/matchpod_gameserver
COPY --chmod=0755 deploy/image/start_with_token.sh /usr/local/bin/start_with_token.sh
# Each server runs in a folder of its own in /instances, where it also finds steamclient.so of SteamCMD in its home.
RUN printf '#!/bin/sh\nexec python3 /opt/matchpod_gameserver "$@"\n' >/usr/local/bin/matchpod-gameserver \
    && chmod 0755 /usr/local/bin/matchpod-gameserver \
    && install -d -o 1000 -g 1000 /home/cs2 /instances
ENV HOME=/home/cs2
USER 1000:1000
ENTRYPOINT ["matchpod-gameserver"]
