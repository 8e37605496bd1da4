package bunstore

import "github.com/uptrace/bun"

// NewWithChunk returns a Store that reads few principals with each statement.
func NewWithChunk(db *bun.DB, chunk int) *Store { return &Store{db: db, chunk: chunk} }
