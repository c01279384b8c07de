package main

import "slices"

// Each mutant names the lane whose tests must notice it. Cheap lanes come first.
var mutants = slices.Concat(reviewed, chosen)

// chosen mutants show, in every lane, that tests cover Assay's promises.
var chosen = []mutant{
	{
		name: "interval-too-narrow", doc: "intervals are of 90% where 95% are promised", lane: "unit",
		file: "operator/internal/results/stats/stats.go",
		old:  "Quantile((1 + confidence) / 2)", new: "Quantile(confidence)",
		pkg: "operator/internal/results/stats", run: "TestAgreesWithSciPy",
	},
	{
		name: "late-faults-count", doc: "a fault may be late by any time", lane: "unit",
		file: "operator/internal/analysis/validity/faults.go",
		old:  "late > results.Millis(tolerated) || late <", new: "late <",
		pkg: "operator/internal/analysis/validity", run: "TestJudgeFaults",
	},
	{
		name: "forged-bundles-pass", doc: "kubectl assay verify finds no difference", lane: "unit",
		file: "operator/internal/analysis/report/model/verify.go",
		old:  "func (v *Verified) differs(format string, args ...any) {\n", new: "func (v *Verified) differs(format string, args ...any) {\n	if format != \"\" {\n		return\n	}\n",
		pkg: "operator/internal/cli/verify", run: "TestVerify",
	},
	{
		name: "manager-may-be-root", doc: "the chart lets the manager run as root", lane: "chart",
		file: "charts/assay/templates/_helpers.tpl",
		old:  "runAsNonRoot: true", new: "runAsNonRoot: false",
		pkg: "charts/assay", run: "TestManagerIsRestricted",
	},
	{
		name: "results-lost", doc: "the manager acknowledges a client's results and keeps nothing", lane: "api",
		file: "operator/internal/manager/controller/trial/storage/store.go",
		old:  "	l := placement.Layout{Trial: pod.Trial.Name}\n	return st.create(ctx, pod, &corev1.ConfigMap{",
		new:  "	l := placement.Layout{Trial: pod.Trial.Name}\n	if pod.Index >= 0 {\n		return nil\n	}\n	return st.create(ctx, pod, &corev1.ConfigMap{",
		pkg:  "operator/internal/manager/controller/trial", run: "TestATrialLivesAndLeavesOnlyItsResults",
	},
	{
		name: "services-left-behind", doc: "a trial leaves its Services", lane: "api",
		file: "operator/internal/manager/controller/trial/objects/delete.go",
		old:  "		{\"Service\", &corev1.ServiceList{}},\n", new: "",
		pkg: "operator/internal/manager/controller/trial", run: "TestATrialLivesAndLeavesOnlyItsResults",
	},
	{
		name: "s3-manifest-missing", doc: "a trial in the store has no manifest", lane: "api",
		file: "operator/internal/manager/controller/archive/trials.go",
		old:  "if err := store.WriteManifest(ctx, s, folder, m); err != nil {", new: "if err := error(nil); err != nil {\n		_ = m",
		pkg: "operator/internal/manager/controller/archive", run: "TestATrialIsStored",
	},
	{
		name: "agent-never-confirms", doc: "agents act on faults and do not report that", lane: "kernel",
		file: "operator/internal/node/agent/actions.go",
		old:  "f.record(func(j *journal) { j.Actions = append(slices.Clip(j.Actions), record) })", new: "_ = slices.Clip[[]int]",
		pkg: "operator/internal/node/agent", run: "TestAKilledPodFallsSilentAtItsInstantAndComesBack",
	},
	{
		name: "kill-200-ms-late", doc: "agents act 200 ms after a fault's instant", lane: "kernel",
		file: "operator/internal/node/agent/actions.go",
		old:  "run.ZeroUnixNanos + int64(action.At))\n	how,", new: "run.ZeroUnixNanos + int64(action.At) + 200_000_000)\n	how,",
		pkg: "operator/internal/node/agent", run: "TestAKilledPodFallsSilentAtItsInstantAndComesBack",
	},
	{
		name: "edt-5-ms-off", doc: "the shaper EDT delays packets by 5 ms more than asked", lane: "vm",
		file: "operator/internal/node/netem/edt/program_linux.go",
		old:  "Delay: uint64(l.Delay), Jitter:", new: "Delay: uint64(l.Delay) + 5_000_000, Jitter:",
		pkg: "operator/internal/node/netem/accuracy", run: "TestDelaysAreExact",
	},
	{
		name: "machine-listed-twice", doc: "Terraform takes a list of hosts that names a machine twice", lane: "terraform",
		file: "infra/modules/inventory/variables.tf",
		old:  `length(distinct([for h in var.hosts : "${h.address}:${h.port}"])) == length(var.hosts)`, new: "length(var.hosts) > 0",
		pkg: "infra/test/static", run: "TestInventoryRefuses",
	},
	{
		name: "webhook-not-installed", doc: "the API server asks the webhook about nothing", lane: "kind",
		file: "charts/assay/templates/webhook.yaml",
		old:  "operations: [CREATE, UPDATE]", new: "operations: [DELETE]",
		pkg: "operator/test/e2e", run: "TestWrongSpecRefused",
	},
	{
		name: "right-removed", doc: "the manager may not create StatefulSets", lane: "kind",
		file: "charts/assay/files/role.yaml",
		old:  "  - statefulsets\n  verbs:\n  - create\n", new: "  - statefulsets\n  verbs:\n",
		pkg: "operator/test/e2e", run: "TestThrottledTrialsDecideNothing",
	},
}
