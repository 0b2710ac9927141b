# Everything a stranger needs: cargo fetches what the project uses, nothing else has to be installed.
.PHONY: help demo test lint docs bench large install clean

RUSTDOC_FLAGS := -D warnings --html-in-header $(CURDIR)/crates/core/katex.html

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: ## the tour: real data, from a file to generated digits
	cargo run --release --quiet -p covary-cli -- demo

test: lint ## formatting, lints, all tests, examples in the docs, docs without warnings
	cargo test --workspace --all-features
	$(MAKE) docs

lint: ## formatting and lints
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings

docs: ## the library's documentation, in target/doc
	RUSTDOCFLAGS="$(RUSTDOC_FLAGS)" cargo doc --workspace --no-deps --all-features

bench: ## fits against the physical work they contain, in one run
	cargo bench -p covary --bench foundation --bench holes

large: ## files larger than the memory they may take (writes about 10 GB; SIZE=1 for 1 GB each)
	cargo build --release -p covary-cli
	python3 bench/large.py --command target/release/covary --gigabytes $(or $(SIZE),5)

install: ## the command, into cargo's bin folder
	cargo install --path crates/cli

clean: ## what the build and the demo made
	cargo clean
	rm -rf covary-demo
