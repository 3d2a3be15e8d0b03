#!/usr/bin/env bash
# tests/shells/complete.sh bash|zsh|fish PROGRAM: whether that shell, with the script of `PROGRAM completion`, completes command
# lines as it should. Exit status 77, which ctest shows as skipped: the shell is not installed.
set -euo pipefail
shell=$1 program=$(realpath "$2") here=$(realpath "$(dirname "$0")")
command -v "$shell" >/dev/null || { echo "complete.sh: skipped, $shell is not installed"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export HOME=$dir LC_ALL=C.UTF-8
unset XDG_CONFIG_HOME XDG_DATA_HOME ZDOTDIR
mkdir "$dir/files" "$dir/files/folder" "$dir/files/folder/deeper"
touch "$dir/files/"{a.gguf,b.packed,c.txt,"my model.gguf"} "$dir/files/folder/inner.gguf"
"$program" completion "$shell" >"$dir/script"
"$shell" -n "$dir/script"

# "LINE|CANDIDATES", the candidates sorted and with a comma after each.
cat >"$dir/cases" <<'CASES'
inlay gen|generate,
inlay --ver|--version,
inlay generate --mo|--model,
inlay generate --top|--top-k,--top-p,
inlay generate -o j|json,jsonl,
inlay generate --output j|json,jsonl,
inlay generate --output=j|json,jsonl,
inlay generate --model=a|a.gguf,
inlay generate -m |a.gguf,b.packed,folder,my model.gguf,
inlay generate -m folder/|folder/deeper,folder/inner.gguf,
inlay generate -m folder/i|folder/inner.gguf,
inlay generate -f |a.gguf,b.packed,c.txt,folder,my model.gguf,
inlay generate -p |
inlay generate --store |folder,
inlay generate --sandbox -t 2 --temp 1 --on|
inlay chat -t 2 a|a.gguf,
inlay chat --chat-template c|c.txt,chatml,
inlay chat --on-full=|stop,trim,
inlay serve --sessions |folder,memory,
inlay quantize a.gguf b.gguf Q4_|Q4_0,Q4_1,Q4_K,Q4_K_M,
inlay synth bard --type Q6|Q6_K,
inlay help perp|perplexity,
inlay completion |bash,fish,zsh,
CASES
# Names of llama.cpp's have values too, which bash cuts at colons.
[ "$shell" != bash ] || cat >>"$dir/cases" <<'CASES'
inlay tokenize -hf user/repo c|c.txt,
inlay tokenize --hf-repo user/repo:Q8_0 c|c.txt,
CASES
# Every command, and every long option that --help shows.
commands=$("$program" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -v '^inlay$')
[ "$(wc -w <<<"$commands")" -ge 15 ] || { echo "complete.sh: --help shows few commands: $commands" >&2; exit 1; }
printf 'inlay |%s\n' "$(printf '%s\n' $commands help version | sort | tr '\n' ',')" >>"$dir/cases"
printf 'inlay synth |%s\n' "$("$program" configs | sed '1d; s/ .*//' | sort | tr '\n' ',')" >>"$dir/cases"
for command in $commands; do
  printf 'inlay %s --|%s\n' "$command" \
    "$("$program" "$command" --help | sed -n '/^  -/p' | sed 's/^  \(-[^ ]*\).*/\1/' | tr ',' '\n' | grep -e '^--' | sort | tr '\n' ',')"
done >>"$dir/cases"

cut -d'|' -f1 "$dir/cases" >"$dir/lines"
(cd "$dir/files" && "$shell" "$here/candidates.$shell" "$dir/script" "$dir/lines" >"$dir/answers")
# What a shell puts around a candidate: the option before "=", "/" after a folder, a backslash before a space.
sed -i 's/--[a-z-]*=\([^,]\)/\1/g; s|/,|,|g; s/\\ / /g' "$dir/answers"
# zsh keeps the folder of a file apart.
[ "$shell" != zsh ] || sed -i 's|folder/\([a-z.]*,\)|\1|g' "$dir/cases"
paste -d'|' "$dir/lines" "$dir/answers" >"$dir/completed"
diff "$dir/cases" "$dir/completed" || { echo "complete.sh: $shell completes these lines otherwise (> is what it does)" >&2; exit 1; }
echo "$shell completes $(wc -l <"$dir/lines") lines"
