# What there is to run. `make whole` is what must pass before a change lands.

.PHONY: quick lint test whole ci nightly bench fuzz picture torture

# A minute's worth of checks, for while one works.
quick:
	.ci/quick

# The linters of .golangci.yml.
lint:
	.ci/lint

test:
	go test ./...

whole ci:
	.ci/run

# What takes too long for `make whole`: model servers, which are built once, builds for other systems,
# Temporal, ten thousand kills, long fuzzing, gates of the benchmarks.
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

# Draws the pictures of docs/ anew: terminals, which want tmux, and the packages.
picture:
	go test -count=1 -run TestPictures ./cmd/antiphon -draw
	go run ./internal/packagemap
