#!/usr/bin/env bash
# From nothing to the verdicts of one paper's figure, on this machine and
# without a cluster: `make demo`. The same on a kind cluster is `make demo-kind`.
#
# Builds the command line and the images that the experiment runs, and runs it
# at smoke size in pods of this machine. It ends with the verdicts, the address
# of the report's page, and what to do next. Results are in .work/demo.
#
# Inputs (environment):
#   EXPERIMENT  name of a file in experiments/, without .yaml  (failure-fp)
#   PROFILE     profile of the experiment                      (smoke)
#   IMAGES      images to build                                (assay/agent assay/basil)
# Changes on the machine: Debian's package runc, if there is none; while it
# runs, /var/lib/assay/local and the control group assay-local. An ordinary user
# needs runc and uidmap, which it does not install, and changes nothing but files
# at home.
# Exit status: 0 when the platform has worked, whatever the verdicts are, which
# are about the system and the machine. 1 when a step of the demo failed; the
# last line says which.
. "$(dirname "${BASH_SOURCE[0]}")/cluster/lib.sh"

experiment=${EXPERIMENT:-failure-fp}
profile=${PROFILE:-smoke}
images=${IMAGES:-assay/agent assay/basil}
file=experiments/$experiment.yaml
folder=$work/demo
cd "$repo"
[[ -e $file ]] || die "EXPERIMENT=$experiment: there is no $file; there are: $(cd experiments && echo *.yaml)"
make_work
mkdir -p "$folder"

steps=3
# shellcheck source=steps.sh
. "$hack/steps.sh"

step "the command line, bin/kubectl-assay" "some seconds" "several minutes"
if [[ $(id -u) = 0 ]]; then
	packages runc=runc || failed
else
	PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin packages runc=runc newuidmap=uidmap || failed
fi
mkdir -p bin
go build -o bin/ ./operator/cmd/kubectl-assay || failed
done_step

step "the images of the agent and of the system" "some seconds" "a minute"
make images IMAGES="$images" >&2 || failed
done_step

step "$file, profile $profile, on this machine" "some three minutes in the profile smoke" "no longer"
status=0
bin/kubectl-assay run --local="$folder/results" -f "$file" --profile "$profile" --rerun --wait >"$folder/report.txt" || status=$?
case $status in
0 | 3 | 4 | 5) ;; # verdicts, and those that are missing, are no failure of the platform
*) failed "kubectl assay run ended with exit code $status" ;;
esac
bin/kubectl-assay report --local="$folder/results" "$experiment" -o "$folder/report.html" >/dev/null || failed
done_step

# verdicts of the claims that the profile judges, with their numbers, out of the report.
verdicts() {
	awk '
		/^Verdicts$/ { on = 1; next }
		on && /^[A-Z][a-z]+( |$)/ && $0 !~ /^[A-Z][A-Za-z]+ +[a-z0-9-]+$/ { exit }
		!on || NF == 0 { next }
		/^[A-Z]/ { flush(); head = $0; text = ""; skip = 0; over = 0; next }
		/^ +judged:/ { over = 1 }
		/^ +profile .* skips it/ { skip = 1 }
		!over { text = text $0 "\n" }
		function flush() { if (head != "" && !skip) printf "  %s\n%s", head, indent(text); else if (skip) skipped++ }
		function indent(t) { gsub(/(^|\n)  +/, "&  ", t); return t }
		END { flush(); if (skipped) printf "  %d more are left to the evaluation in full size.\n", skipped }' "$folder/report.txt"
}

printf '\nVerdicts on %s, profile %s\n\n' "$file" "$profile"
verdicts || failed
[[ $status != 5 ]] || printf '\nSome repetition has no valid trial: this machine is too busy. The report says what disturbed it.\n'
cat <<TEXT

Assay worked; the demo took $(spell "$SECONDS"). The report: file://$folder/report.html

Next:
  bin/kubectl-assay report --local=.work/demo/results $experiment   # every number, and what disturbed the trials
  bin/kubectl-assay try --local -f $file --profile $profile --point variant=ideal   # one trial of one point
  bin/kubectl-assay plan -f $file      # the evaluation in full size
TEXT
