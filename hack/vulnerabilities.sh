#!/usr/bin/env bash
# Looks for known vulnerabilities in the code that Assay's packages call: `make vulnerabilities`. The
# program is govulncheck, the database that of https://vuln.go.dev. Where that is out of reach, the
# script makes the database from the newest golang.org/x/vulndb, the Go module of its sources. The
# standard library is that of go.mod's toolchain line, with which releases are built.
#
# usage: vulnerabilities.sh [MODULE...] [-- MEASURED...], folders of modules to read after the root's.
# Those of MEASURED keep the versions of their dependencies, since evidence names what was measured.
# They are reported, and do not count.
# Needs:   Go, curl.
# Inputs:  GOPROXY and others of go.
# Output:  which database, then govulncheck's report on each module.
# Changes: .work/vulndb, .work/bin/govulncheck.
# Exit status: 0 if no module that counts has any, 3 if one has, another one if the check could not run.
set -euo pipefail
cd "$(dirname "$0")/.."
GOTOOLCHAIN=$(sed -n 's/^toolchain //p' go.mod)
export GOTOOLCHAIN
command -v curl >/dev/null || { echo "vulnerabilities: curl is not installed" >&2; exit 1; }

database=https://vuln.go.dev
if ! curl -sSfo /dev/null --max-time 20 "$database/index/db.json" 2>/dev/null; then
	module=$(go mod download -json golang.org/x/vulndb@latest)
	read -r version sources < <(printf '%s' "$module" | awk -F '"' '$2 == "Version" { v = $4 } $2 == "Dir" { d = $4 } END { print v, d }')
	echo "$GOTOOLCHAIN; $database does not answer; the database is golang.org/x/vulndb $version"
	folder=$PWD/.work/vulndb/$version
	if [[ ! -e $folder/index/modules.json ]]; then
		rm -rf .work/vulndb
		go run "golang.org/x/vulndb/cmd/indexdb@$version" -vulns "$sources/data/osv" -out "$folder"
	fi
	database=file://$folder
else
	echo "$GOTOOLCHAIN; the database is $database"
fi
GOBIN=$PWD/.work/bin go install golang.org/x/vuln/cmd/govulncheck@v1.9.0
found=0 counts=yes
for module in . "$@"; do
	if [[ $module == -- ]]; then counts=no; continue; fi
	echo "vulnerabilities: module $module$([[ $counts == yes ]] || echo ", at the versions of its evidence")"
	status=0
	.work/bin/govulncheck -C "$module" -db "$database" ./... || status=$?
	case $status in
	0) ;;
	3) [[ $counts == no ]] || found=3 ;;
	*) exit "$status" ;;
	esac
done
exit "$found"
