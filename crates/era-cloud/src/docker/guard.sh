#!/bin/sh
# The guard of a task in a container: its first process, in any shell of POSIX.
#
#   guard FOLDER LEASE_S KILL_S command...
#
# FOLDER/lease is the server's word, one line: GENERATION VERB SECONDS.
#   run   the task may run, for so many seconds at most
#   stop  it is to end: signalled now, killed after so many seconds
#   over  it is to be gone at once, or not to start at all
# The lease is renewed by a new generation. Where none comes for LEASE_S seconds (0: no lease), the
# task is stopped, and killed KILL_S seconds later. FOLDER/told is the guard's word: when it
# started, what the task uses, how it ended. See decision 0018.
folder=$1 lease_s=$2 kill_s=$3
shift 3
told=$folder/told

# It signals every process there is, so it must be in a world of its own.
if [ $$ -ne 1 ]; then
    echo "era: the guard is the first process of a container, or nothing" >&2
    exit 125
fi

# Seconds that no clock change moves, read without another process.
uptime_s() {
    read -r now _ </proc/uptime
    now=${now%%.*}
}

look() {
    generation= verb= seconds=
    { read -r generation verb seconds _ <"$folder/lease"; } 2>/dev/null
    case $seconds in '' | *[!0-9]*) return 1 ;; esac
}

refuse() {
    echo "era: $2" >&2
    echo "$1 not_started 0" >"$told/ended"
    exit "$1"
}

# The one look at the lease that may take as long as it likes: nothing runs yet.
look || refuse 125 "the lease of this task cannot be read on this node: is the shared folder there?"
[ "$verb" = run ] || refuse 125 "the lease of this task was over before it started"
for secrets in "$folder/secrets" /run/secrets/era; do
    # shellcheck disable=SC1090
    if [ -r "$secrets" ]; then . "$secrets"; fi
done
command -v "$1" >/dev/null 2>&1 ||
    refuse 127 "could not start \`$1\`: there is no such program in the image"
: >"$told/started"

why=itself woken=0
uptime_s
lapses=$((now + lease_s)) killed_at=

terminate() {
    if [ "$why" = itself ]; then why=$1; fi
    kill -TERM -1 2>/dev/null
}
on_tick() {
    woken=1
    uptime_s
    if [ -n "$killed_at" ]; then
        if [ "$now" -ge "$killed_at" ]; then kill -KILL -1 2>/dev/null; fi
    elif [ "$now" -ge "$lapses" ]; then
        killed_at=$((now + kill_s))
        terminate lapsed
    fi
}
trap 'woken=1; uptime_s; lapses=$((now + lease_s))' USR1
trap 'woken=1; kill -KILL -1 2>/dev/null' USR2
trap 'woken=1; terminate stopped' TERM INT
trap on_tick ALRM

# What the task uses, as its control groups (of either version) and its network say.
first_of() {
    value=
    for source in "$@"; do
        if [ -r "$source" ]; then
            read -r value <"$source"
            return
        fi
    done
}
measure() {
    cg=/sys/fs/cgroup
    {
        first_of $cg/cpuacct/cpuacct.usage $cg/cpu,cpuacct/cpuacct.usage
        if [ -n "$value" ]; then
            echo "cpu_us $((value / 1000))"
        elif [ -r $cg/cpu.stat ]; then
            read -r _ value <$cg/cpu.stat
            echo "cpu_us $value"
        fi
        first_of $cg/memory/memory.usage_in_bytes $cg/memory.current
        echo "memory ${value:-0}"
        first_of $cg/memory/memory.max_usage_in_bytes $cg/memory.peak
        echo "memory_peak ${value:-0}"
        first_of $cg/pids/pids.current $cg/pids.current
        echo "processes ${value:-0}"
        while IFS=': ' read -r name received _ _ _ _ _ _ _ sent _; do
            case $name in lo | Inter-* | face) ;; *) echo "net $received $sent" ;; esac
        done </proc/net/dev
        if [ -n "$NVIDIA_VISIBLE_DEVICES" ] && command -v nvidia-smi >/dev/null; then
            nvidia-smi --query-gpu=utilization.gpu,memory.used --format=csv,noheader,nounits |
                while IFS=', ' read -r busy memory; do echo "gpu $busy $memory"; done
        fi
    } >"$told/usage.new" 2>/dev/null && mv -f "$told/usage.new" "$told/usage" 2>/dev/null
}

# The grace of a stop: the task may use all of it, so its lease lasts as long, and no longer. Where
# the shared folder hangs meanwhile, it lapses as ever.
grant() {
    uptime_s
    killed=$((now + $1))
    kill -TERM $$
    while [ "$now" -lt "$killed" ]; do
        kill -USR1 $$
        sleep 1
        if look && [ "$verb" = over ]; then break; fi
        uptime_s
    done
    kill -USR2 $$
}

# Looks at the lease and the meters: whatever hangs with the shared folder hangs here, while the
# guard goes on counting. A renewal that was noticed late may be an old one, and does not count.
watch() {
    trap '' TERM INT
    trap - USR1 USR2 ALRM
    seen=$generation looks=0
    uptime_s
    before=$now ends=$((now + seconds))
    while :; do
        sleep 1
        uptime_s
        begun=$now
        if look; then
            case $verb in
            run)
                if [ "$generation" != "$seen" ]; then
                    seen=$generation
                    uptime_s
                    ends=$((now + seconds))
                    if [ $((now - before)) -le 3 ]; then kill -USR1 $$; fi
                fi
                ;;
            stop) grant "$seconds" ;;
            over) kill -USR2 $$ ;;
            esac
        fi
        before=$begun
        if [ "$begun" -ge "$ends" ]; then
            kill -TERM $$
            sleep "$kill_s"
            kill -USR2 $$
        fi
        looks=$((looks + 1))
        if [ $((looks % 5)) -eq 1 ]; then measure; fi
    done
}
tick() {
    trap '' TERM INT
    trap - USR1 USR2 ALRM
    while :; do
        sleep 1
        kill -ALRM $$
    done
}

"$@" &
task=$!
watch >/dev/null 2>&1 &
if [ "$lease_s" -gt 0 ]; then tick >/dev/null 2>&1 & fi

# `wait` comes back for signals too; only where none came is its word the end of the task. Should
# one come in between, the next `wait` knows nothing of the task, and the word before stands.
code=0
while :; do
    before=$code woken=0
    # The shell's own remark on how it ended is not the task's.
    wait "$task" 2>/dev/null
    code=$?
    if [ "$code" -eq 127 ] && [ "$before" -ne 0 ]; then
        case $before in 130 | 138 | 140 | 142 | 143) ;; *) code=$before ;; esac
    fi
    if [ "$woken" -eq 0 ]; then break; fi
done
trap '' USR1 USR2 ALRM TERM INT
kill -KILL -1 2>/dev/null
oom=0
for events in /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events; do
    if [ -r "$events" ]; then
        while read -r name count; do
            if [ "$name" = oom_kill ]; then oom=$count; fi
        done <"$events"
    fi
done
echo "$code $why $oom" >"$told/ended"
exit "$code"
