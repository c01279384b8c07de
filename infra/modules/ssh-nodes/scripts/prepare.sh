#!/usr/bin/env bash
# Prepares one machine: software, settings, images. What is there already is not done again.
#
# Inputs (environment): see lib.sh; of main.tf's local.settings: SOFTWARE and its repositories, KUBERNETES_VERSION, IMAGE_ARCHIVES (paths, one on a
#   line), STRICT, and what remote/machine.sh reads.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"
remote=$here/../remote

# import ARCHIVE SUM: into the machine's containerd.
import() {
	say "$NODE_NAME: importing ${1##*/}"
	ssh_command NODE
	timeout -k 5 900 "${SSH[@]}" "${ROOT}/usr/local/lib/assay/images.sh import $2" <"$1" >"$scratch/import" 2>&1 ||
		fail NODE "could not import the images of $1: $(tail -n 3 "$scratch/import"). $again"
}

# install_files: what stays on the machine.
install_files() {
	local f=$scratch/files name
	mkdir -p "$f"
	for name in SMT TURBO GOVERNOR HUGE_PAGES NOFILE SWAP TIME_SYNC NTP_SERVERS MODULES; do
		printf '%s=%q\n' "$name" "${!name}"
	done >"$scratch/machine.env"
	install -D -m 644 "$scratch/machine.env" "$f/etc/assay/machine.env"
	for name in machine images reset release; do # the last two for whoever gives back a machine that was dead when the host was released
		install -D -m 755 "$remote/$name.sh" "$f/usr/local/lib/assay/$name.sh"
	done
	install -D -m 644 "$remote/assay-machine.service" "$f/etc/systemd/system/assay-machine.service"
	put NODE "$f"
}

reach NODE
run NODE 900 "installing software" "$remote/software.sh" "SOFTWARE=$SOFTWARE" "KUBERNETES_VERSION=$KUBERNETES_VERSION" \
	"KUBERNETES_REPO=$KUBERNETES_REPO" "CONTAINERD_REPO=$CONTAINERD_REPO" "TIME_SYNC=$TIME_SYNC"

install_files
report=$(run NODE 300 "setting what was asked for" "$remote/apply.sh")
sed -n "s/^not-set /$NODE_NAME: not set: /p" <<<"$report" >&2
if [[ $STRICT = true && $report = *not-set\ * ]]; then
	fail NODE "does not have all that preparation asks for (above), and preparation.strict is set. Ask for less, or take another machine. $again"
fi

mapfile -t archives < <(grep . <<<"$IMAGE_ARCHIVES" || true)
if [[ ${#archives[@]} -gt 0 ]]; then
	mapfile -t sums < <(sha256sum "${archives[@]}" | cut -d' ' -f1)
	have=$(run NODE 60 "looking for images" "$remote/have-images.sh" "SUMS=${sums[*]}")
	for i in "${!archives[@]}"; do
		[[ " $have " = *" ${sums[i]} "* ]] || import "${archives[i]}" "${sums[i]}"
	done
fi
say "$NODE_NAME: prepared"
