##@ Tests

# hack/test runs lanes of tests and sums them up: see its documentation. Lanes that are joined by a
# comma run beside each other, those that are joined by a plus in turn. TEST_FLAGS go to `go test`:
# make test-unit TEST_FLAGS=-run=TestKnee
gotestsum := .work/bin/gotestsum
run_tests = $(MAKE) -s $(gotestsum) && go build -o .work/bin/test ./hack/test && .work/bin/test $(if $(TEST_FLAGS),-flags='$(TEST_FLAGS)')

$(gotestsum): hack/tools/go.mod
	@mkdir -p $(@D)
	go build -modfile=hack/tools/go.mod -o $@ gotest.tools/gotestsum

comma := ,
# Three nodes of Cassandra are more than a lane beside others may cost.
module_lanes = $(subst $() ,$(comma),$(notdir $(filter-out systems/cassandra,$(modules))))

.PHONY: check
check: lint ## What to run after every change: lint, vet, unit tests. Repeats the tests of what has changed.
	@$(run_tests) unit,$(module_lanes)

# What answers in ten minutes where builds are warm, and what CI runs beside it for every change.
# kernel and local mostly wait for instants, so they run in turn, beside lanes of lowest priority.
quick := unit,chart,$(module_lanes),api,kernel+local kind
long := vm,terraform hostile local-long,rootless kind-long

# make test FRESH=1 repeats every lane, as CI does.
reuse := $(if $(FRESH),,-reuse)
.PHONY: test test-long
test: ## Unit, chart, API server, kernel, one machine without a cluster, one kind cluster. Repeats no lane that has passed here within a week with the same inputs; FRESH=1 repeats all. Ends in: N passed, N failed, N skipped.
	@$(run_tests) $(reuse) -strict $(quick)
test-long: ## What CI runs besides for every change: Terraform, the network in a virtual machine, a manager that is attacked, long trials on this machine, by an ordinary user, and on kind; FRESH=1 as for make test.
	@$(run_tests) $(reuse) -strict $(long)

# The lanes of test-further. Those without a pass come first, then that which has not passed for longest. With WITHIN=40m a lane that may take longer than what is left is not begun. TURN fills turns of half an hour in this order.
FURTHER ?= fuzz race policies paper tutorial systems cassandra faults evaluations contention machines scheduling libvirt browser owner release

.PHONY: test-further
test-further: ## The lanes that make test and make test-long leave out, each unless it has passed here within a week with the same inputs; WITHIN=40m bounds them, and with TURN=7 only those run whose turn that is.
	@$(run_tests) -further $(if $(WITHIN),-within=$(WITHIN)) $(if $(TURN),-turn=$(TURN)) $(FURTHER)

.PHONY: test-passes
test-passes: ## When each lane passed last, on which commit, with how many tests; renews hack/test/passes.txt.
	@go build -o .work/bin/test ./hack/test && .work/bin/test -passes

.PHONY: test-all
test-all: ## Every lane: also upgrade and rollback, S3, Prometheus, Chaos Mesh, WAN numbers, machine resets, race detector, browser, LaTeX and R, fuzzing, libvirt.
	@$(run_tests) -strict $(quick) $(long) $(FURTHER)

.PHONY: test-unit test-chart test-api test-hostile test-kernel test-vm test-terraform test-local test-local-long test-rootless test-kind test-kind-long
test-unit: ## Tests that need nothing but Go.
	@$(run_tests) unit
test-chart: ## Tests that render charts/assay.
	@$(run_tests) chart
test-api: ## Tests against a real kube-apiserver and etcd.
	@$(run_tests) api
test-hostile: ## A manager of 512 MiB beside an author and a system that attack it: it lives, and trials of others are in time.
	@$(run_tests) hostile
test-kernel: ## Agents and shapers in the kernel at hand, as root.
	@$(run_tests) kernel
test-vm: ## Shapers in a virtual machine with a Debian kernel, where time is virtual.
	@$(run_tests) vm
test-terraform: ## Checks, plans and mocks of infra/.
	@$(run_tests) terraform
test-local: ## Trials on this machine without a cluster, as root: a run, faults, scripts, Ctrl-C.
	@$(run_tests) local
