# Each target does the set-up that it needs; `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help run test soak lint fmt bench page portable setup setup-lint setup-test

# A Rust that was installed by rustup may not be on the PATH of a shell that is no login shell.
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: setup ## Start the platform on an empty folder and train a small model on it
	cargo build --release --locked -p era
	"$${CARGO_TARGET_DIR:-target}/release/era" up --data "$$(mktemp -d)" --try

# The same random cases on every machine; `make soak` draws new ones.
test: export PROPTEST_RNG_SEED ?= 1

# Python and the page are tried with the program that the tests are built with, and come before
# them, so that the summary of all others is what is seen last. Python's tests wait more than they
# work, so the others are built meanwhile, and made-up requests sent; and for the same reason there
# is one more of the others at a time than there are cores. One that fails does not hide what else
# does.
test: export ERA_BINARY ?= $(abspath $(or $(CARGO_TARGET_DIR),target))/debug/era
test: setup-test ## Run every test
	cargo test --workspace --locked --doc
	@if cargo nextest --version >/dev/null 2>&1; then \
		set -- cargo nextest run --workspace --locked; \
	else \
		set -- cargo test --workspace --locked --lib --bins --tests; \
	fi; \
	echo "$$*"; "$$@" --no-run --test client \
		&& { scripts/test-python & python=$$!; rest=0; \
			{ "$$@" --no-run && scripts/fuzz-api; } || rest=$$?; \
			wait $$python && [ $$rest = 0 ]; } \
		&& scripts/page test \
		&& NEXTEST_TEST_THREADS=$$(( $$(getconf _NPROCESSORS_ONLN) + 1 )) "$$@" --no-fail-fast

soak: export PROPTEST_CASES ?= 4096
soak: export PROPTEST_RNG_SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
soak: export ERA_CRASHES ?= 1000
soak: export ERA_CHAOS_S ?= 1800
soak: export ERA_FUZZ_EXAMPLES ?= 200
soak: ## Run every test with far more random cases and crashes, and those that take long
	@echo "PROPTEST_RNG_SEED=$(PROPTEST_RNG_SEED)"
	@$(MAKE) --no-print-directory test PROPTEST_RNG_SEED=$(PROPTEST_RNG_SEED)
	cargo test --workspace --locked --lib --bins --tests -- --ignored --test-threads 1

# The client is checked for Windows where `make portable` has been run once.
lint: setup-lint ## Check format, lints, documentation, licences and scripts
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	@if cargo deny --version >/dev/null 2>&1; then \
		set -- cargo deny --locked check licenses bans sources; \
	else \
		set -- cargo test --workspace --locked --quiet --test licences; \
	fi; \
	echo "$$*"; "$$@"
	scripts/page check
	@if rustup target list --installed 2>/dev/null | grep -q x86_64-pc-windows-gnu \
		&& command -v x86_64-w64-mingw32-gcc >/dev/null 2>&1; then \
		set -- cargo check --locked --target x86_64-pc-windows-gnu -p era; echo "$$*"; "$$@"; \
	fi
	@if command -v shellcheck >/dev/null 2>&1; then \
		set -- shellcheck scripts/setup scripts/test-python scripts/fuzz-api scripts/page .ci/run; echo "$$*"; "$$@"; \
	fi

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
	@cargo run --release --locked --quiet -p era -- bench quote --json
	@cargo run --release --locked --quiet -p era -- bench queue --json
	@cargo run --release --locked --quiet -p era -- bench sim --json

setup:
	@scripts/setup

setup-lint:
	@scripts/setup lint

setup-test:
	@scripts/setup test
