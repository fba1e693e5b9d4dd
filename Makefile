# SPDX-License-Identifier: Apache-2.0
#
# The commands people type; Meson and Ninja do the work. Every target installs the Debian packages it
# needs when they are missing (scripts/deps), which is the only step that wants root.

BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
MESON  := /usr/bin/python3 /usr/bin/meson
C_FILES = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h')

.PHONY: all demo demo-shell test bench install clean format lint fuzz sanitize

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) portolan

$(BUILD)/build.ninja: | deps-build
	@$(MESON) setup $(BUILD) --prefix=$(PREFIX) -Dtests=false

.PHONY: deps-build deps-test deps-demo deps-lint
deps-build deps-test deps-demo deps-lint: deps-%:
	@scripts/deps $*

demo: deps-demo all
	@PORTOLAN=$(abspath $(BUILD))/portolan demo/run

demo-shell: deps-demo all
	@PORTOLAN=$(abspath $(BUILD))/portolan demo/run --shell

# Builds everything, runs every suite and ends with "N passed, N failed, N skipped".
test: deps-test $(BUILD)/build.ninja
	@scripts/test $(BUILD)

# Measurements want a quiet machine and an optimised build of their own.
bench: deps-build
	@scripts/bench build-bench

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

# The whole suite with the sanitizers built in.
sanitize: deps-test
	@scripts/sanitize build-sanitize
