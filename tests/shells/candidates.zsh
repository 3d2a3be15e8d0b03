# candidates.zsh SCRIPT LINES: prints for each line what zsh completes its last word to, sorted, with a comma after each.
#
# Completion works only while a line is edited: an inner zsh on a terminal of its own gets each line as keys. There compadd, which
# takes all candidates, writes them to a file too.
zmodload zsh/zpty
script=$1 lines=$2 dir=$(mktemp -d)
trap 'rm -rf $dir' EXIT
cat >$dir/inner <<INNER
PROMPT= RPROMPT= LISTMAX=10000
unsetopt beep
stty -echo
autoload -Uz compinit
compinit -u -D
source ${(q)script}
compadd() {
  local -a taken
  builtin compadd "\$@"
  local status_of_it=\$?
  # Those with -O, -A and -D only look at candidates.
  if [[ \${@[1,(i)(-|--)]} != *-(O|A|D)* ]]; then
    builtin compadd -A taken "\$@"
    print -rl -- \$taken >>$dir/taken
  fi
  return \$status_of_it
}
finish() { zle kill-buffer; touch $dir/done }
zle -N finish
bindkey '^G' finish
bindkey '^I' list-choices
touch $dir/done
INNER
zpty inner zsh -f -i
zpty -w inner "source $dir/inner"
answer() {
  until [[ -e $dir/done ]]; do
    zpty -t inner || { print -u2 "candidates.zsh: the inner zsh ended"; exit 1 }
    zpty -r -t inner output || sleep 0.01  # a terminal whose output nobody reads would stop it
  done
  rm $dir/done
}
answer
while IFS= read -r line; do
  : >$dir/taken
  zpty -w -n inner "$line"$'\t\a'
  answer
  sort -u $dir/taken | while IFS= read -r candidate; do [[ -z $candidate ]] || print -rn -- "$candidate,"; done
  print
done <$lines
zpty -d inner
