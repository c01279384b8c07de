#!/usr/bin/env bash
# fuzz.sh FUZZTIME PATTERN [WORKERS]: run the module's fuzz tests one after the
# other, each for FUZZTIME (a duration or, as 1000x, a number of inputs) and with
# that many workers (default: one for each processor), and print a line for each.
# Input (environment): FUZZ_GRACE, seconds that a test may take beyond FUZZTIME (300).
# Exit status: 0 if all passed, 1 if one failed, 2 if none was found.
set -euo pipefail
cd "$(dirname "$0")/../.."

fuzztime=$1 pattern=$2 workers=()
if [[ -n ${3:-} ]]; then workers=(-test.parallel "$3"); fi
# A fuzz test that asks for more than this much memory is a finding. It bounds the
# address space, of which the fuzzing engine itself takes some 1.5 GB.
memory_kilobytes=4194304
# A test that hangs is one, too: the whole test has a deadline, this beyond FUZZTIME,
# for the inputs that are kept. The program is built before, once for each package: on a
# busy machine that takes longer than any test, and is no finding. Workers can outlive
# the program, so that each test is a session of its own, all of which is killed at its end.
grace_seconds=${FUZZ_GRACE:-300}
# Fuzzing uses every processor. A test that may take real-time priority, as those of
# netem do for their measurements, would stop the machine: nobody may here.
calm=(nice -n 10)
if ((EUID == 0)) && command -v setpriv >/dev/null; then
	calm+=(setpriv --bounding-set=-sys_nice --inh-caps=-sys_nice)
fi

scratch=$(mktemp -d)
log=$scratch/log program=$scratch/fuzz.test
session='' watchdog=''
finish() {
	rm -rf "$scratch"
	if [[ -n $session ]]; then kill -KILL -- "-$session" "-$watchdog" 2>/dev/null || true; fi
}
trap finish EXIT
trap 'exit 1' INT TERM

seconds() { # of a duration such as 1h2m3s; 0 for a number of inputs
	local left=$1 sum=0
	while [[ $left =~ ^([0-9]+)(h|m|s)(.*)$ ]]; do
		case ${BASH_REMATCH[2]} in
		h) sum=$((sum + BASH_REMATCH[1] * 3600)) ;;
		m) sum=$((sum + BASH_REMATCH[1] * 60)) ;;
		s) sum=$((sum + BASH_REMATCH[1])) ;;
		esac
		left=${BASH_REMATCH[3]}
	done
	if [[ -n $left && ! $left =~ ^[0-9]+x$ ]]; then
		echo "FUZZTIME must be such as 90s, 2m or 1000x, and is $1" >&2
		return 2
	fi
	echo "$sum"
}

# only_ended: the engine takes the end of FUZZTIME for a failure when a worker is in the
# middle of an input then (go.dev/issue/75804, mended in Go 1.27). It found nothing if it says only that.
only_ended() {
	[[ $(grep -A1 -e '--- FAIL: Fuzz' "$log" | tail -1 | tr -d ' ') == contextdeadlineexceeded ]] &&
		! grep -q -e 'Failing input' -e 'panic' -e 'fuzzing process' -e 'it was not over' "$log"
}

deadline=$(($(seconds "$fuzztime") + grace_seconds))
found=0 failed=0
cache=$(go env GOCACHE)/fuzz # as go test has it
# Packages without fuzz tests are not even listed: some start an API server to do so.
while read -r directory; do
	package=./$directory
	names=$(git grep --untracked -hoE '^func Fuzz\w*' -- ":(glob)$directory/*_test.go" | cut -d ' ' -f 2)
	grep -qE -- "$pattern" < <(for name in $names; do echo "$package $name"; done) || continue
	# Instrumented as for -fuzz. It lists its tests itself: a build tag may leave some out.
	if ! { "${calm[@]}" go test -c -fuzz . -o "$program" "$package" && listed=$(cd "$directory" && "$program" -test.list '^Fuzz'); } >"$log" 2>&1; then
		printf 'FAIL  %s: does not build:\n' "$package"
		sed 's/^/      /' "$log"
		found=$((found + 1)) failed=$((failed + 1))
		continue
	fi
	path=$(go list "$package")
	for name in $(grep '^Fuzz' <<<"$listed" || true); do
		[[ "$package $name" =~ $pattern ]] || continue
		found=$((found + 1)) start=$SECONDS
		# A killed engine leaves a file of 100 MB for each worker. TMPDIR has it in the folder that finish removes.
		(ulimit -v "$memory_kilobytes" && cd "$directory" && TMPDIR=$scratch exec setsid "${calm[@]}" \
			"$program" -test.paniconexit0 -test.run '^$' -test.fuzz "^$name\$" -test.fuzztime "$fuzztime" -test.fuzzminimizetime 1x \
			-test.fuzzcachedir "$cache/$path" "${workers[@]}") >"$log" 2>&1 &
		session=$!
		# shellcheck disable=SC2016 # the inner shell expands them
		setsid bash -c 'sleep "$1" && echo "it was not over after $1 s" >>"$2" && kill -KILL -- "-$3"' watchdog "$deadline" "$log" "$session" >/dev/null 2>&1 &
		watchdog=$!
		disown "$watchdog" # its end is not told
		if wait "$session" || only_ended; then
			status=ok
		else
			status=FAIL failed=$((failed + 1))
		fi
		kill -KILL -- "-$watchdog" 2>/dev/null || true
		kill -KILL -- "-$session" 2>/dev/null || true
		session=
		executed=$(grep -o 'execs: [0-9]*' "$log" | tail -1 | cut -d ' ' -f 2 || true)
		interesting=$(grep -o 'new interesting: [0-9]*' "$log" | tail -1 | cut -d ' ' -f 3 || true)
		printf '%-4s  %-55s %5d s  %10s inputs  %4s new\n' "$status" "${package#./operator/internal/} $name" "$((SECONDS - start))" "${executed:-0}" "${interesting:-0}"
		if [[ $status == FAIL ]]; then
			sed 's/^/      /' "$log" | tail -60
		fi
	done
done < <(git grep --untracked -l '^func Fuzz' -- '*_test.go' | xargs -r -n 1 dirname | sort -u)

if ((found == 0)); then
	echo "no fuzz test matches $pattern" >&2
	exit 2
fi
echo "$found fuzz tests, $failed failed"
((failed == 0))
