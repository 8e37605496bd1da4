// Package endtoend holds the tests of authentication domains through the whole server: a real
// directory, real providers of single sign-on, and browsers. It has no code and nobody imports it.
package endtoend
