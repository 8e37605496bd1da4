package bundles

// Order returns the order of kinds in an archive.
func Order() []string { return order }
