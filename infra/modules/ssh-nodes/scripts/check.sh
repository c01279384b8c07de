#!/usr/bin/env bash
# Is this a machine that we can prepare, and not already another host? Looks, and leaves no more than the host's name there.
#
# Inputs (environment): see lib.sh; SUPPORTED_OS, a list of ID:VERSION_ID.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"

reach NODE
run NODE 60 "looking at it" "$here/../remote/check.sh" "HOST=$NODE_NAME" "SUPPORTED_OS=$SUPPORTED_OS"
