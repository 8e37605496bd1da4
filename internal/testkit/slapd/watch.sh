# Run by slapd.go with the directory's folder and then the server's command line as arguments, and with a pipe from the
# test process as standard input. When that process is gone, however it ended, the pipe ends, and the server and its
# folder go too. Standard output ends with the server, so that a start that fails is seen.
trap '' HUP INT TERM
folder=$1
shift

exec 3<&0
"$@" </dev/null >>"$folder/log" 2>&1 3<&- &
server=$!
{ cat <&3; kill -KILL $server; } >/dev/null 2>&1 &
watcher=$!
wait $server
kill $watcher # else it might end another process that has got the number of the server

exec >&- 2>&-
cat <&3 >/dev/null
rm -rf "$folder"
