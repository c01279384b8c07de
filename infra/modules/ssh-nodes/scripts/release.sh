#!/usr/bin/env bash
# Puts a machine back as it was. One that is dead is let go, with a warning, after SSH_DEAD seconds; one that does not let us in is an error.
#
# Inputs (environment): see lib.sh.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"

if ! lives NODE; then
	say "warning: host $NODE_NAME ($NODE_ADDRESS) does not let us in (${WHY##*$'\n'}) and is let go as it is." \
		"When it is back, run as root: /usr/local/lib/assay/reset.sh && /usr/local/lib/assay/release.sh"
	exit 0
fi
run NODE 300 "leaving the cluster" "$here/../remote/reset.sh"
run NODE 600 "putting it back as it was" "$here/../remote/release.sh"
say "$NODE_NAME: released"
