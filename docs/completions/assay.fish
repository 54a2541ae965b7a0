# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_assay_global_optspecs
    string join \n artifacts= json v/verbose q/quiet color= h/help V/version
end

function __fish_assay_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_assay_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_assay_using_subcommand
    set -l cmd (__fish_assay_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c assay -n "__fish_assay_needs_command" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_needs_command" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_needs_command" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_needs_command" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_needs_command" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_needs_command" -s V -l version -d 'Print version'
complete -c assay -n "__fish_assay_needs_command" -f -a "init" -d 'Write a commented experiment to start from'
complete -c assay -n "__fish_assay_needs_command" -f -a "import" -d 'Make an experiment and an inventory from a file of another tool'
complete -c assay -n "__fish_assay_needs_command" -f -a "check" -d 'Check an experiment and its inventory: all errors at once'
complete -c assay -n "__fish_assay_needs_command" -f -a "plan" -d 'Print what a run would do, with estimates of time and disk'
complete -c assay -n "__fish_assay_needs_command" -f -a "run" -d 'Run an experiment: load, snapshot, rounds, report'
complete -c assay -n "__fish_assay_needs_command" -f -a "resume" -d 'Finish a run that was stopped, killed or crashed'
complete -c assay -n "__fish_assay_needs_command" -f -a "status" -d 'Say how far a run is, also while it goes on; of an experiment, how its clusters are'
complete -c assay -n "__fish_assay_needs_command" -f -a "deploy" -d 'Put an experiment\'s clusters on their hosts, without starting them'
complete -c assay -n "__fish_assay_needs_command" -f -a "start" -d 'Start a deployed cluster, and set and check its tunables'
complete -c assay -n "__fish_assay_needs_command" -f -a "stop" -d 'Stop clusters'
complete -c assay -n "__fish_assay_needs_command" -f -a "destroy" -d 'Remove clusters from their hosts: all that carries their marker'
complete -c assay -n "__fish_assay_needs_command" -f -a "packs" -d 'List, show and check the packs of systems'
complete -c assay -n "__fish_assay_needs_command" -f -a "list" -d 'List all runs'
complete -c assay -n "__fish_assay_needs_command" -f -a "show" -d 'Print the results of a run'
complete -c assay -n "__fish_assay_needs_command" -f -a "report" -d 'Make the report of a run in other formats or places'
complete -c assay -n "__fish_assay_needs_command" -f -a "verify" -d 'Check every file of a run against its checksums'
complete -c assay -n "__fish_assay_needs_command" -f -a "hosts" -d 'Look at hosts, mend them, and work on many at once'
complete -c assay -n "__fish_assay_needs_command" -f -a "lab" -d 'Make hosts on this machine, for trials and tests'
complete -c assay -n "__fish_assay_needs_command" -f -a "schema" -d 'Print the JSON Schema of experiments or inventories'
complete -c assay -n "__fish_assay_needs_command" -f -a "completions" -d 'Print the completions of a shell'
complete -c assay -n "__fish_assay_needs_command" -f -a "man" -d 'Print the man page'
complete -c assay -n "__fish_assay_needs_command" -f -a "agent" -d 'Do work on this host for another assay process'
complete -c assay -n "__fish_assay_using_subcommand init" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand init" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand init" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand init" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand init" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand import; and not __fish_seen_subcommand_from tiup" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand import; and not __fish_seen_subcommand_from tiup" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand import; and not __fish_seen_subcommand_from tiup" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand import; and not __fish_seen_subcommand_from tiup" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand import; and not __fish_seen_subcommand_from tiup" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand import; and not __fish_seen_subcommand_from tiup" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand import; and not __fish_seen_subcommand_from tiup" -f -a "tiup" -d 'Turn a topology.yaml or meta.yaml of TiUP into an experiment and an inventory'
complete -c assay -n "__fish_assay_using_subcommand import; and __fish_seen_subcommand_from tiup" -l name -d 'The experiment\'s name (default: the file\'s, or the cluster\'s)' -r
complete -c assay -n "__fish_assay_using_subcommand import; and __fish_seen_subcommand_from tiup" -l version -d 'The version of TiDB, which a topology.yaml does not say' -r
complete -c assay -n "__fish_assay_using_subcommand import; and __fish_seen_subcommand_from tiup" -s o -l output -d 'The experiment to write; the inventory lies beside it (default: NAME.yaml and NAME-hosts.yaml)' -r -F
complete -c assay -n "__fish_assay_using_subcommand import; and __fish_seen_subcommand_from tiup" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand import; and __fish_seen_subcommand_from tiup" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand import; and __fish_seen_subcommand_from tiup" -l no-labels -d 'Take several TiKV on a host without labels, as `tiup cluster deploy` does with the same option'
complete -c assay -n "__fish_assay_using_subcommand import; and __fish_seen_subcommand_from tiup" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand import; and __fish_seen_subcommand_from tiup" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand import; and __fish_seen_subcommand_from tiup" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand import; and __fish_seen_subcommand_from tiup" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand check" -s i -l inventory -d 'Inventory to use instead of the one that the experiment names' -r -F
complete -c assay -n "__fish_assay_using_subcommand check" -l set -d 'Override a value, such as `rounds.duration=30s`; may be given several times' -r
complete -c assay -n "__fish_assay_using_subcommand check" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand check" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand check" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand check" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand check" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand plan" -s i -l inventory -d 'Inventory to use instead of the one that the experiment names' -r -F
complete -c assay -n "__fish_assay_using_subcommand plan" -l set -d 'Override a value, such as `rounds.duration=30s`; may be given several times' -r
complete -c assay -n "__fish_assay_using_subcommand plan" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand plan" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand plan" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand plan" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand plan" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand plan" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand run" -s i -l inventory -d 'Inventory to use instead of the one that the experiment names' -r -F
complete -c assay -n "__fish_assay_using_subcommand run" -l set -d 'Override a value, such as `rounds.duration=30s`; may be given several times' -r
complete -c assay -n "__fish_assay_using_subcommand run" -l patience -d 'How long a host that is lost during the run is tried before it is given up' -r
complete -c assay -n "__fish_assay_using_subcommand run" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand run" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand run" -l ignore-preflight -d 'Begin although pre-flight fails; what it found is recorded with the run'
complete -c assay -n "__fish_assay_using_subcommand run" -l break-lease -d 'Take hosts from a run that seems dead: that has not been heard of for half a minute'
complete -c assay -n "__fish_assay_using_subcommand run" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand run" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand run" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand resume" -l patience -d 'How long a host that is lost during the run is tried before it is given up' -r
complete -c assay -n "__fish_assay_using_subcommand resume" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand resume" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand resume" -l accept-changed-spec -d 'Go on although the experiment\'s file has changed since, and record the difference'
complete -c assay -n "__fish_assay_using_subcommand resume" -l accept-changed-host -d 'Go on although the host or the program is another one, and record the difference'
complete -c assay -n "__fish_assay_using_subcommand resume" -l break-lease -d 'Take hosts from a run that seems dead: that has not been heard of for half a minute'
complete -c assay -n "__fish_assay_using_subcommand resume" -l ignore-preflight -d 'Go on although pre-flight fails'
complete -c assay -n "__fish_assay_using_subcommand resume" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand resume" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand resume" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand resume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand status" -l variant -d 'The variants of the experiment (default: all)' -r
complete -c assay -n "__fish_assay_using_subcommand status" -s i -l inventory -d 'Inventory to use instead of the one that the experiment names' -r -F
complete -c assay -n "__fish_assay_using_subcommand status" -l set -d 'Override a value, such as `rounds.duration=30s`; may be given several times' -r
complete -c assay -n "__fish_assay_using_subcommand status" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand status" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand status" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand status" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand status" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand deploy" -s i -l inventory -d 'Inventory to use instead of the one that the experiment names' -r -F
complete -c assay -n "__fish_assay_using_subcommand deploy" -l set -d 'Override a value, such as `rounds.duration=30s`; may be given several times' -r
complete -c assay -n "__fish_assay_using_subcommand deploy" -l variant -d 'The variants that are meant (default: all)' -r
complete -c assay -n "__fish_assay_using_subcommand deploy" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand deploy" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand deploy" -l break-lease -d 'Take hosts from a run that seems dead: that has not been heard of for half a minute'
complete -c assay -n "__fish_assay_using_subcommand deploy" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand deploy" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand deploy" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand deploy" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand start" -s i -l inventory -d 'Inventory to use instead of the one that the experiment names' -r -F
complete -c assay -n "__fish_assay_using_subcommand start" -l set -d 'Override a value, such as `rounds.duration=30s`; may be given several times' -r
complete -c assay -n "__fish_assay_using_subcommand start" -l variant -d 'The variants that are meant (default: all)' -r
complete -c assay -n "__fish_assay_using_subcommand start" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand start" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand start" -l break-lease -d 'Take hosts from a run that seems dead: that has not been heard of for half a minute'
complete -c assay -n "__fish_assay_using_subcommand start" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand start" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand start" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand start" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand stop" -s i -l inventory -d 'Inventory to use instead of the one that the experiment names' -r -F
complete -c assay -n "__fish_assay_using_subcommand stop" -l set -d 'Override a value, such as `rounds.duration=30s`; may be given several times' -r
complete -c assay -n "__fish_assay_using_subcommand stop" -l variant -d 'The variants that are meant (default: all)' -r
complete -c assay -n "__fish_assay_using_subcommand stop" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand stop" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand stop" -l break-lease -d 'Take hosts from a run that seems dead: that has not been heard of for half a minute'
complete -c assay -n "__fish_assay_using_subcommand stop" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand stop" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand stop" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand stop" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand destroy" -s i -l inventory -d 'Inventory to use instead of the one that the experiment names' -r -F
complete -c assay -n "__fish_assay_using_subcommand destroy" -l set -d 'Override a value, such as `rounds.duration=30s`; may be given several times' -r
complete -c assay -n "__fish_assay_using_subcommand destroy" -l variant -d 'The variants that are meant (default: all)' -r
complete -c assay -n "__fish_assay_using_subcommand destroy" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand destroy" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand destroy" -l break-lease -d 'Take hosts from a run that seems dead: that has not been heard of for half a minute'
complete -c assay -n "__fish_assay_using_subcommand destroy" -l dry-run -d 'List every path and unit that would be removed, and remove nothing'
complete -c assay -n "__fish_assay_using_subcommand destroy" -l keep-data -d 'Leave data and snapshots where they are'
complete -c assay -n "__fish_assay_using_subcommand destroy" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand destroy" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand destroy" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand destroy" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand packs; and not __fish_seen_subcommand_from list show check" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand packs; and not __fish_seen_subcommand_from list show check" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand packs; and not __fish_seen_subcommand_from list show check" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand packs; and not __fish_seen_subcommand_from list show check" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand packs; and not __fish_seen_subcommand_from list show check" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand packs; and not __fish_seen_subcommand_from list show check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand packs; and not __fish_seen_subcommand_from list show check" -f -a "list" -d 'List the systems that have a pack'
complete -c assay -n "__fish_assay_using_subcommand packs; and not __fish_seen_subcommand_from list show check" -f -a "show" -d 'Print what a pack says, or what its templates can use'
complete -c assay -n "__fish_assay_using_subcommand packs; and not __fish_seen_subcommand_from list show check" -f -a "check" -d 'Check packs: all problems at once, with file and line'
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from list" -l beside -d 'Folder whose `templates/` goes before the built-in packs, as that of an experiment does' -r -F
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from list" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from list" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from list" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from show" -l beside -d 'Folder whose `templates/` goes before the built-in packs, as that of an experiment does' -r -F
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from show" -l file -d 'Print one file of the pack' -r
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from show" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from show" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from show" -l context -d 'Print what templates can use, role by role'
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from show" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from check" -l beside -d 'Folder whose `templates/` goes before the built-in packs, as that of an experiment does' -r -F
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from check" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from check" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from check" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from check" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from check" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand packs; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand list" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand list" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand list" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand list" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand list" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand show" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand show" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand show" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand show" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand show" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand report" -s f -l format -d 'Formats, separated by commas (default: markdown, with `--json` json)' -r -f -a "html\t'One self-contained page'
markdown\t'Markdown'
csv\t'One row a round and metric'
json\t'All rows and summaries'"
complete -c assay -n "__fish_assay_using_subcommand report" -s o -l output -d 'Folder to write the files to; without it one format is printed' -r -F
complete -c assay -n "__fish_assay_using_subcommand report" -l templates -d 'Folder whose `report/report.html.j2` replaces the built-in page' -r -F
complete -c assay -n "__fish_assay_using_subcommand report" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand report" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand report" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand report" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand report" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand verify" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand verify" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand verify" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand verify" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand verify" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand hosts; and not __fish_seen_subcommand_from check facts exec trust" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand hosts; and not __fish_seen_subcommand_from check facts exec trust" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand hosts; and not __fish_seen_subcommand_from check facts exec trust" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand hosts; and not __fish_seen_subcommand_from check facts exec trust" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand hosts; and not __fish_seen_subcommand_from check facts exec trust" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand hosts; and not __fish_seen_subcommand_from check facts exec trust" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand hosts; and not __fish_seen_subcommand_from check facts exec trust" -f -a "check" -d 'Compare hosts with what a system wants of them, and mend what can be mended'
complete -c assay -n "__fish_assay_using_subcommand hosts; and not __fish_seen_subcommand_from check facts exec trust" -f -a "facts" -d 'Print what hosts are and how fast'
complete -c assay -n "__fish_assay_using_subcommand hosts; and not __fish_seen_subcommand_from check facts exec trust" -f -a "exec" -d 'Run one command on many hosts; equal outputs are printed once'
complete -c assay -n "__fish_assay_using_subcommand hosts; and not __fish_seen_subcommand_from check facts exec trust" -f -a "trust" -d 'Show the keys of hosts, and make them known when you say so'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from check" -s i -l inventory -d 'Inventory to use instead of the one that the experiment names' -r -F
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from check" -l set -d 'Override a value, such as `rounds.duration=30s`; may be given several times' -r
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from check" -l system -d 'System whose wants are checked (default: the experiment\'s, else sqlite, which wants least)' -r
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from check" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from check" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from check" -l apply -d 'Make the safe fixes, and list them; they last until the next boot'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from check" -l revert -d 'Put back every value that `--apply` changed'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from check" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from check" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from check" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from facts" -s i -l inventory -d 'Inventory to use instead of the one that the experiment names' -r -F
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from facts" -l set -d 'Override a value, such as `rounds.duration=30s`; may be given several times' -r
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from facts" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from facts" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from facts" -l calibrate -d 'Measure CPU, memory, disk and network as well: about a second a host'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from facts" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from facts" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from facts" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from facts" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from exec" -s i -l inventory -d 'Inventory to use instead of the one that the experiment names' -r -F
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from exec" -l set -d 'Override a value, such as `rounds.duration=30s`; may be given several times' -r
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from exec" -l timeout -d 'The longest that the command may take on a host' -r
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from exec" -l silence -d 'The longest that it may print nothing' -r
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from exec" -l at-once -d 'How many hosts are worked on at once' -r
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from exec" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from exec" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from exec" -l stream -d 'Print each line when it comes, after its host\'s name'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from exec" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from exec" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from exec" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from exec" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from trust" -s i -l inventory -d 'Inventory to use instead of the one that the experiment names' -r -F
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from trust" -l set -d 'Override a value, such as `rounds.duration=30s`; may be given several times' -r
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from trust" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from trust" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from trust" -s y -l yes -d 'Make new keys known without asking; changed ones are refused all the same'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from trust" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from trust" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from trust" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand hosts; and __fish_seen_subcommand_from trust" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -l labs -d 'Folder that holds the labs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -f -a "up" -d 'Make a lab: hosts with their own addresses, systemd and sshd'
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -f -a "list" -d 'List all labs and how their hosts are'
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -f -a "down" -d 'Remove a lab, also one that was left half-made'
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -f -a "cut" -d 'Drop all packets of a host: its peers see silence'
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -f -a "heal" -d 'Undo every fault of a host; a killed one is booted again with the same disk, address and host key'
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -f -a "pause" -d 'Stop all processes of a host where they are'
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -f -a "kill" -d 'Take the power of a host: all its processes are gone, its disk stays'
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -f -a "slow" -d 'Make the network of a host worse, in each direction'
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -f -a "boot" -d 'Become a host of a lab'
complete -c assay -n "__fish_assay_using_subcommand lab; and not __fish_seen_subcommand_from up list down cut heal pause kill slow boot watch" -f -a "watch" -d 'Remove a lab when standard input ends, that is, when whoever started this is gone'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from up" -l hosts -d 'Number of hosts' -r
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from up" -l data -d 'Give each host an XFS of its own for `/data`, such as `xfs:8G`; only what is written takes space' -r
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from up" -l name -d 'Name of the lab; its hosts are called NAME1, NAME2, ...' -r
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from up" -l inventory -d 'Inventory to write (default: `inventories/lab-NAME.yaml`)' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from up" -l labs -d 'Folder that holds the labs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from up" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from up" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from up" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from up" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from up" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from up" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from list" -l labs -d 'Folder that holds the labs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from list" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from list" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from list" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from down" -l labs -d 'Folder that holds the labs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from down" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from down" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from down" -l all -d 'Remove all labs'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from down" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from down" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from down" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from down" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from cut" -l labs -d 'Folder that holds the labs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from cut" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from cut" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from cut" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from cut" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from cut" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from cut" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from heal" -l labs -d 'Folder that holds the labs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from heal" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from heal" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from heal" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from heal" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from heal" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from heal" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from pause" -l labs -d 'Folder that holds the labs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from pause" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from pause" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from pause" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from pause" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from pause" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from pause" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from kill" -l labs -d 'Folder that holds the labs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from kill" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from kill" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from kill" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from kill" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from kill" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from kill" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from slow" -l delay -d 'Each packet is this much later, such as `50ms`' -r
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from slow" -l rate -d 'Most bits in a second, such as `10mbit`' -r
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from slow" -l loss -d 'Part of the packets that is lost, such as `1%`' -r
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from slow" -l labs -d 'Folder that holds the labs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from slow" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from slow" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from slow" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from slow" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from slow" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from slow" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from boot" -l labs -d 'Folder that holds the labs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from boot" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from boot" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from boot" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from boot" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from boot" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from boot" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from watch" -l labs -d 'Folder that holds the labs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from watch" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from watch" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from watch" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from watch" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from watch" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand lab; and __fish_seen_subcommand_from watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand schema" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand schema" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand schema" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand schema" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand schema" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand schema" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand completions" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand completions" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand completions" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand completions" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand completions" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand man" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand man" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand man" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand man" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand man" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c assay -n "__fish_assay_using_subcommand agent" -l artifacts -d 'Folder that holds the runs' -r -F
complete -c assay -n "__fish_assay_using_subcommand agent" -l color -d 'When to use colours (`NO_COLOR` is respected)' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c assay -n "__fish_assay_using_subcommand agent" -l json -d 'Print the result as JSON'
complete -c assay -n "__fish_assay_using_subcommand agent" -s v -l verbose -d 'Say more; twice, everything'
complete -c assay -n "__fish_assay_using_subcommand agent" -s q -l quiet -d 'Say only results and errors'
complete -c assay -n "__fish_assay_using_subcommand agent" -s h -l help -d 'Print help (see more with \'--help\')'
