##@ Benchmarks

.PHONY: bench-loadgen
bench-loadgen: ## Measure the load generator against a bare TCP client; takes 2 processors and a minute.
	@mkdir -p .work/bench
	@go build -o .work/bench/loadgen ./operator/cmd/loadgen
	@go build -o .work/bench/bench-loadgen ./hack/bench/loadgen
	@.work/bench/bench-loadgen -loadgen .work/bench/loadgen $(BENCH_FLAGS)

.PHONY: bench-faults
bench-faults: ## Measure how punctual kills and pauses are on the cluster of make deploy, beside pods deleted through the API; takes some four minutes.
	@mkdir -p .work/bench
	@go build -o .work/bench/bench-faults ./hack/bench/faults
	@.work/bench/bench-faults $(BENCH_FLAGS)

.PHONY: bench-idle
bench-idle: ## Measure memory and processor of managers that have nothing to do, on the cluster of make deploy; takes half a minute.
	@go test ./operator/test/install -count=1 -v -run '^TestIdle$$' | sed -n 's/^ *[a-z_]*_test\.go:[0-9]*: //p'

.PHONY: bench-memory
bench-memory: ## Measure the manager's peak memory with 200 experiments of 50 trials each; takes some five minutes.
	@KUBEBUILDER_ASSETS=$$(hack/cluster/envtest.sh) go test ./operator/test/integration -run '^$$' -bench ManagerMemory -benchtime 1x -timeout 30m

# Each has an API server of its own: the manager of the last would work at trials of those before.
.PHONY: bench-scale
bench-scale: ## By a real manager and API server, with played nodes and agents: 200 experiments in 20 namespaces on 1,000 nodes, one pass of admission over 200 trials, and one trial of up to 500 replicas and 500 clients. ONLY=OneTrial, Admission or Scale: this alone. Takes some five minutes.
	@KUBEBUILDER_ASSETS=$$(hack/cluster/envtest.sh) && export KUBEBUILDER_ASSETS && status=0 && for b in $(or $(ONLY),Admission Scale OneTrial); do \
		go test ./operator/test/integration -run '^$$' -bench "^Benchmark$$b$$" -benchtime 1x -timeout 60m -v || status=1; done; exit $$status

# Of what go test prints, the rows of tables and whatever is wrong.
tables := sed -u '/^ *=== \|^ *--- PASS/d; s/^ *[a-z_]*_test\.go:[0-9]*: //'

.PHONY: bench-netem
bench-netem: ## Measure how exact the shapers are, what they do to TCP and what they cost, in a virtual machine, and a mesh of 100 namespaces here, as root; takes some minutes.
	@hack/vm/test.sh -v ./operator/internal/node/netem/accuracy | $(tables)
	@ASSAY_MESH=100 go test ./operator/internal/node/netem/probe -count=1 -v -run '^TestAMeshIsAppliedAndProven$$' | $(tables)

.PHONY: bench-parsers
bench-parsers: ## Measure how fast reports of clients are read, and what is live in memory at 10 and at 100 MB, which must be the same; takes a minute.
	@ASSAY_BENCH_PARSERS=1 go test ./operator/internal/results/parsers -run '^TestLiveMemoryIsIndependentOfTheSize$$' -bench '^BenchmarkFormats$$' -count=1 -v | $(tables)

.PHONY: test-benchmarks
test-benchmarks: ## Run benchmark programs of Debian, Go and Maven for 2 s at least against servers on this machine, and compare what Assay reads with what they say; as root, with the network.
	@hack/bench/programs/run.sh .work/bench/programs
	@BENCHMARK_OUTPUTS=$(CURDIR)/.work/bench/programs go test -tags benchmarks ./operator/internal/cli/parse -run '^TestRealPrograms$$' -count=1 -v

.PHONY: bench-trial
bench-trial: ## Measure processor-seconds and wall time of a trial on the cluster of make deploy, beside what Kubernetes itself needs; takes some three minutes.
	@mkdir -p .work/bench
	@go build -o .work/bench/bench-trial ./hack/bench/trial
	@.work/bench/bench-trial $(BENCH_FLAGS)

