#!/usr/bin/env bash
# Sets machines up once, by a build of minutes, and runs trials from that: `make bench-setup`. It
# prints how long the set-up took, and how long each trial took beyond its script.
#
# Inputs (environment):
#   AT_LEAST  the least seconds of the build, which is repeated until then   (300)
#   TRIALS    trials that start from it                                      (6)
#   FRESH     1: set up anew, also where that was made before                ()
# Changes: what hack/machines/image.sh changes; .work/bench/setup; while it runs, what a run with
# --local changes.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

at_least=${AT_LEAST:-300}
[[ $at_least =~ ^[0-9]+$ ]] || die "AT_LEAST=$at_least must be a number of seconds"
make_work
folder=$work/bench/setup
rm -rf "$folder"
mkdir -p "$folder"
cp "$hack"/bench/setup/*.sh "$folder/"
echo "AT_LEAST=$at_least" >"$folder/at-least"
INSTALL=install.sh PACKAGES="gcc make libc6-dev dpkg-dev" "$hack/machines/image.sh" lab/setup "$folder"

root=$work/own/lab/setup/root
say "set-up: $(cat "$root/usr/share/assay/setup.json")"
began=$EPOCHREALTIME
cp -a "$root/home/author" "$folder/copy"
say "one copy of the home, $(du -sm "$folder/copy" | cut -f1) MiB, takes cp $(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.2f", b - a}') s here"
rm -rf "$folder/copy"
cd "$repo"
ASSAY_LOCAL_PROGRAM=$work/bin/kubectl-assay ASSAY_LOCAL_IMAGES=$work/images ASSAY_LOCAL_TRIALS=${TRIALS:-6} \
	ASSAY_LOCAL_IMAGE=lab/setup:dev ASSAY_LOCAL_SCRIPT=artifact/run.sh \
	go test ./operator/test/local -run '^TestTrialsTakeLittleLongerThanTheirScripts$' -count=1 -v -timeout 20m
