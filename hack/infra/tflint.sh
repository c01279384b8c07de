#!/usr/bin/env bash
# Builds tflint from Go modules, into ASSAY_CACHE, and links it into .work/bin. Its rules for Terraform itself are compiled in.
#
# usage: tflint.sh
# Changes on the machine: .work/bin in the repository, ASSAY_CACHE.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

here=$hack/infra/tflint
out=$ASSAY_CACHE/tflint/$(cat "$here/go.mod" "$here/go.sum" | sha256sum | cut -c1-12)-$(go env GOARCH)
mkdir -p "$out"
exec 9>"$out/.lock"
flock 9
if [[ ! -x $out/tflint ]]; then
	say "building tflint"
	CGO_ENABLED=0 GOFLAGS=-buildvcs=false nice go -C "$here" build -trimpath -ldflags '-s -w' -o "$out/tflint.part" github.com/terraform-linters/tflint >&2
	mv "$out/tflint.part" "$out/tflint"
fi
make_work
mkdir -p "$work/bin"
ln -sfn "$out/tflint" "$work/bin/tflint"