.PHONY: bench-trial-local
bench-trial-local: local-programs ## The same on this machine without a cluster, as root; takes some two minutes.
	@mkdir -p .work/bench
	@go build -o .work/bench/bench-trial ./hack/bench/trial
	@.work/bench/bench-trial -local .work/bin/kubectl-assay $(BENCH_FLAGS)

.PHONY: bench-measurements
bench-measurements: local-programs ## Run three trials on this machine without a cluster, as root, and print their measurements beside other sources: they must agree within 2%; takes some three minutes.
	@mkdir -p .work/bench
	@CGO_ENABLED=0 go build -o .work/bench/pod ./hack/bench/measurements/pod
	@hack/images/own.sh --only-build lab/measured .work/bench/pod >/dev/null
	@ln -f .work/own/lab/measured/lab-measured.tar .work/images/lab-measured.tar
	@go build -o .work/bench/bench-measurements ./hack/bench/measurements
	@.work/bench/bench-measurements .work/bin/kubectl-assay

.PHONY: bench-marks
bench-marks: local-programs ## Measure, as root and without a cluster, how long it takes from a line that a script writes until a signal on another machine; takes some two minutes.
	@ASSAY_LOCAL_PROGRAM=$(CURDIR)/.work/bin/kubectl-assay ASSAY_LOCAL_IMAGES=$(CURDIR)/.work/images ASSAY_LOCAL_MARKS=$(or $(TRIALS),4) \
		go test ./operator/test/local -run '^TestFromLineToSignal$$' -count=1 -v -timeout 20m | $(tables)

.PHONY: bench-local-kind
bench-local-kind: local-programs ## Run failure-fp at smoke size ROUNDS times (10) without a cluster and on that of make deploy, alternating, as root: the difference of each metric with its interval; some two minutes a round.
	@hack/bench/local-kind.sh

.PHONY: bench-statistics
bench-statistics: ## Measure how often verdicts and intervals are wrong in simulated worlds, or in ONLY="trends capacity", beside what a review measured; takes some minutes.
	@go run ./operator/test/statistics $(BENCH_FLAGS) $(ONLY)

.PHONY: bench-demo
bench-demo: ## Run make demo RUNS times (5) beside BUSY programs (1) that want a processor each: exit code, minutes and verdicts of each run; half an hour.
	@hack/bench/demo.sh

.PHONY: evidence
evidence: ## Run the smoke profiles of FILES="hotstuff/rpc basil/reads" on the cluster of make deploy, and keep bundles and reports under experiments/.
	@hack/evidence.sh $(FILES)

.PHONY: evidence-judge
evidence-judge: ## Judge the committed bundles anew, each by its file in experiments/ as it is today, and make their reports again; BUNDLES="experiments/basil/evidence/reads.tar.zst": these alone. No cluster.
	@hack/evidence-judge.sh $(BUNDLES)

.PHONY: evidence-changes
evidence-changes: ## Print which verdicts of the committed bundles are others than at the commit SINCE (dc1d792), and why. No cluster; it needs the history of the repository.
	@go run ./operator/test/evidence/changes $(or $(SINCE),dc1d792)

.PHONY: bench-ssh
bench-ssh: ## Compare SSH of machines with OpenSSH's sshd, by OpenSSH's client, in turn: connections, commands, terminals, sftp, a forwarded port, 100 sessions at once, 1 GiB by scp; wants root and openssh-server, takes some four minutes.
	@go test ./operator/internal/node/machine -run '^$$' -bench . -benchtime $(or $(TIMES),7)x -timeout 30m $(BENCH_FLAGS)

.PHONY: bench-setup
bench-setup: local-programs ## Set machines up once, by a build of PostgreSQL of AT_LEAST seconds (300), and run TRIALS (6) from it, as root and without a cluster: how long each took beyond its script; FRESH=1: set up anew. Takes nine minutes the first time.
	@hack/bench/setup.sh | $(tables)
