# Each target does the set-up that it needs; `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help run release test lint page portable fmt bench setup setup-lint setup-test
.PHONY: soak soak-core soak-rest soak-lab soak-store soak-chaos soak-crashes soak-api

# A Rust that was installed by rustup may not be on the PATH of a shell that is no login shell.
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin

TARGET := $(or $(CARGO_TARGET_DIR),target)

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: setup ## Start the platform on an empty folder and train a small model on it
	@echo "Building the program, which takes some minutes the first time." >&2
	cargo build --profile quick --locked -p era
	"$(TARGET)/quick/era" up --data "$$(mktemp -d)" --try

release: setup ## Build the program that is shipped, with its symbols beside it (target/shipped)
	scripts/release

test: setup-test ## Run every test
	scripts/test

lint: setup-lint ## Check format, lints, documentation, licences, the page and the scripts
	scripts/lint

# Each has at most an hour: what takes longer has failed, and its numbers are too large.
SOAK := timeout --kill-after 60 3600
soak-%: export PROPTEST_CASES ?= 4096
soak-%: export PROPTEST_RNG_SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
soak-%: export ERA_CHAOS_S ?= 1800
soak-%: export ERA_CRASHES ?= 1000
soak-%: export ERA_FUZZ_EXAMPLES ?= 100

# What is built, and with which tests it is then run.
define soak
	@echo "PROPTEST_RNG_SEED=$(PROPTEST_RNG_SEED)"
	cargo test --locked $(1) --no-run
	$(SOAK) cargo test --locked $(1) -- $(2)
endef

soak: ## List the tests that take long, each at most an hour
	@awk -F ':.*# ' '/^soak-[a-z]+:.*# / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

soak-core: setup-test # The core's properties, with 4,096 random cases each
	$(call soak,-p era-core --lib --tests)

soak-rest: setup-test # The same of all other crates
	$(call soak,--workspace --exclude era-core --exclude era-sim --lib --bins)

soak-lab: setup-test # The laboratory's properties, and the experiments that take minutes
	$(call soak,-p era-sim --release,--include-ignored)

soak-store: setup-test # Gigabytes and millions of rows
	$(call soak,-p era-store --release,--ignored --test-threads 1)

soak-chaos: setup-test # Half an hour of what happens to a site of two of each
	$(call soak,-p era --test platform,layers::chaos --nocapture)

soak-crashes: setup-test # A thousand servers that die
	$(call soak,-p era --test platform,crash --nocapture)

soak-api: setup-test # Made-up requests, ten times as many
	cargo build --locked -p era
	$(SOAK) scripts/fuzz-api

page: ## Build the browser page anew (web/dist, which is committed)
	scripts/page build

# What builds C for Windows is Debian's gcc-mingw-w64-x86-64.
portable: ## Check that the client builds for Windows, and client and server with their tests for macOS
	rustup target add x86_64-pc-windows-gnu aarch64-apple-darwin
	cargo check --locked --target x86_64-pc-windows-gnu -p era
	scripts/zig cargo check --locked --target aarch64-apple-darwin -p era -p era-cloud --lib --bins --tests

fmt: setup-lint ## Format the code
	cargo fmt --all

bench: setup ## Measure quotes, queues and whole traces; one JSON object each on standard output
	@cargo build --release --locked -p era
	@"$(TARGET)/release/era" bench quote --json
	@"$(TARGET)/release/era" bench queue --json
	@"$(TARGET)/release/era" bench sim --json

setup:
	@scripts/setup

setup-lint:
	@scripts/setup lint

setup-test:
	@scripts/setup test
