#!/usr/bin/env bash
# go test, with the tests in a virtual machine: one boot for each package. See main.go for what is special about time in it.
#
# usage: test.sh [FLAG of go test]... PACKAGE...
#   hack/vm/test.sh -v -run 'Delay' ./operator/internal/netem/...
# The tests find ASSAY_VM=1 in their environment: nothing may be missing there, so they should not skip.
# Status: go test's; 3 when this machine cannot have a kernel or qemu, the last line on stderr is why.
# Changes on the machine: see kernel.sh.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

kernel=$("$hack/vm/kernel.sh") || exit $?
make_work
cd "$repo"
export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath" # as the Makefile has them: there is no C library in the machine
go build -o "$work/vm.$$" ./hack/vm
mv "$work/vm.$$" "$work/vm" # at once: another run may be using it
exec go test -count=1 -exec "'$work/vm' -kernel '$kernel' -env ASSAY_VM=1" "$@"
