#!/usr/bin/env bash
# tests/shells/manual.sh PROGRAM: whether groff takes the manual pages of `PROGRAM manual` without a warning, and whether they say what
# --help says. Exit status 77, which ctest shows as skipped: groff is not installed.
set -euo pipefail
program=$1
command -v groff >/dev/null || { echo "manual.sh: skipped, groff is not installed"; exit 77; }
fail() { echo "manual.sh: $*" >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Prints the page as plain text with long lines; fails at a warning.
shown() {
  groff -man -ww -Tascii -rLL=400n -P-c -P-b -P-o -P-u "$1" 2>"$dir/said" || return 1
  [ ! -s "$dir/said" ] || { cat "$dir/said" >&2; return 1; }
}
# Its words, one a line.
words() { tr -s ' ,[]' '\n' | sort -u; }

"$program" manual --list >"$dir/pages"
[ "$(wc -l <"$dir/pages")" -ge 15 ] || fail "there are few pages: $(cat "$dir/pages")"
commands=$("$program" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -v '^inlay$')
diff <(printf 'inlay%s.1\n' '' $(printf -- '-%s ' $commands) | sort) <(sort "$dir/pages") || fail "not every command has a page"
while read -r page; do
  command=${page#inlay} command=${command#-} command=${command%.1} command=${command#.1}
  "$program" manual $command >"$dir/$page"
  shown "$dir/$page" >"$dir/text" || fail "$page has warnings"
  grep -q "^ *${page%.1} - [a-z]" "$dir/text" || fail "$page has no line for whatis"
  # Options and what stands for their values, arguments, and each word of what they mean.
  "$program" $command --help | sed '1d; s/^Usage: inlay//; s/^Arguments:\|^Options:\|COMMAND:*$//' | words >"$dir/wanted"
  sed 's/inlay-\([a-z]*\)(1)/\1/' "$dir/text" | words >"$dir/there"
  lacking=$(comm -23 "$dir/wanted" "$dir/there")
  # A heading of --help is in capitals in a manual page.
  for word in $lacking; do grep -qix -e "${word%:}" "$dir/there" || fail "$page lacks '$word'"; done
done <"$dir/pages"
! "$program" manual sing 2>/dev/null || fail "there is a page of a command that is none"

# A red one: the check sees a request that roff does not know.
sed 's/^\.TP/.TPP/' "$dir/inlay-generate.1" >"$dir/bad.1"
! shown "$dir/bad.1" >/dev/null 2>&1 || fail "a misspelled request is no warning"
echo "$(wc -l <"$dir/pages") manual pages say what --help says"