test-local-long: ## The same for longer: killed runs, data sets, scripts that hang, two versions together.
	@$(run_tests) local-long
test-rootless: ## The same by an ordinary user, whom the tests make as root.
	@$(run_tests) rootless
test-kind: ## Assay on the cluster of `make deploy`, which is created if there is none.
	@$(run_tests) kind
test-kind-long: ## On the same cluster: a killed manager or agent, a deleted trial, throttled replicas, machines by SSH.
	@$(run_tests) kind-long

# The newest patch of each minor version that the module proxy served on 27 November 2026. What ran
# with them is in docs/design/robustness.md.
VERSIONS ?= 1.35.4 1.34.4 1.33.13 1.32.13
.PHONY: test-versions
test-versions: ## The lane api with other API servers, built from Go modules: VERSIONS="1.32.13".
	@$(foreach v,$(VERSIONS),echo "== kube-apiserver $(v)" && export API_SERVER=$(v) && $(run_tests) api &&) true

.PHONY: test-policies test-evaluations test-faults test-scheduling test-contention test-systems test-tutorial test-owner test-machines test-race test-libvirt test-paper test-report
test-evaluations: ## On the same cluster: nine trials of FailureFP, and the evaluation over a WAN.
	@$(run_tests) evaluations
test-faults: ## On the same cluster: machine resets, pauses, partitions, a view change, killed proxies.
	@$(run_tests) faults
test-scheduling: ## On the same cluster: queues, trials at the same time.
	@$(run_tests) scheduling
test-contention: ## On the same cluster, on a machine that does nothing else: a busy node spoils trials, and quiet ones count.
	@$(run_tests) contention
test-systems: ## On the same cluster: Systems that start, fail and report like real artifacts; data sets.
	@$(run_tests) systems
test-tutorial: ## On the same cluster: the tutorial as a reader types it, the live page, a trial that is mended.
	@$(run_tests) tutorial
test-owner: ## On the same cluster: upgrade, rollback, removal, S3, Prometheus, Chaos Mesh.
	@$(run_tests) owner
test-policies: ## The pods of the chart and of trials against policies of Kyverno and Gatekeeper, by these engines; builds them the first time, from 2,600 packages.
	@$(run_tests) policies
test-machines: ## Terraform applied over SSH to containers that stand for machines.
	@$(run_tests) machines
test-race: ## Packages with goroutines of their own under the race detector; needs a C compiler.
	@$(run_tests) race
test-libvirt: ## One real virtual machine by infra/modules/libvirt-nodes, up to a login; some 10 minutes.
	@$(run_tests) libvirt
test-paper: ## The figures' scripts in R, figures and the artifact's appendix by LaTeX, and failure-fp again by its artifact's own script; as root, some 7 minutes.
	@$(run_tests) paper
# The page is opened from disk with the network off. SCREENSHOTS=DIR keeps what it looked like,
# REPORT=FILE looks at another page than the one that the test makes.
test-report: export ASSAY_REPORT = $(if $(REPORT),$(abspath $(REPORT)))
test-report: export ASSAY_SCREENSHOTS = $(if $(SCREENSHOTS),$(abspath $(SCREENSHOTS)))
test-report: ## The report's page in a real browser: wide, narrow, light, dark, printed.
	@$(run_tests) browser

.PHONY: test-refusals
test-refusals: ## Say which refusals of admission no case of operator/internal/testkit/refusals reaches; fails on any that hack/refusals/unreached.txt does not name.
	@go run ./hack/refusals

.PHONY: workflow
workflow: ## Run the jobs of .github/workflows/ci.yml here as they are written, as an ordinary user with sudo: JOBS='check lane:chart kind:kind', or all.
	@hack/without-registry/workflow/run.sh $(JOBS)

.PHONY: test-mutants
test-mutants: ## Break a copy of the tree in 35 places, one by one: tests must notice each. MUTANTS='a b': only these.
	@go build -o .work/bin/mutants ./hack/mutants && .work/bin/mutants $(MUTANTS)

