#!/bin/sh
# Run a matchpod command as the user of the service, with its settings. Install it as /usr/local/bin/matchpod.
set -eu
if [ "$(id -un)" != matchpod ]; then
    [ "$(id -u)" = 0 ] || exec sudo "$0" "$@"
    exec runuser -u matchpod -- "$0" "$@"
fi
if ! cd /var/lib/matchpod 2>/dev/null; then
    echo "matchpod: /var/lib/matchpod does not exist. Start the service first: systemctl start matchpod" >&2
    exit 1
fi
set -a # export all settings
MATCHPOD_DATA_DIR=/var/lib/matchpod
if [ -e /etc/matchpod/matchpod.env ]; then
    . /etc/matchpod/matchpod.env
fi
exec /opt/matchpod/bin/matchpod "$@"
