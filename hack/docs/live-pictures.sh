#!/usr/bin/env bash
# live-pictures.sh: takes the pictures of docs/guide/live-page.md from two short runs on this
# machine, as root. Needs Chromium, and what make demo needs. Takes some three minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
assay=$PWD/.work/bin/kubectl-assay
scratch=$(mktemp -d)
started=()
trap 'for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done; rm -rf "$scratch"' EXIT
. hack/docs/chromium.sh
find_chromium

# picture NAME TOLERANCE PATTERN SECONDS HEIGHT [FLAG]: the page SECONDS after the run's progress
# says PATTERN, within four minutes.
picture() {
	local folder=$scratch/$1 url key
	sed "s/faultLateness: 100ms/faultLateness: $2/" hack/docs/live/live.yaml >"$scratch/$1.yaml"
	"$assay" run --local="$folder" -f experiments/systems/basil.yaml -f "$scratch/$1.yaml" --wait >"$scratch/$1.log" 2>&1 &
	started+=($!)
	for ((i = 0; i < 100; i++)); do [[ -d $folder ]] && break; sleep 0.1; done
	"$assay" ui --local="$folder" >"$scratch/$1.ui" &
	started+=($!)
	for ((i = 0; i < 240; i++)); do
		grep -q "$3" "$scratch/$1.log" && break
		sleep 1
	done
	if ((i == 240)); then
		echo "live-pictures: the run did not say $3 within four minutes:" >&2
		tail -n 5 "$scratch/$1.log" >&2
		exit 1
	fi
	sleep "$4"
	url=$(grep -o 'http://[^ ]*' "$scratch/$1.ui" | head -n 1)
	key=${url#*\?}
	url="${url%%\?*}experiments/default/live?$key"
	timeout 60 "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-color-profile=srgb \
		--user-data-dir="$scratch/chromium" --window-size="1280,$5" --timeout=4000 "${@:6}" \
		--screenshot="$PWD/docs/pictures/live-page-$1.png" "$url" >/dev/null 2>&1
	echo "docs/pictures/live-page-$1.png"
	for pid in "${started[@]}"; do kill -INT "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
	started=()
}

picture running 100ms ": measuring" 11 1200 --force-dark-mode
picture invalid 1us "1 invalid" 2 1000
