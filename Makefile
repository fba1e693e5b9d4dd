# SPDX-License-Identifier: Apache-2.0
#
# The commands people type; Meson and Ninja do the work. Every target installs the Debian packages it
# needs when they are missing (scripts/deps), which is the only step that wants root.

BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
MESON  := /usr/bin/python3 /usr/bin/meson
C_FILES = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h')

.PHONY: all demo demo-shell test bench bench-ab bench-cluster bench-memory bench-page bench-repair bench-traffic e2e install clean format lint load fuzz sanitize soak

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
.PHONY: release
release: | deps-build
	@[ -f build-bench/build.ninja ] || $(MESON) setup build-bench --buildtype=release -Doptimization=2 -Dtests=false >/dev/null
	@ninja -C build-bench -j $(JOBS) portolan >/dev/null

bench: deps-demo
	@scripts/bench build-bench
	@$(MAKE) --no-print-directory bench-page

# kube-proxy's peak memory and Portolan's, below an API server with 10,000 services.
bench-memory: deps-test all
	@PORTOLAN=$(abspath $(BUILD))/portolan /usr/bin/python3 -B bench/cluster_memory.py

# Is it slower or larger than OLD, another binary? About five minutes, on a quiet machine; ARGS=--help.
NEW ?= build-bench/portolan
bench-ab: deps-test release
	@/usr/bin/python3 -B bench/ab.py $(OLD) $(NEW) $(ARGS)

# What --service-metrics costs packets, and the daemon; about three minutes.
bench-traffic: deps-test all
	@ninja -C $(BUILD) bench/bench-traffic
	@PORTOLAN=$(abspath $(BUILD))/portolan /usr/bin/python3 -B bench/traffic.py $(BUILD)/bench/bench-traffic $(ARGS)

# kube-proxy and Portolan in all modes below one API server; about a quarter of an hour. A part of it:
# make bench-cluster ARGS='--only portolan-iptables-nft --sizes 1000,5000'
bench-cluster: deps-test
	@tests/cluster/binaries >/dev/null
	@/usr/bin/python3 -B bench/cluster.py $(ARGS)

# What an open status page costs; about three minutes. The figures are written into docs/performance.md.
bench-page: deps-demo release
	@/usr/bin/python3 -B bench/page.py $(ARGS)

# How long damage by foreign hands is felt; about ten minutes. The figures are written into docs/performance.md.
bench-repair: deps-test release
	@ninja -C build-bench -j $(JOBS) bench/bench-kernel-price >/dev/null
	@nice -n -5 /usr/bin/python3 -B bench/repair.py $(ARGS)

# Kubernetes' own e2e specs of Services, in a lab that is no part of this repository; both modes side by side take half an
# hour. E2E_LAB is the lab's folder, E2E_DIR where it writes, KUBE_VERSION (1.37.1) another Kubernetes than the lab's own.
# docs/conformance.md holds the last full run.
MODE ?= both
e2e: deps-build
	@[ -f build-e2e/build.ninja ] || $(MESON) setup build-e2e --buildtype=release -Doptimization=2 -Dtests=false >/dev/null
	@ninja -C build-e2e -j $(JOBS) portolan >/dev/null
	@scripts/e2e --portolan build-e2e/portolan --mode $(MODE) $(if $(E2E_LAB),--lab $(E2E_LAB)) $(if $(E2E_DIR),--work $(E2E_DIR)) $(ARGS)

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

# 1,000 scrapes and 1,000 health requests a second while 100 Services a second change, and how soon one instance follows another, on a
# quiet machine: with all bars. The figures are written into docs/performance.md.
SECONDS ?= 30
load: deps-test $(BUILD)/build.ninja
	@$(MESON) configure $(BUILD) -Dtests=true && ninja -C $(BUILD) -j $(JOBS) portolan tests/load/load-clients >/dev/null
	@PORTOLAN=$(abspath $(BUILD))/portolan PORTOLAN_QUIET=1 PORTOLAN_LOAD_SECONDS=$(SECONDS) /usr/bin/python3 -B -m pytest -q -s \
		-p no:cacheprovider tests/load/test_load.py tests/load/test_descriptors.py
	@PORTOLAN=$(abspath $(BUILD))/portolan PORTOLAN_QUIET=1 /usr/bin/python3 -B -m pytest -q -p no:cacheprovider tests/faults/test_instances.py

# Random changes, faults and flushes at 2,000 services, in both modes, for a third of the time each. Then an API server that is
# away for longer than watches last out, one that is out of reach for longer than its watch cache goes back, and random clusters
# under kube-proxy and Portolan, compared after each change, for the rest of MINUTES.
MINUTES ?= 30
soak: deps-test all
	@for mode in iptables nftables; do \
		PORTOLAN=$(abspath $(BUILD))/portolan /usr/bin/python3 -B tests/load/soak.py --seconds $$(( $(MINUTES) * 20 )) --mode $$mode \
		|| exit 1; done
	@PORTOLAN=$(abspath $(BUILD))/portolan PORTOLAN_OUTAGE=90 /usr/bin/python3 -B -m pytest -q -p no:cacheprovider \
		tests/cluster/test_api_faults.py -k away
	@PORTOLAN=$(abspath $(BUILD))/portolan /usr/bin/python3 -B tests/cluster/soak.py --minutes $$(( $(MINUTES) / 3 ))

# The whole suite with the sanitizers built in; what uses threads with the one for threads.
sanitize: deps-test
	@scripts/sanitize build-sanitize

.PHONY: sanitize-thread
sanitize-thread: deps-test
	@scripts/sanitize build-thread thread --suite unit --suite traffic --suite faults

# What speaks to the kernel, below Debian's own kernel in an emulated machine: slow, and no part of `make test`. A part of
# it: make test-kernel ARGS=units (or golden, nftables, traffic)
.PHONY: test-kernel
test-kernel: deps-vm deps-test $(BUILD)/build.ninja
	@tests/vm/suite $(BUILD) $(ARGS)
