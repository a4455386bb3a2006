#!/bin/sh
# What a container does: `join`, the first time with the invite of the secret file (ATOLL_INVITE_FILE) or of standard input, later
# without; any other command of atoll as it is given. It is atoll itself that gets the signals.
set -eu

if [ "${1:-join}" != join ]; then exec atoll "$@"; fi
[ $# -eq 0 ] || shift
# Where others dial it was said at the first.
if [ -e "${ATOLL_HOME:?}/join.json" ]; then exec atoll join --yes "$@" </dev/null; fi
secret=${ATOLL_INVITE_FILE:-/run/secrets/atoll-invite}
if [ -r "$secret" ]; then exec atoll join --yes --listen "$ATOLL_LISTEN" --invite-file "$secret" "$@" </dev/null; fi
if [ -t 0 ]; then
  echo "atoll: there is no invite: give it on standard input (docker run -i ... < invite.txt) or as the secret $secret" >&2
  exit 2
fi
exec atoll join --yes --listen "$ATOLL_LISTEN" --invite-stdin "$@"
