#!/usr/bin/env bash
# first-screens.sh [COMMIT]: what a reader sees first of three reports, as pictures of 1280 by 800
# pixels in docs/pictures/first-screens: NAME-now.png by the working tree and, with COMMIT,
# NAME-before.png by the program and the bundle of that commit. Needs Chromium, Go and git.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
before=${1:-}
out=$PWD/docs/pictures/first-screens
scratch=$(mktemp -d)
trap 'git worktree remove --force "$scratch/before" 2>/dev/null || true; rm -rf "$scratch"' EXIT
. hack/docs/chromium.sh
find_chromium

# picture PROGRAM BUNDLE PNG
picture() {
	"$1" report --file "$2" -o html >"$scratch/page.html"
	timeout 60 "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-color-profile=srgb \
		--user-data-dir="$scratch/chromium" --window-size=1280,800 --screenshot="$3" "file://$scratch/page.html" >/dev/null 2>&1
	echo "${3#"$PWD/"}"
}

mkdir -p "$out"
go build -o "$scratch/now" ./operator/cmd/kubectl-assay
if [[ -n $before ]]; then
	git worktree add --quiet --detach "$scratch/before" "$before"
	(cd "$scratch/before" && go build -o "$scratch/then" ./operator/cmd/kubectl-assay)
fi
for name in pesto/failure-fp pesto/point-scan basil/client-failures; do
	bundle=experiments/${name%/*}/evidence/${name#*/}.tar.zst
	picture "$scratch/now" "$bundle" "$out/${name#*/}-now.png"
	if [[ -n $before ]]; then
		was=$scratch/before/$bundle
		[[ -e $was ]] || was=${was%.tar.zst}.tar.gz # until November 2026
		picture "$scratch/then" "$was" "$out/${name#*/}-before.png"
	fi
done
