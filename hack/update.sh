#!/usr/bin/env bash
# Shows which dependencies of each Go module of the tree are behind, and which newer versions the
# module proxy refuses: `make update`. With APPLY=1 it takes the newer ones that are served.
#
# usage: update.sh [FOLDER...]     (folders with a go.mod; all of them)
# Inputs:  APPLY=1; GOPROXY and others of go.
# Output:  a line for each direct dependency that is behind: module, version here, newest version,
#          and "served" or why not; then the number of each.
# Changes: with APPLY=1 go.mod and go.sum of the folders. Modules that belong together
#          (k8s.io, sigs.k8s.io) may need each other: if a folder does not build afterwards, the
#          script puts its two files back and says so.
# Exit status: 0, also when versions are refused; 1 when go itself fails, or a folder was put back.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
behind=0 refused=0 failed=0

# newest MODULE: the version that the proxy calls the latest, or nothing and why in $scratch/why.
newest() { go list -m -f '{{.Version}}' "$1@latest" 2>"$scratch/why"; }

# why: the last line that go printed, without the addresses of proxies.
why() { tail -n1 "$scratch/why" | sed -E 's#https?://[^ ]*: ?##; s/^go: //' | cut -c1-100; }

update() {
	local folder=$1 module version latest take=()
	printf '%s\n' "$folder/go.mod"
	while read -r module version; do
		if ! latest=$(newest "$module"); then
			printf '  %-55s %-22s %-22s %s\n' "$module" "$version" '?' "refused: $(why)"
			refused=$((refused + 1))
			continue
		fi
		[[ $latest != "$version" ]] || continue
		behind=$((behind + 1))
		if go mod download "$module@$latest" >/dev/null 2>"$scratch/why"; then
			printf '  %-55s %-22s %-22s %s\n' "$module" "$version" "$latest" served
			take+=("$module@$latest")
		else
			printf '  %-55s %-22s %-22s %s\n' "$module" "$version" "$latest" "refused: $(why)"
			refused=$((refused + 1))
		fi
	done < <(cd "$folder" && go list -m -f '{{if not (or .Main .Indirect .Replace)}}{{.Path}} {{.Version}}{{end}}' all)
	[[ ${APPLY:-} = 1 && ${#take[@]} -gt 0 ]] || return 0
	cp "$folder/go.mod" "$folder/go.sum" "$scratch/"
	if (cd "$folder" && go get "${take[@]}" && go mod tidy && go build ./...) >"$scratch/log" 2>&1; then
		printf '  taken: %d\n' "${#take[@]}"
	else
		cp "$scratch/go.mod" "$scratch/go.sum" "$folder/"
		printf '  put back, since the folder does not build with all of them: %s\n' "$(tail -n1 "$scratch/log" | cut -c1-200)"
		failed=1
	fi
}

folders=("$@")
[[ $# -gt 0 ]] || mapfile -t folders < <(git ls-files '*go.mod' | xargs -n1 dirname)
for folder in "${folders[@]}"; do
	[[ -f $folder/go.mod ]] || { echo "update: $folder has no go.mod" >&2; exit 1; }
	update "$folder"
done
printf '%d behind, %d refused\n' "$behind" "$refused"
exit "$failed"