# Draws as many small changes; SEED= draws others, PACKAGES='operator/internal/engine/...' elsewhere.
RANDOM_MUTANTS ?= 300
SEED ?= 1
.PHONY: mutants-random
mutants-random: ## Draw 300 small defects in the packages that decide: their own tests must notice nine of ten (docs/design/measured.md has the last count). The same command goes on where it was ended.
	@go build -o .work/bin/mutants ./hack/mutants && .work/bin/mutants -random=$(RANDOM_MUTANTS) -seed=$(SEED) $(PACKAGES)

# The part of it that the lane unit runs is 60 seeds. FOR=2m begins no further history after that.
SEEDS ?= 500
FIRST ?= 1
FOR ?= 0
sim_test = go test ./operator/test/simulation -timeout 0 -count=1 -v
sim_all = $(sim_test) -run '^TestSeeds$$' -workers $$(nproc) -for $(FOR)
.PHONY: sim sim-night sim-known sim-scale
sim: ## Simulate SEEDS=500 histories of managers, agents, nodes and stores that fail, from seed FIRST=1 on, in virtual time.
	@$(sim_all) -seeds $(SEEDS) -first $(FIRST)
# What is over is in the file, so that a batch that was ended goes on. A tree with changes is no
# commit: it begins anew.
sim-night: FROM ?= 1
sim-night: SEEDS = 10000
sim-night: ## Simulate SEEDS=10000 histories from FROM=1 on; say how many virtual hours they were. The same command goes on where it was ended.
	@mkdir -p .work/sim
	@record=.work/sim/$$(git describe --always --abbrev=12 --exclude='*' --dirty).jsonl; \
	case $$record in *-dirty.jsonl) rm -f "$$record";; esac; \
	echo "each history is added to $$record"; \
	$(sim_all) -seeds $(SEEDS) -first $(FROM) -record "$(CURDIR)/$$record"
sim-known: ## Put each known defect back into an overlay of the tree: the simulation must find it within 500 seeds. KNOWN=R2: only this one.
	@$(sim_test) -run '^TestKnownDefectsAreFound$$' -known -only '$(KNOWN)'

sim-scale: ## Simulate 200 experiments of 50 trials, in 20 namespaces on 1,000 nodes, while managers die: who gets the pools, and how long these are idle. TestScale of the lane unit is a small one.
	@$(sim_test) -run '^TestScale$$' -scale-namespaces 20 -scale-experiments 10 -scale-trials 50 -scale-nodes 1000

# What is over is in the file, with the commit: delete it to begin anew. A tree with changes is no
# commit, and has a file of its own that begins anew.
KILLS ?= 50
PER_TRIAL ?= 1
.PHONY: campaign
campaign: ## On the cluster of make deploy, as root: short trials, in the middle of each of which managers, agents, launchers, API server, etcd, kubelets, nodes or the store are killed, until KILLS=50 were. PER_TRIAL=3: so many in a trial on average. VICTIM=etcd: these alone. FOR=20m: begin no further one after that. The same command goes on where it was ended.
	@mkdir -p .work/campaign
	@commit=$$(git describe --always --abbrev=12 --exclude='*' --dirty); record=.work/campaign/kills.jsonl; \
	case $$commit in *-dirty) record=.work/campaign/dirty.jsonl; rm -f $$record;; esac; \
	go test -tags campaign ./operator/test/install -count=1 -v -timeout 0 -run '^TestCampaign$$' \
		-args -kills=$(KILLS) -kills-per-trial=$(PER_TRIAL) -kills-for=$(FOR) -victim='$(VICTIM)' -kill-commit=$$commit -kill-record="$(CURDIR)/$$record"

.PHONY: model
model: ## Check the models of grants, release, take-over and replacement in docs/design/models by TLC; needs Java and pip.
	@hack/model.sh

.PHONY: artifact
artifact: ## Check a clone of the Pequin artifact, SOURCE=CLONE: no file of it is here, and its configurations and results are read as its own scripts read them.
	@go run ./hack/provenance "$(or $(SOURCE),$(error SOURCE names a clone of the Pequin artifact))"
	@ASSAY_ARTIFACT="$(abspath $(SOURCE))" go test -count=1 -v -tags=artifact -run OfAClone ./operator/internal/cli/importer ./operator/internal/cli/pequin | sed -u '/^ *=== /d'
