// Package rest serves routes without knowing what they are of: it finds the route of a request,
// decodes queries, options and bodies, and writes answers, pages of rows and files. It bounds what
// requests may hold, how many compute or write at once, and how slow a client may be. Package
// httpapi declares the routes and decides the order in which a request passes all this.
package rest
