package conversation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/paging"
)

// pageBytes is the most bytes of the text of a file that a model reads at once.
const pageBytes = 16 << 10

// referencedPrefix begins the names of files that an assistant refers to.
const referencedPrefix = "reference:"

// openFiles opens the skill files: the names and the text of the assistant's files, and of the
// files that it refers to.
func (s *Service) openFiles(_ context.Context, u Use) ([]Tool, func(), error) {
	f := &files{s, u.Assistant, u.text}
	return []Tool{
		{
			Tool: ai.Tool{
				Name: "list_files",
				Description: fmt.Sprintf(
					"The names of your files, %d at once, and of those that you refer to.", filesOfPage,
				),
				Parameters: json.RawMessage(`{"type":"object","properties":` +
					`{"start":{"type":"integer","minimum":0,"description":"How many to leave out"}}}`),
			},
			Run: f.list,
		},
		{
			Tool: ai.Tool{
				Name: "read_file",
				Description: fmt.Sprintf(
					"The text of a file (PDF, Word, Excel, HTML or text), in pages of %d bytes; the first one "+
						"unless page says otherwise.",
					pageBytes,
				),
				Parameters: json.RawMessage(`{"type":"object","properties":` +
					`{"file":{"type":"string","description":"A name from list_files"},` +
					`"page":{"type":"integer","minimum":1}},"required":["file"]}`),
			},
			Run: f.read,
		},
	}, nil, nil
}

// files reads the files of an assistant.
type files struct {
	s  *Service
	as assistants.Assistant
	*lastText
}

// lastText is the text that a conversation has read last, as models mostly read on.
type lastText struct {
	of   [3]string // assistant, name and version of the file
	text string
}

// list is the tool list_files.
func (f *files) list(ctx context.Context, c ai.ToolCall) (string, error) {
	var in struct {
		Start int `json:"start"`
	}
	if err := json.Unmarshal([]byte(c.Arguments), &in); err != nil || in.Start < 0 {
		return "", errs.New(errs.Invalid, "start must be a number from 0.")
	}
	page, err := f.s.o.Assistants.Unchecked().Files(ctx, f.as, paging.Query{Start: in.Start, Limit: filesOfPage})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, one := range page.Rows {
		fmt.Fprintf(&b, "%s (%s, %d bytes)\n", oneLine(one.Path), one.ContentType, one.Size)
	}
	if left := page.Total - in.Start - len(page.Rows); left > 0 {
		fmt.Fprintf(&b, "%d more: list them with start %d.\n", left, in.Start+len(page.Rows))
	}
	for _, r := range f.as.References {
		if in.Start > 0 || r.EntityType != kindFile {
			continue
		}
		e, err := f.s.o.Content.Seen(ctx, kindFile, r.EntityID)
		if err == nil {
			fmt.Fprintf(&b, "%s%s (%s)\n", referencedPrefix, r.EntityID, oneLine(e.Ref.Name))
		} else if !toldToModel(err) {
			return "", err
		}
	}
	if b.Len() == 0 {
		return "There are no files.", nil
	}
	return b.String(), nil
}

const kindFile = "file"

// read is the tool read_file.
func (f *files) read(ctx context.Context, c ai.ToolCall) (string, error) {
	var in struct {
		File string `json:"file"`
		Page *int   `json:"page"`
	}
	if err := json.Unmarshal([]byte(c.Arguments), &in); err != nil || in.File == "" || in.Page != nil && *in.Page < 1 {
		return "", errs.New(errs.Invalid, "file must be the name of a file, and page a number from 1.")
	}
	one, err := f.find(ctx, in.File)
	if err != nil {
		return "", err
	}
	if of := [3]string{f.as.ID, in.File, one.version}; f.of != of {
		f.of, f.text = [3]string{}, ""
		text, err := f.s.extract(ctx, one)
		if err != nil {
			return "", err
		}
		f.of, f.text = of, text
	}
	page := 1
	if in.Page != nil {
		page = *in.Page
	}
	text, pages := pageOf(f.text, page)
	if page > pages {
		return "", errs.New(errs.Invalid, "%s has %d pages.", oneLine(in.File), pages)
	}
	return fmt.Sprintf("%s, page %d of %d:\n\n%s", oneLine(in.File), page, pages, text), nil
}

// pageOf returns a page of a text, and how many there are. Pages end with whole characters.
func pageOf(text string, page int) (string, int) {
	pages := max(1, (len(text)+pageBytes-1)/pageBytes)
	if page > pages {
		return "", pages
	}
	at := func(i int) int {
		for i = min(i, len(text)); i > 0 && i < len(text) && !utf8.RuneStart(text[i]); {
			i--
		}
		return i
	}
	return text[at((page-1)*pageBytes):at(page*pageBytes)], pages
}

// document is a file whose text is read.
type document struct {
	name, contentType, version string
	size                       int64
	open                       func(ctx context.Context) (io.ReadCloser, error)
}

// find returns a file of the assistant, or one that it refers to and the caller may see.
func (f *files) find(ctx context.Context, name string) (document, error) {
	if id, is := strings.CutPrefix(name, referencedPrefix); is {
		return f.referenced(ctx, id)
	}
	one, err := f.s.o.Assistants.Unchecked().File(ctx, f.as, name)
	if err != nil {
		return document{}, err
	}
	return document{name: one.Path, contentType: one.ContentType,
		version: one.Version(), size: one.Size, open: func(ctx context.Context) (io.ReadCloser, error) {
			_, r, err := f.s.o.Assistants.Unchecked().OpenFile(ctx, f.as, one.Path)
			return r, err
		}}, nil
}

// referenced returns a file that the assistant refers to: its data have the text as extractText
// takes a document, or they are the text.
func (f *files) referenced(ctx context.Context, id string) (document, error) {
	known := false
	for _, r := range f.as.References {
		known = known || r.EntityType == kindFile && r.EntityID == id
	}
	if !known {
		return document{}, errs.New(errs.NotFound, "There is no such file.")
	}
	e, err := f.s.o.Content.Seen(ctx, kindFile, id)
	if err != nil {
		return document{}, err
	}
	var data struct {
		Content     *string `json:"content"`
		Encoding    string  `json:"encoding"`
		ContentType string  `json:"contentType"`
		Filename    string  `json:"filename"`
	}
	content := []byte(e.Data)
	switch err := json.Unmarshal(e.Data, &data); {
	case err != nil || data.Content == nil:
		data.ContentType = "application/json"
	case data.Encoding == "base64":
		if content, err = base64.StdEncoding.DecodeString(*data.Content); err != nil {
			return document{}, errs.New(errs.Conflict, "The content of the file is no base64.")
		}
	default:
		content = []byte(*data.Content)
	}
	return document{name: data.Filename, contentType: data.ContentType,
		version: digest(e.Data), size: int64(len(content)), open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(content)), nil
		}}, nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// maxDocument is the most bytes of a file that is read.
const maxDocument = 32 << 20

// extract returns the text of a file. Few are read at once, in turn by tenant.
func (s *Service) extract(ctx context.Context, d document) (string, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return "", err
	}
	if d.size > maxDocument {
		return "", errs.New(errs.TooLarge, "The file has %d bytes, where %d are read.", d.size, maxDocument)
	}
	leave, err := s.reading.Acquire(ctx, 1, a.Tenant)
	if err != nil {
		return "", limiter.Unavailable(err, "Too many files are read at the moment. Try again.")
	}
	defer leave()
	r, err := d.open(ctx)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if failed := r.Close(); err == nil {
		err = failed
	}
	if err != nil {
		return "", err
	}
	return s.o.Extract(ctx, d.contentType, d.name, data)
}
