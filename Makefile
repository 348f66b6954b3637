# What there is to run. `make ci` is what must pass before a change lands.

.PHONY: quick test ci nightly bench fuzz picture torture

# A minute's worth of checks, for while one works.
quick:
	.ci/quick

test:
	go test ./...

ci:
	.ci/run

# The program against llama-server and Ollama, which are built once.
nightly:
	.ci/nightly

# Benchmarks beside other libraries, with their gates; writes bench/RESULTS.md.
bench:
	cd bench && go run . -o RESULTS.md

# Every fuzz target for a while: make fuzz TIME=1m
TIME ?= 1m
fuzz:
	.ci/fuzz $(TIME)

# The crash harness, ten thousand kills long.
torture:
	ANTIPHON_KILLS=10000 go test -count=1 -v -timeout 2h -run 'TestKills$$' ./internal/torture

# Takes the README's picture anew; wants tmux.
picture:
	.ci/picture
