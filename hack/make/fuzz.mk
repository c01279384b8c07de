##@ Fuzzing

# hack/fuzz/fuzz.sh finds every fuzz test of the module and runs one after the
# other. It says how long, how much and what came out of each, and fails if one
# did. An input that fails is written to the package's testdata/fuzz; keep it, it
# is run by every `go test` from then on.
FUZZTIME ?= 2m
# Of all: only those whose package or name matches.
FUZZ ?= .

# Workers of each, of which each keeps a processor busy. Empty: one for each processor.
FUZZ_WORKERS ?=

.PHONY: fuzz
fuzz: ## Run every fuzz test for FUZZTIME (2m), one after the other; FUZZ=claims: only those that match; FUZZ_WORKERS=1.
	@hack/fuzz/fuzz.sh '$(FUZZTIME)' '$(FUZZ)' '$(FUZZ_WORKERS)'
