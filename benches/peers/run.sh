#!/usr/bin/env bash
# Installs the peers at pinned versions below target/peers, builds pgwake for release, and measures them in turns
# on one throwaway PostgreSQL server. `run.sh --help` lists the options; the README beside it explains the figures.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${PEERS_CACHE:-$root/target/peers}
target=${CARGO_TARGET_DIR:-$root/target}

need() {
    command -v "$1" >/dev/null || {
        echo "run.sh: $1 is not found, and $2" >&2
        exit 1
    }
}
need cargo "pgwake and the graphile_worker crate are built with it"
need npm "graphile-worker and pg-boss are installed with it"
need python3 "it runs the benchmark and pgqueuer (3.11 or newer)"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "run.sh: python3 has to be 3.11 or newer" >&2
    exit 1
}

pgwake=
words=()
while (($#)); do
    case $1 in
    --pgwake)
        pgwake=${2:?run.sh: --pgwake takes the path of a binary}
        shift
        ;;
    --pgwake=*) pgwake=${1#*=} ;;
    -h | --help) exec python3 "$here/options.py" --help ;;
    *) words+=("$1") ;;
    esac
    shift
done
if [[ -z $pgwake ]]; then
    echo "building pgwake" >&2
    cargo build --release --quiet --locked --manifest-path "$root/Cargo.toml" --bin pgwake --target-dir "$target"
    pgwake=$target/release/pgwake
fi
[[ -x $pgwake ]] || {
    echo "run.sh: $pgwake is no program" >&2
    exit 1
}
pgwake=$(realpath "$pgwake")

mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

echo "installing the peers below $cache" >&2
cargo build --release --quiet --locked --manifest-path "$here/graphile_worker/Cargo.toml" --target-dir "$cache/cargo"

mkdir -p "$cache/node"
cp "$here"/node/*.mjs "$here"/node/package.json "$here"/node/package-lock.json "$here"/node/.npmrc "$cache/node/"
if ! cmp -s "$here/node/package-lock.json" "$cache/node/installed"; then
    # The packages want a newer Node.js than the npm at hand may run on: it comes with them.
    (cd "$cache/node" && npm ci --silent)
    cp "$here/node/package-lock.json" "$cache/node/installed"
fi
node=${PEERS_NODE:-}
for candidate in "$cache"/node/node_modules/node-linux-*/bin/node; do
    if [[ -z $node && -x $candidate ]]; then node=$candidate; fi
done
node=${node:-$(command -v node)}
"$node" -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 18) ? 0 : 1)' || {
    echo "run.sh: $node is older than Node.js 22.18; name a newer one in PEERS_NODE" >&2
    exit 1
}

if ! cmp -s "$here/python/requirements.txt" "$cache/python/installed"; then
    python3 -m venv --clear "$cache/python"
    "$cache/python/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$here/python/requirements.txt"
    cp "$here/python/requirements.txt" "$cache/python/installed"
fi

export PEERS_CACHE=$cache PEERS_NODE=$node PEERS_PGWAKE=$pgwake PYTHONDONTWRITEBYTECODE=1
exec "$cache/python/bin/python" "$here/measure.py" ${words[@]+"${words[@]}"}
