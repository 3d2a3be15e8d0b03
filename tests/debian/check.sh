#!/usr/bin/env bash
# tests/debian/check.sh BUILD_FOLDER SOURCE SCRATCH: makes the Debian packages of what is built, installs them into a root folder with no
# more than the packages that they depend on, runs the demo model, the library and the manual pages there, and removes them again.
# Exit status 77, which ctest shows as skipped: debhelper is not installed, or this user may not change its root folder.
set -euo pipefail
build=$1 source=$2 scratch=$3
skip() { echo "debian: skipped, $*"; exit 77; }
fail() { echo "debian: $*" >&2; exit 1; }
command -v dh >/dev/null && command -v dpkg-buildpackage >/dev/null || skip "debhelper is not installed"
if [ "$(id -u)" != 0 ]; then
  unshare -r true 2>/dev/null || skip "this user may not change its root folder"
  exec unshare -r "$0" "$@"
fi
PATH=$PATH:/usr/sbin:/sbin
rm -rf "$scratch"
mkdir -p "$scratch"
scratch=$(realpath "$scratch")
root=$scratch/root

# Compressing takes longer than all else.
DPKG_DEB_COMPRESSOR_TYPE=none "$source/scripts/debian-package" --build "$build" "$scratch/packages" >/dev/null
packages=("$scratch"/packages/*.deb)
[ ${#packages[@]} = 3 ] || fail "there are ${#packages[@]} packages: ${packages[*]}"
if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error --suppress-tags uses-no-compression-for-control-tarball,uses-no-compression-for-data-tarball \
    "${packages[@]}" || fail "lintian complains"
fi
version=$(sed -n 's/^#define INLAY_VERSION "\(.*\)"/\1/p' "$source/base/version.h")
for package in "${packages[@]}"; do
  [ "$(dpkg-deb -f "$package" Version)" = "$version" ] || fail "$package is not of version $version: see debian/changelog"
done

# The packages that these depend on, and theirs, as they are installed here: their files, and what dpkg knows of them.
needed=()
add_needed() {
  local package
  for package in "$@"; do
    [[ " ${needed[*]-} inlay libinlay0 libinlay-dev " != *" $package "* ]] || continue
    needed+=("$package")
    add_needed $(dpkg-query -W -f '${Pre-Depends}, ${Depends}\n' "$package" | names)
  done
}
# The names of a list of dependencies.
names() { tr ',' '\n' | sed 's/|.*//; s/([^)]*)//; s/:[a-z]*//; s/ //g; /^$/d'; }
add_needed $(for package in "${packages[@]}"; do dpkg-deb -f "$package" Depends; done | names)
mkdir -p "$root"/{usr/{bin,lib,lib64,share},etc,tmp,var/lib/dpkg/{info,updates,triggers},var/log}
for folder in bin lib lib64; do ln -s usr/$folder "$root/$folder"; done
for package in "${needed[@]}"; do
  dpkg-query -s "$package" >>"$root/var/lib/dpkg/status"
  echo >>"$root/var/lib/dpkg/status"
  for list in "/var/lib/dpkg/info/$package"{,:*}.list; do
    [ ! -e "$list" ] || cp "$list" "$root/var/lib/dpkg/info/"
  done
  dpkg -L "$package" | while read -r file; do
    # /lib is a link into /usr there, whatever it is here.
    [ -d "$file" ] || cp --parents -d -t "$root" "$file" 2>/dev/null || cp -d --remove-destination "$file" "$root$file"
  done
done
touch "$root/usr/bin/sh"  # some file is in this folder on every system, so that dpkg keeps the folder
listing() { (cd "$root" && find . -path ./var -prune -o -print | sort); }
listing >"$scratch/before"

dpkg --root="$root" --log="$scratch/dpkg.log" --install "${packages[@]}" >"$scratch/installed" 2>&1 ||
  { cat "$scratch/installed" >&2; fail "dpkg does not install the packages"; }
in_root() { env -i PATH="$PATH" chroot "$root" "$@"; }
in_root inlay generate -p "To be" -n 20 --seed 3 >"$scratch/answer" 2>/dev/null || fail "the demo does not run"
[ "$(wc -c <"$scratch/answer")" -gt 20 ] && grep -q "^To be" "$scratch/answer" || fail "the demo says: $(cat "$scratch/answer")"
in_root inlay licenses | grep -q '^Boost$' || fail "inlay licenses does not name what is inside"

# A program that is made with libinlay-dev runs with libinlay0.
cc -Wall -Werror -I"$root/usr/include" "$root/usr/share/doc/libinlay-dev/examples/main.c" -o "$root/tmp/embed_c" \
  -L"$root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)" -Wl,--unresolved-symbols=ignore-in-shared-libs -linlay
in_root /tmp/embed_c /usr/share/inlay/models/bard.gguf | grep -q -e '--- or ---' || fail "a program with the library does not run"
rm "$root/tmp/embed_c"

# What belongs in the packages.
for file in usr/share/man/man1/inlay-generate.1.gz usr/share/bash-completion/completions/inlay usr/share/zsh/vendor-completions/_inlay \
            usr/share/fish/vendor_completions.d/inlay.fish "usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/pkgconfig/inlay-c.pc" lib/systemd/system/inlay@.service usr/share/doc/libinlay-dev/c-api.html; do
  [ -s "$root/$file" ] || fail "$file is not installed"
done
grep -qx prefix=/usr "$root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/pkgconfig/inlay-c.pc" || fail "inlay-c.pc has another prefix"
grep -q '^ExecStart=/usr/bin/inlay serve' "$root/lib/systemd/system/inlay@.service" || fail "the unit starts another program"
for package in inlay libinlay0 libinlay-dev; do
  copyright=$root/usr/share/doc/$package/copyright
  tail -c "$(stat -c %s "$source/NOTICE")" "$copyright" | cmp - "$source/NOTICE" || fail "$package's copyright is not NOTICE's"
done

dpkg --root="$root" --log="$scratch/dpkg.log" --purge inlay libinlay-dev libinlay0 >"$scratch/removed" 2>&1 ||
  { cat "$scratch/removed" >&2; fail "dpkg does not remove the packages"; }
listing | diff "$scratch/before" - || fail "removing leaves another root folder than before"
rm -rf "$scratch"
echo "installed, ran and removed with ${#needed[@]} other packages: ${needed[*]}"
