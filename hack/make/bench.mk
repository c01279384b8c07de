##@ Benchmarks

.PHONY: bench-loadgen
bench-loadgen: ## Measure the load generator against a bare TCP client; takes 2 processors and a minute.
	@mkdir -p .work/bench
	@go build -o .work/bench/loadgen ./operator/cmd/loadgen
	@go build -o .work/bench/bench-loadgen ./hack/bench/loadgen
	@.work/bench/bench-loadgen -loadgen .work/bench/loadgen $(BENCH_FLAGS)

.PHONY: bench-memory
bench-memory: ## Measure the manager's peak memory with 200 experiments of 50 trials each; takes some five minutes.
	@KUBEBUILDER_ASSETS=$$(hack/cluster/envtest.sh) go test ./operator/test/integration -run '^$$' -bench ManagerMemory -benchtime 1x -timeout 30m
