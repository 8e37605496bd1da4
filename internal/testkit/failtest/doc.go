// Package failtest holds the tests of the whole service on a PostgreSQL that goes away, cuts
// connections, blocks or is full of other tenants' rows. It has no code and nobody imports it.
package failtest
