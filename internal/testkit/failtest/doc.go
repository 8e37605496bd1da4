// Package failtest has tests of the whole service on a PostgreSQL that is stopped, cuts
// connections, blocks or is full of other tenants' rows. It contains only tests.
package failtest
