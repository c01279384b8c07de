#!/usr/bin/env bash
# Runs the tests of tests.txt in a virtual machine, all in one boot. See main.go for what is special about time in it.
#
# usage: test.sh [-json] [PACKAGE...]             what tests.txt lists, of these packages if some are given
#        test.sh -run REGEXP PACKAGE...           other tests of the packages
# Status: 0 if every listed test has passed; 3 when this machine cannot have a kernel or qemu, the last line on stderr is why.
# Changes on the machine: see kernel.sh.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

kernel=$("$hack/vm/kernel.sh") || exit $?
make_work
cd "$repo"
export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath" # as the Makefile has them: there is no C library in the machine
go build -o "$work/vm.$$" ./hack/vm
mv "$work/vm.$$" "$work/vm" # at once: another run may be using it
exec "$work/vm" -kernel "$kernel" "$@"
