# SPDX-License-Identifier: Apache-2.0
#
# The commands people type; Meson and Ninja do the work. Every target installs the Debian packages it
# needs when they are missing (scripts/deps), which is the only step that wants root.

BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
MESON  := /usr/bin/python3 /usr/bin/meson
C_FILES = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h')

.PHONY: all demo demo-shell test bench bench-cluster bench-memory install clean format lint fuzz sanitize soak

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) portolan

$(BUILD)/build.ninja: | deps-build
	@$(MESON) setup $(BUILD) --prefix=$(PREFIX) -Dtests=false

.PHONY: deps-build deps-test deps-demo deps-lint deps-vm
deps-build deps-test deps-demo deps-lint deps-vm: deps-%:
	@scripts/deps $*

demo: deps-demo all
	@PORTOLAN=$(abspath $(BUILD))/portolan demo/run

demo-shell: deps-demo all
	@PORTOLAN=$(abspath $(BUILD))/portolan demo/run --shell

# Builds everything, runs every suite and ends with "N passed, N failed, N skipped".
test: deps-test $(BUILD)/build.ninja
	@tests/cluster/binaries >/dev/null || [ $$? -eq 77 ]
	@tests/unit/newer_iptables >/dev/null || [ $$? -eq 77 ]
	@scripts/test $(BUILD)

# Measurements want a quiet machine and an optimised build of their own.
bench: deps-build
	@scripts/bench build-bench

# kube-proxy's peak memory and Portolan's, below an API server with 10,000 services.
bench-memory: deps-test all
	@PORTOLAN=$(abspath $(BUILD))/portolan /usr/bin/python3 -B bench/cluster_memory.py

# kube-proxy and Portolan in all modes below one API server; about a quarter of an hour. A part of it:
# make bench-cluster ARGS='--only portolan-iptables-nft --sizes 1000,5000'
bench-cluster: deps-test
	@tests/cluster/binaries >/dev/null
	@/usr/bin/python3 -B bench/cluster.py $(ARGS)

# PREFIX may differ from the one that the build folder was set up with.
install: all
	@$(MESON) configure $(BUILD) -Dprefix=$(PREFIX)
	@ninja -C $(BUILD) portolan
	@DESTDIR="$(DESTDIR)" $(MESON) install -C $(BUILD) --no-rebuild

clean:
	rm -rf build build-*

format: deps-lint
	clang-format -i $(C_FILES)

lint: deps-lint
	@scripts/lint

# Each fuzz target for FUZZ_SECONDS seconds.
fuzz: deps-lint
	@scripts/fuzz build-fuzz

# An API server that is away for longer than watches last out, one that is out of reach for longer than its watch cache
# goes back, then random clusters under kube-proxy and Portolan, compared after each change, for so many minutes.
MINUTES ?= 30
soak: deps-test all
	@PORTOLAN=$(abspath $(BUILD))/portolan PORTOLAN_OUTAGE=90 /usr/bin/python3 -B -m pytest -q -p no:cacheprovider \
		tests/cluster/test_api_faults.py -k away
	@PORTOLAN=$(abspath $(BUILD))/portolan /usr/bin/python3 -B tests/cluster/soak.py --minutes $(MINUTES)

# The whole suite with the sanitizers built in.
sanitize: deps-test
	@scripts/sanitize build-sanitize

# What speaks to the kernel, below Debian's own kernel in an emulated machine: slow (a quarter of an hour), and no part of
# `make test`.
.PHONY: test-kernel
test-kernel: deps-vm deps-test $(BUILD)/build.ninja
	@tests/vm/suite $(BUILD)
