.PHONY: verify
verify: ## Generate, then check that the tree is as committed, with no untracked file.
	@$(MAKE) generate
	go mod tidy -diff
	@changes=$$(git status --porcelain --untracked-files=all); \
	if [[ -n $$changes ]]; then \
		printf 'The tree is not what is committed. Generated files out of date? Commit these:\n%s\n' "$$changes"; \
		git --no-pager diff --stat; \
		exit 1; \
	fi
