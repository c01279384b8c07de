#!/usr/bin/env bash
# Builds the S3 server of this directory, at most once for the same source.
#
# usage: build.sh [--path]     prints the file
#   --path   say where it is or would be; build nothing
# Inputs: ASSAY_CACHE, GOARCH.
# Output: ASSAY_CACHE/s3. Changes nothing else on the machine.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

key=$(cd "$hack/without-registry/s3" && LC_ALL=C sha256sum main.go go.mod go.sum | sha256sum | cut -c1-12)
file=$ASSAY_CACHE/s3/$key-$(go env GOARCH)/s3
if [[ ${1:-} != --path && ! -x $file ]]; then
	say "building the S3 server (two minutes with empty Go caches)"
	mkdir -p "$(dirname "$file")"
	find "$ASSAY_CACHE/s3" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec rm -rf {} +
	(cd "$hack/without-registry/s3" && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -trimpath -ldflags '-s -w' -o "$file.new" .) >&2
	mv "$file.new" "$file"
fi
echo "$file"
