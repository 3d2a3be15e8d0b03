#!/usr/bin/env bash
# tests/deploy/check.sh haproxy|systemd PROGRAM: whether HAProxy and systemd take the files of deploy/
# as they are meant. Exit status 77, which ctest shows as skipped: that program is not installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
what=$1 program=$2
PATH=$PATH:/usr/sbin  # where Debian has haproxy
fail() { echo "deploy: $*" >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Fails where the command fails or says anything: a misspelled setting is only a warning.
silent() {
  "$@" >"$dir/said" 2>&1 || { cat "$dir/said" >&2; fail "$* fails"; }
  [ ! -s "$dir/said" ] || { cat "$dir/said" >&2; fail "$* complains"; }
}

case $what in
  haproxy)
    command -v haproxy >/dev/null || { echo "deploy: skipped, haproxy is not installed"; exit 77; }
    # Also as they are, where nobody has set a variable; but no name is looked up.
    export INLAY_REDIS=127.0.0.1:6380
    for file in deploy/haproxy/*.cfg; do silent haproxy -c -q -f "$file"; done
    # A red one: the check sees a misspelled setting.
    sed 's/hash-type consistent/hash-tpye consistent/' deploy/haproxy/haproxy.cfg >"$dir/bad.cfg"
    ! haproxy -c -q -f "$dir/bad.cfg" 2>/dev/null || fail "haproxy takes a misspelled setting"
    ;;
  systemd)
    command -v systemd-analyze >/dev/null ||
      { echo "deploy: skipped, systemd-analyze is not installed"; exit 77; }
    unit=$dir/inlay@8081.service
    sed "s|/usr/local/bin/inlay|$program|" deploy/systemd/inlay@.service >"$unit"
    grep -q "$program" "$unit" || fail "the unit starts another program"
    # What it says of this unit. The machine's other units, which it reads too, may have faults.
    complaints() {
      systemd-analyze verify --man=no "$1" >"$dir/said" 2>&1 || true
      grep -F "$(basename "$1")" "$dir/said"
    }
    ! complaints "$unit" >&2 || fail "systemd-analyze complains"
    # With the drop-in for keys that its comments show.
    mkdir "$dir/keys"
    cp "$unit" "$dir/keys/inlay@8082.service"
    sed -n 's/^#   \(\[Service\]\|SupplementaryGroups=\)/\1/p' "$unit" >>"$dir/keys/inlay@8082.service"
    grep -q '^SupplementaryGroups=' "$dir/keys/inlay@8082.service" || fail "the drop-in is gone"
    ! complaints "$dir/keys/inlay@8082.service" >&2 || fail "systemd-analyze complains about the drop-in"
    # What --sandbox needs is let through, and is not taken away again.
    for call in seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self; do
      grep -q "^SystemCallFilter=[^~]*\b$call\b" "$unit" || fail "the unit refuses $call"
      ! systemd-analyze syscall-filter @privileged | grep -qw "$call" || fail "$call is taken away"
    done
    sed 's/^NoNewPrivileges/NoNewPriviliges/' "$unit" >"$dir/inlay@1.service"
    complaints "$dir/inlay@1.service" >/dev/null || fail "systemd-analyze takes a misspelled setting"
    # In tenths: 0 is hardest, 92 a service without any of this.
    systemd-analyze security --offline=true --threshold=15 --no-pager "$unit" >"$dir/said" 2>&1 ||
      { cat "$dir/said" >&2; fail "the unit is exposed more than it was"; }
    tail -n 1 "$dir/said"
    ;;
  *) fail "no such check: $what" ;;
esac
