// Package rest is the engine of httpapi: it serves routes without knowing what they are of. It
// finds the route of a request and its caller, decodes queries, options and bodies, begins
// transactions, and writes answers, pages of rows, files and failures. It bounds what requests may
// hold, how many compute or write at once, and how slow a client may be.
//
// Package httpapi declares the routes, and sets what is special about some as functions of theirs.
package rest
