#!/usr/bin/env bash
# Makes a release as .github/workflows/release.yml does, into a registry of this machine that ends
# with the script, and checks what came out. Nothing leaves the machine. The workflow has GitHub say
# who built the files; here a key that is made for the run signs their checksums.
#
# usage: dryrun.sh VERSION
# Inputs:  those of build.sh; PORT of the registry (5002).
# Changes: .work/release, .work/bin.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

version=${1:?usage: dryrun.sh VERSION}
PORT=${PORT:-5002}
export REGISTRY=localhost:$PORT/lab PLAIN_HTTP=true
cd "$repo"
export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath"
make_work
keys=$(mktemp -d "$work/keys.XXXXXX")
trap 'rm -rf "$keys"' EXIT
go run ./hack/release -new-key "$keys/release"
SIGNING_KEY=$keys/release "$hack/release/build.sh" "$version"

go build -modfile=hack/tools/publish/go.mod -o "$work/bin/crane" github.com/google/go-containerregistry/cmd/crane
store=$(mktemp -d "$work/registry.XXXXXX")
"$work/bin/crane" registry serve --address "127.0.0.1:$PORT" --disk "$store" >"$store/log" 2>&1 &
registry=$!
trap 'kill $registry; wait $registry 2>/dev/null || true; rm -rf "$store" "$keys"' EXIT
"$hack/release/push.sh" "$REGISTRY" "$version"
eval "$("$hack/cluster/tools.sh" helm)"
ASSAY_RELEASE=$work/release ASSAY_RELEASE_VERSION=$version ASSAY_RELEASE_REGISTRY=$REGISTRY ASSAY_RELEASE_KEY=$keys/release.pub go test -tags=release -count=1 -v -run '^TestRelease' ./hack/release | grep -vE '^=== RUN'
