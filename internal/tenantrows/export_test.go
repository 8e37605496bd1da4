package tenantrows

// Derived reports whether the database makes the rows of a table itself.
func Derived(table string) bool {
	_, made := derived[table]
	return made
}
