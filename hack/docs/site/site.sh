#!/usr/bin/env bash
# Builds the static site of the documents into .work/docs/site. The programs that it needs come from
# PyPI at the versions and hashes of requirements.txt, into .work/docs/venv.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=$root/.work/docs

mkdir -p "$work"
if ! cmp -s "$here/requirements.txt" "$work/venv/requirements.txt"; then
	rm -rf "$work/venv"
	python3 -m venv "$work/venv" || {
		echo "site.sh: Python 3.11 or later with venv is missing (Debian: apt-get install python3-venv)" >&2
		exit 1
	}
	"$work/venv/bin/pip" --quiet --disable-pip-version-check install --require-hashes -r "$here/requirements.txt"
	cp "$here/requirements.txt" "$work/venv/requirements.txt"
fi
exec "$work/venv/bin/python" "$here/build.py" "$root" "$work"
