# For the scripts beside it, which source this before they do anything:
#
#     . "$(dirname "$0")/usage.sh" 'OPTION...' "$@"
#
# -h and --help print the comment at the head of the script. An option that is none of those named,
# which spaces separate, ends the script with status 2. '...' among them leaves the arguments after
# the first that is no option to the script; '*' leaves it all of them, unless help comes first.

# The lines after the first one up to the end of the comment.
usage_of_script() {
  local line
  {
    read -r line
    while IFS= read -r line && [[ $line == '#'* ]]; do
      line=${line#'#'}
      printf '%s\n' "${line# }"
    done
  } <"$0"
}

check_options() {
  local known=" $1 " argument
  shift
  for argument; do
    case $argument in
      -h | --help)
        usage_of_script
        exit 0
        ;;
      -*)
        [[ $known != *' * '* ]] || return 0
        [[ $known != *" $argument "* ]] || continue
        { echo "${0##*/}: unknown option $argument"; echo "usage: $(usage_of_script)"; } >&2
        exit 2
        ;;
      *) [[ $known != *' * '* && $known != *' ... '* ]] || return 0 ;;
    esac
  done
}

check_options "$@"
