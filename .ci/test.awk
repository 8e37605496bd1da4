# Shortens `go test -v` to its package lines, the output of packages that failed, and every skipped test, which also
# fails the run, and lists the ten slowest tests. Go prints one package after the other, each closed by its "ok" or "FAIL" line.

/^ok  \t/ || /^FAIL\t/ { for (name in took) rank(took[name], $2 " " name) }
/^ok  \t/ || /^\?   \t/ || /^\t.*coverage: / { print; fflush(); forget(); next }
/^FAIL\t/ {
	for (i = 1; i <= n; i++) print kept[i]
	print; fflush()
	if (!failedHere) failed++ # it did not build, or ran out of time
	forget(); next
}

/^--- (PASS|FAIL): / { took[$3] = substr($4, 2) + 0 }
/^--- PASS: / { passed++ }
/^--- FAIL: / { failed++; failedHere = 1 }
/^ *--- SKIP: / { skipped++; skips = skips reason $0 "\n" }

# The progress of tests tells nothing; what a skipped test logged, its reason, comes before its verdict.
/^=== RUN / { reason = "" }
/^=== / || /^ *--- PASS: / { next }
{ kept[++n] = $0; reason = reason $0 "\n" }

function forget() { n = failedHere = 0; reason = ""; delete took }

# rank keeps the ten largest times in slowest[1..10], the largest first.
function rank(seconds, name,  i) {
	for (i = 10; i > 0 && seconds > slowest[i]; i--) {
		slowest[i + 1] = slowest[i]; slowestName[i + 1] = slowestName[i]
	}
	slowest[i + 1] = seconds; slowestName[i + 1] = name
}

END {
	for (i = 1; i <= n; i++) if (kept[i] != "FAIL" && kept[i] != "PASS") print kept[i]
	print "\nThe ten slowest tests:"
	for (i = 1; i <= 10 && slowestName[i]; i++) printf "%7.1f s  %s\n", slowest[i], slowestName[i]
	if (skipped) printf "\nSkipped, which fails this run:\n%s", skips
	printf "tests: %d passed, %d failed, %d skipped\n", passed, failed, skipped
	exit skipped > 0 || failed > 0 || passed == 0
}
