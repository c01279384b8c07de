#!/usr/bin/env bash
# Runs `make demo` again and again beside a program that wants a whole processor
# all the time: `make bench-demo`. A demonstration must decide on such a machine.
#
# Inputs (environment):
#   RUNS  how often  (5)
#   BUSY  how many programs run beside it; 0: none  (1)
#   and those of hack/demo.sh.
# Prints for each run its exit code, its verdicts, and how long it took; what it
# printed is in .work/bench/demo-N.log. The exit status is 0 when every run ended
# with 0, and of at least four fifths of them every claim that is judged
# is supported.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

runs=${RUNS:-5}
busy=${BUSY:-1}
[[ $runs =~ ^[1-9][0-9]*$ ]] || die "RUNS=$runs must be a number from 1"
[[ $busy =~ ^[0-9]+$ ]] || die "BUSY=$busy must be a number from 0"
cd "$repo"
make_work
mkdir -p "$work/bench"

pids=()
trap '((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null' EXIT
for ((i = 0; i < busy; i++)); do
	nice -n 0 sh -c 'while :; do :; done' &
	pids+=($!)
done

steal() { awk '$1 == "cpu" { print $9, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9 }' /proc/stat; }

printf '%-4s  %-4s  %-7s  %-6s  %s\n' run exit minutes steal verdicts
ended=0 decided=0
for ((run = 1; run <= runs; run++)); do
	log=$work/bench/demo-$run.log
	began=$SECONDS status=0
	read -r stolen total < <(steal)
	hack/demo.sh >"$log" 2>&1 || status=$?
	read -r stolen2 total2 < <(steal)
	verdicts=$(awk '/^Verdicts on /, /^Assay worked/' "$log" | awk 'NF == 2 && $1 ~ /^([A-Z][A-Za-z]+)$/ { printf "%s%s %s", sep, $2, $1; sep = ", " }')
	printf '%-4d  %-4d  %-7s  %-6s  %s\n' "$run" "$status" "$(awk -v s=$((SECONDS - began)) 'BEGIN { printf "%.1f", s / 60 }')" \
		"$(awk -v s=$((stolen2 - stolen)) -v t=$((total2 - total)) 'BEGIN { printf "%.0f%%", 100 * s / t }')" "${verdicts:-none, see $log}"
	[[ $status != 0 ]] || ended=$((ended + 1))
	[[ -z $verdicts || $verdicts =~ (NotReproduced|NotReplicated|Contradicted|Fails|Inconclusive|NotEvaluated) ]] || decided=$((decided + 1))
done
echo "$ended of $runs runs ended with 0; in $decided the trials support every claim, with $busy busy program(s) beside them"
((ended == runs && decided * 5 >= runs * 4))
