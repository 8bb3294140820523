#!/bin/sh
# Start a game server with a login token (GSLT) that no other server of this machine uses:
#   start_with_token.sh TOKENS LOCKS CFG COMMAND...
# TOKENS has one token per line, LOCKS is a folder that all servers of the machine share. CFG is written for the game,
# which executes it before its first map. The game holds the lock, so the token becomes free when the game ends.
set -eu
[ $# -ge 4 ] || { echo "usage: start_with_token.sh TOKENS LOCKS CFG COMMAND..." >&2; exit 2; }
tokens=$1 locks=$2 cfg=$3
shift 3
number=0
while read -r token <&8; do
    [ -n "$token" ] || continue
    number=$((number + 1))
    exec 9>"$locks/$number.lock"
    if flock --nonblock 9; then
        umask 077
        echo "sv_setsteamaccount $token" >"$cfg"
        exec "$@" 8<&-
    fi
done 8<"$tokens"
echo "all $number login tokens in $tokens are in use; add one per server of this machine" >&2
exit 1
