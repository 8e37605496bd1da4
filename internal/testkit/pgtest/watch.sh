# Run by cluster.go with the cluster's folder as $1 and a pipe from the test process as standard input.
# That process writes the id of the server it runs (0: none); when it is gone, however it ended, the pipe ends.
trap '' HUP INT TERM
pid=0
while read -r line; do pid=$line; done

lock=$1/data/postmaster.pid

i=0
if [ "$pid" -gt 0 ]; then
	kill -CONT "$pid" $(ps -o pid= --ppid "$pid") # after Freeze
	kill -QUIT "$pid" # PostgreSQL's "immediate" shutdown
	# A server removes its lock file last; its process may stay as a zombie where process 1 reaps nothing.
	while [ -e "$lock" ] && kill -0 "$pid" && [ $i -lt 80 ]; do sleep 0.1; i=$((i + 1)); done
	kill -KILL "$pid"
fi

# A server that was killed leaves its lock file, which names the shared memory that it also left: line 7, word 2.
memory=$(awk 'NR == 7 { print $2 }' "$lock")
[ -z "$memory" ] || ipcrm -m "$memory"

# Repeated, because an initdb or a server in its first moments may still be writing.
i=0
while [ -e "$1" ] && [ $i -lt 50 ]; do
	rm -rf "$1"
	[ ! -e "$1" ] || sleep 0.1
	i=$((i + 1))
done
