#!/usr/bin/env bash
# Builds a program of this module, at most once for the same source: the server and the key generator
# of relab/hotstuff as they are, the server without signatures, and the driver of this directory.
#
# usage: build.sh [--path] hotstuffserver | hotstuffserver-unsigned | hotstuffkeygen | hotstuff-driver
# It prints the file.
#   --path   say where it is or would be; build nothing
# Inputs: ASSAY_CACHE, GOARCH.
# Output: ASSAY_CACHE/hotstuff. Changes nothing else on the machine.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/cluster/lib.sh"

build=1
if [[ ${1:-} = --path ]]; then
	build=0
	shift
fi
name=${1:?name of a program}
flags=()

# without_signatures has the compiler take Sign and Verify of crypto/ecdsa from unsigned/. Go's own
# stay under other names. They are in a file with other functions, of which we keep no copy.
without_signatures() {
	local ecdsa
	ecdsa=$(go env GOROOT)/src/crypto/ecdsa
	made=$(mktemp -d)
	trap 'rm -rf "$made"' EXIT
	sed 's/^func Sign(/func goSign(/; s/^func Verify(/func goVerify(/' "$ecdsa/ecdsa_legacy.go" >"$made/ecdsa_legacy.go"
	[[ $(grep -cE '^func (goSign|goVerify)\(' "$made/ecdsa_legacy.go") = 2 ]] || die "$(go env GOVERSION) has no Sign and Verify in crypto/ecdsa/ecdsa_legacy.go"
	printf '{"Replace": {"%s": "%s", "%s": "%s"}}\n' "$ecdsa/ecdsa_legacy.go" "$made/ecdsa_legacy.go" \
		"$ecdsa/unsigned.go" "$repo/systems/hotstuff/unsigned/unsigned.go" >"$made/overlay.json"
	flags=(-overlay "$made/overlay.json" -tags unsigned)
}

case $name in
hotstuffserver-unsigned)
	package=github.com/relab/hotstuff/cmd/hotstuffserver
	((build == 0)) || without_signatures
	;;
hotstuffserver | hotstuffkeygen) package=github.com/relab/hotstuff/cmd/$name ;;
hotstuff-driver) package=./cmd/$name ;;
*) die "$name is no program of systems/hotstuff: name hotstuffserver, hotstuffserver-unsigned, hotstuffkeygen or hotstuff-driver" ;;
esac
module_program hotstuff "$name" "$package" "$build" "${flags[@]}"
