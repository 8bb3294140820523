#!/bin/sh
# Write .env next to this script with the secrets of compose.cluster.yaml, once. Losing the key loses stored secrets.
set -eu
file="$(dirname "$0")/.env"
if [ -e "$file" ]; then
    echo "$file exists already; it is not changed." >&2
    exit 1
fi
umask 077
cat >"$file" <<END
MATCHPOD_SECRET_KEY=$(openssl rand -base64 32)
POSTGRES_PASSWORD=$(openssl rand -hex 16)
GRAFANA_PASSWORD=$(openssl rand -hex 16)
END
echo "Secrets were written to $file."
