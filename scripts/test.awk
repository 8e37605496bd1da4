# Shortens `go test -v` to its package lines, the output of packages that failed, and every skipped test, which also
# fails the run. Go prints one package after the other, each closed by its "ok" or "FAIL" line.

/^ok  \t/ || /^\?   \t/ || /^\t.*coverage: / { print; fflush(); forget(); next }
/^FAIL\t/ {
	for (i = 1; i <= n; i++) print kept[i]
	print; fflush()
	if (!failedHere) failed++ # it did not build, or ran out of time
	forget(); next
}

/^--- PASS: / { passed++ }
/^--- FAIL: / { failed++; failedHere = 1 }
/^ *--- SKIP: / { skipped++; skips = skips reason $0 "\n" }

# The progress of tests tells nothing; what a skipped test logged, its reason, comes before its verdict.
/^=== RUN / { reason = "" }
/^=== / || /^ *--- PASS: / { next }
{ kept[++n] = $0; reason = reason $0 "\n" }

function forget() { n = failedHere = 0; reason = "" }

END {
	for (i = 1; i <= n; i++) if (kept[i] != "FAIL" && kept[i] != "PASS") print kept[i]
	if (skipped) printf "\nSkipped, which fails this run:\n%s", skips
	printf "tests: %d passed, %d failed, %d skipped\n", passed, failed, skipped
	exit skipped > 0 || failed > 0 || passed == 0
}
