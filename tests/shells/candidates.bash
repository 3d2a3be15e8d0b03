# candidates.bash SCRIPT LINES: prints for each line what bash completes its last word to, sorted, with a comma after each. Words end
# where readline ends them: at spaces and around "=" and ":".
source "$1"
while IFS='' read -r line; do
  spaced=${line//=/ = }
  spaced=${spaced//:/ : }
  read -ra COMP_WORDS <<<"$spaced"
  [[ $spaced != *' ' || $line == *= ]] || COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  "$(complete -p inlay | sed 's/.*-F \([^ ]*\).*/\1/')"
  ((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}" | sort -u | tr '\n' ','
  echo
done <"$2"
