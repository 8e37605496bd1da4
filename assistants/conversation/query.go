package conversation

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/chat/datatools"
)

// openQuery opens the skill query: rows and counts of the datasets whose rows the assistant knows.
func (s *Service) openQuery(_ context.Context, u Use) ([]Tool, func(), error) {
	q := query{s, nil}
	var names []string
	for _, k := range u.known {
		if k.readable() {
			q.known, names = append(q.known, k), append(names, k.name)
		}
	}
	return datatools.Tools(names, q), nil, nil
}

// query reads the datasets of an assistant.
type query struct {
	s     *Service
	known []*known
}

// open opens what the assistant may read of a dataset now, with the rights of the caller.
func (q query) open(ctx context.Context, name string) (*datasets.Opened, error) {
	at := slices.IndexFunc(q.known, func(k *known) bool { return k.name == name })
	if at < 0 {
		return nil, errs.New(errs.NotFound, "You have no rows of a dataset with this name.")
	}
	r, err := q.s.o.Datasets.Open(ctx, q.known[at].view)
	if errs.CodeOf(err) == errs.Invalid {
		err = errs.Wrap(errs.Conflict, err, "The dataset cannot be read: its filter does not fit it any more.")
	}
	return r, err
}

// Rows implements datatools.Reader.
func (q query) Rows(ctx context.Context, name string, query datasets.Query) (json.RawMessage, error) {
	leave, err := q.s.place(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	r, err := q.open(ctx, name)
	if err != nil {
		return nil, err
	}
	rows, err := r.Rows(ctx, query)
	return datasets.Array(rows), err
}

// Count implements datatools.Reader.
func (q query) Count(ctx context.Context, name string, filter json.RawMessage) (int, error) {
	leave, err := q.s.place(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	r, err := q.open(ctx, name)
	if err != nil {
		return 0, err
	}
	return r.Count(ctx, filter)
}
