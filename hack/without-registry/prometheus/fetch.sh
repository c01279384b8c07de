#!/usr/bin/env bash
# Gets the Prometheus of the Debian that this runs on, for tests, at most once for each version. Nothing is installed.
#
# usage: fetch.sh [--path]     prints the file
#   --path   say where it is or would be; fetch nothing
# Inputs: ASSAY_CACHE.
# Output: ASSAY_CACHE/prometheus. Changes nothing else on the machine.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

has apt-cache || die "no Debian: there is no apt-cache"
candidate() { apt-cache policy prometheus | awk '$1 == "Candidate:" && $2 != "(none)" {print $2}'; }
version=$(candidate)
if [[ -z $version && ${1:-} != --path ]]; then # a new machine has no package lists
	apt_get -qq update >&2
	version=$(candidate)
fi
[[ -n $version ]] || die "apt knows no package prometheus; run apt-get update"
dir=$ASSAY_CACHE/prometheus/${version//[^A-Za-z0-9.]/_}
file=$dir/usr/bin/prometheus
if [[ ${1:-} != --path && ! -x $file ]]; then
	say "fetching Prometheus $version from Debian"
	new=$(mktemp -d)
	trap 'rm -rf "$new"' EXIT
	# Old package lists name a version that the archive no longer has.
	(cd "$new" && { apt-get download -q "prometheus=$version" || { apt_get -qq update && apt-get download -q prometheus; }; }) >&2
	mkdir -p "$(dirname "$dir")"
	find "$ASSAY_CACHE/prometheus" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec rm -rf {} +
	rm -rf "$dir.new"
	dpkg-deb --extract "$new"/prometheus_*.deb "$dir.new"
	rm -rf "$dir"
	mv "$dir.new" "$dir"
fi
echo "$file"
