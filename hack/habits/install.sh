#!/usr/bin/env bash
# Makes a Python environment with the tools by which authors' scripts reach other machines, of the
# versions in packages.txt, and prints where it is.
#
# Inputs:  those of hack/cluster/lib.sh; PyPI.
# Changes: ASSAY_CACHE/habits; Debian's python3-venv, where it is missing.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

list=$hack/habits/packages.txt
dir=$ASSAY_CACHE/habits/$(cat "$list" <(/usr/bin/python3 --version) | sha256sum | cut -c1-12)
if [[ ! -e $dir/complete ]]; then
	/usr/bin/python3 -c 'import ensurepip' 2>/dev/null || packages missing-venv=python3-venv
	say "installing Ansible, Fabric, Paramiko and parallel-ssh from PyPI"
	rm -rf "$dir"
	mkdir -p "$dir"
	{ /usr/bin/python3 -m venv "$dir" && "$dir/bin/pip" install -q --no-deps -r "$list"; } >"$dir.log" 2>&1 || die "pip failed, see $dir.log"
	touch "$dir/complete"
fi
echo "$dir"
