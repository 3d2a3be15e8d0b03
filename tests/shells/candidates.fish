# candidates.fish SCRIPT LINES: prints for each line what fish completes its last word to, sorted, with a comma after each.
source $argv[1]
while read -l line
    for candidate in (complete -C $line | string replace -r '\t.*' '' | sort -u)
        echo -n $candidate,
    end
    echo
end <$argv[2]
