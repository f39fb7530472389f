#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records what etcdctl prints in the states of a cluster that the model plays. README.md says how to run it.
set -u
etcd=${ETCD:-etcd} etcdctl=${ETCDCTL:-etcdctl} out=${1:?name the folder for the recordings}
work=$(mktemp -d)
declare -A pids=()
trap 'for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null; done; rm -rf "$work"' EXIT
mkdir -p "$out"

address() { case ${1:0:1} in a) echo 127.91.0.1 ;; b) echo 127.91.0.2 ;; c) echo 127.91.0.3 ;; d) echo 127.91.0.4 ;; esac; }
client() { echo "http://$(address "$1"):2379"; }
peer() { echo "http://$(address "$1"):2380"; }
endpoints() { local list=() name; for name in "$@"; do list+=("$(client "$name")"); done; (IFS=,; echo "${list[*]}"); }
cluster() { local list=() name; for name in "$@"; do list+=("$name=$(peer "$name")"); done; (IFS=,; echo "${list[*]}"); }

# start NAME STATE MEMBER...: one etcd; STATE is new or existing.
start() {
  local name=$1 state=$2; shift 2
  "$etcd" --name "$name" --data-dir "$work/$name" --unsafe-no-fsync --log-level error --log-outputs "$work/$name.log" \
    --listen-client-urls "$(client "$name")" --advertise-client-urls "$(client "$name")" \
    --listen-peer-urls "$(peer "$name")" --initial-advertise-peer-urls "$(peer "$name")" \
    --initial-cluster "$(cluster "$@")" --initial-cluster-state "$state" >/dev/null 2>&1 &
  pids[$name]=$!
}
stop() { kill -9 "${pids[$1]}" 2>/dev/null; wait "${pids[$1]}" 2>/dev/null; unset "pids[$1]"; }
wipe() { local name; for name in "${!pids[@]}"; do stop "$name"; done; rm -rf "${work:?}"/*; }

# add ARG...: adds a member. Its id is made from the address and the second, and an id that was removed cannot come again.
add() { sleep 2; quietly member add "$@" >/dev/null || echo "cannot add $*" >&2; }
quietly() { ETCDCTL_ENDPOINTS=$EPS "$etcdctl" "$@" 2>/dev/null; }
healthy() { local i; for i in $(seq 100); do ETCDCTL_ENDPOINTS=$(endpoints "$1") "$etcdctl" get x --consistency="${2:-l}" >/dev/null 2>&1 && return; sleep 0.2; done; echo "$1 does not answer" >&2; }
id() { quietly member list | awk -F', ' -v n="$1" -v p="$(peer "$1")" '$3 == n || ($3 == "" && $4 == p) {print $1}'; }
leader() { local name; for name in "$@"; do
  ETCDCTL_ENDPOINTS=$(client "$name") "$etcdctl" endpoint status 2>/dev/null | awk -F', ' '$0 ~ /, true, false, / {exit 0} {exit 1}' && echo "$name"; done; }
follower() { local l name; l=$(leader "$@"); for name in "$@"; do [ "$name" != "$l" ] && echo "$name" && return; done; }
# three A B C: a new cluster of three whose leader is A; longer than etcd's health interval of five seconds.
three() {
  wipe; EPS=$(endpoints a b c)
  for name in a b c; do start "$name" new a b c; done
  for name in a b c; do healthy "$name"; done
  lead a
  sleep 6
}
lead() { local l; l=$(leader a b c); [ "$l" = "$1" ] || ETCDCTL_ENDPOINTS=$(endpoints "$l") "$etcdctl" move-leader "$(id "$1")" >/dev/null 2>&1; }

# state NAME: the recording that the next commands go to.
state() { file=$out/$1.txt; : >"$file"; }
# run ARG...: one etcdctl, in the container's way: endpoints from the environment.
run() {
  local shown=("$@") i
  ETCDCTL_ENDPOINTS=$EPS "$etcdctl" "$@" >"$work/stdout" 2>"$work/stderr"
  local code=$?
  {
    echo "## etcdctl ${shown[*]}"
    echo "endpoints: $EPS"
    echo "exit: $code"
    # Of the usage, the first two lines say which command's it is.
    if head -1 "$work/stdout" | grep -q '^NAME:'; then sed -i '3,$d' "$work/stdout"; fi
    sed 's/^/stdout: /' "$work/stdout"
    sed 's/^/stderr: /' "$work/stderr"
    echo
  } >>"$file"
}
read_both() { run member list -w json; run endpoint status --cluster -w json; }

three
state healthy; read_both
run member list
run member list --write-out=json --command-timeout=10s
run move-leader "$(id a)"
run move-leader "$(id b)"
run move-leader "$(id a)"
run move-leader 1234
run member remove 1234
EPS=$(endpoints b c); run move-leader "$(id b)"
EPS=$(endpoints a b c)
state usage
run foo; run member foo; run member remove; run member remove xyz; run member list --nope; run move-leader; run move-leader xyz
run member list --command-timeout=soon; run member list -w yaml; run member; run endpoint

state learner-not-started
add d --learner --peer-urls="$(peer d)"
read_both
run move-leader "$(id d)"
run member remove "$(id d)"
state learner
add d --learner --peer-urls="$(peer d)"
start d existing a b c d; healthy d s; sleep 1
read_both
run move-leader "$(id d)"
EPS=$(endpoints d); run member list -w json; run endpoint status --cluster -w json; run move-leader "$(EPS=$(endpoints a); id b)"
EPS=$(endpoints a b c d); run member list -w json
EPS=$(endpoints a b c); run member remove "$(id d)" -w json
run member list -w json

three
state one-down; c=$(id c); b=$(id b); stop c; sleep 1
read_both
run member remove "$b"
run move-leader "$c" --command-timeout=3s
EPS=$(endpoints c a b); run move-leader "$b" --command-timeout=3s
EPS=$(endpoints a b c); run member remove "$c" -w json
run member remove "$c"
read_both
run move-leader "$b" --command-timeout=3s

three
state just-back; b=$(id b); c=$(id c); stop c; sleep 1; start c existing a b c; healthy c
run member remove "$b"
sleep 7
run member remove "$b" -w json
sleep 6
run member remove "$c" -w json
sleep 6
run member remove "$(id a)" -w json

three
state leader-removed; a=$(id a); run member remove "$a" -w json; healthy b; run member list -w json

three
state voter-not-started; EPS=$(endpoints a b c); b=$(id b)
add d --peer-urls="$(peer d)"
d=$(id d)
run member list -w json
run move-leader "$d" --command-timeout=3s
run member remove "$b"
run member remove "$d"
three
b=$(id b); c=$(id c); quietly member remove "$c" >/dev/null; sleep 6; add d --peer-urls="$(peer d)"
state not-enough-started
run member remove "$b"

three
state no-quorum; a=$(id a); b=$(id b); stop b; stop c; sleep 3
run member list -w json --command-timeout=3s
run endpoint status --cluster -w json --command-timeout=3s
run member remove "$b" --command-timeout=3s
EPS=$(endpoints a); run move-leader "$b" --command-timeout=3s
run member list -w json --command-timeout=3s
EPS=$(endpoints a b c); run move-leader "$b" --command-timeout=3s
run member list -w json --command-timeout=15s
run member remove "$b" --command-timeout=15s
stop a
state nothing-runs
run member list -w json --command-timeout=3s
run move-leader "$b" --command-timeout=3s
