// Package endtoend has tests of authentication domains with the whole server: a real directory,
// real providers of single sign-on, and browsers. It contains only tests.
package endtoend
