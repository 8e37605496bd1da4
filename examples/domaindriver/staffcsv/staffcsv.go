// Package staffcsv is a domain driver over CSV files: people log in by a list of the host's.
// staffcsv_test.go checks that the driver keeps its promises.
//
// The program in the folder above imports it.
package staffcsv

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Driver is the driver. The configuration of a domain is {file}: the name of a CSV file in Files.
//
// A file begins with the line id,username,name,email,password,groups and has one more for each
// person: an id that is never given to anybody else, a bcrypt hash of the password, empty for who
// may not log in, and names of groups with semicolons.
type Driver struct{ Files fs.FS }

// Info implements domains.Driver.
func (Driver) Info() domains.Info {
	return domains.Info{
		ID: "staff-csv", Name: "Staff list", Group: "Files", LoginComponent: "staff-login",
		EditComponent: map[string]any{"name": "staff-edit"}, ScanComponent: map[string]any{"name": "staff-scan"},
		LoginMethod: "POST", UsernameParam: "username", PasswordParam: "password",
	}
}

// Open implements domains.Driver. It looks at the name alone: the file may be away for now.
func (d Driver) Open(config json.RawMessage) (domains.Realm, error) {
	var members map[string]json.RawMessage // by their exact names, which decoding into a struct does not ask for
	if json.Unmarshal(config, &members) != nil {
		return nil, errs.New(errs.Invalid, "config must be a JSON object")
	}
	var file string
	if json.Unmarshal(members["file"], &file) != nil || !fs.ValidPath(file) || !strings.HasSuffix(file, ".csv") {
		return nil, errs.New(errs.Invalid, "file must be the name of a .csv file")
	}
	return list{d.Files, file}, nil
}

// list is a realm: the people of one file.
type list struct {
	files fs.FS
	name  string
}

// Check implements domains.Realm: any file that Open accepts may hold people.
func (list) Check() error { return nil }

var (
	_ domains.PasswordLogin = list{}
	_ domains.Directory     = list{}
)

// person is one line of a file.
type person struct {
	domains.Identity
	hash   []byte
	groups []string
}

// read reads the file. What keeps it from being read is for the log, and not the fault of whoever
// logs in.
func (l list) read(ctx context.Context) ([]person, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := l.files.Open(l.name)
	if err != nil {
		return nil, errs.Wrap(errs.Upstream, err, "The staff list %s cannot be read.", l.name)
	}
	defer f.Close()
	people, err := parse(f)
	if err != nil {
		return nil, errs.Wrap(errs.Upstream, err, "The staff list %s is not in order.", l.name)
	}
	return people, nil
}

func parse(f io.Reader) (people []person, err error) {
	rows, err := csv.NewReader(f).ReadAll() // each with as many fields as the first
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || strings.Join(rows[0], ",") != "id,username,name,email,password,groups" {
		return nil, errors.New("the first line is another one")
	}
	known := map[string]bool{}
	for i, r := range rows[1:] {
		if r[0] == "" || r[1] == "" || known[r[0]] {
			return nil, fmt.Errorf("person %d has no id or no username, or the id of somebody else", i+1)
		}
		known[r[0]] = true
		people = append(people, person{
			Identity: domains.Identity{ID: r[0], Username: r[1], DisplayName: r[2], Email: r[3], Disabled: r[4] == ""},
			hash:     []byte(r[4]),
			groups:   slices.Compact(slices.Sorted(strings.FieldsFuncSeq(r[5], func(c rune) bool { return c == ';' }))),
		})
	}
	return people, nil
}

// Login implements domains.PasswordLogin. A hash is checked for everybody, so that a name nobody
// has takes as long.
func (l list) Login(ctx context.Context, username, password string) (domains.Identity, error) {
	people, err := l.read(ctx)
	if err != nil {
		return domains.Identity{}, err
	}
	var found person
	var hash []byte
	for _, p := range people {
		if found.ID == "" && !p.Disabled && (hash == nil || p.Username == username) {
			hash = p.hash
			if p.Username == username {
				found = p
			}
		}
	}
	if bcrypt.CompareHashAndPassword(hash, []byte(password)) != nil || password == "" || found.ID == "" {
		return domains.Identity{}, errs.New(errs.Unauthenticated, "Unable to log in")
	}
	return found.Identity, nil
}

// Entries implements domains.Directory: people first, then groups. A group is known by its name.
func (l list) Entries(ctx context.Context) iter.Seq2[domains.Entry, error] {
	return func(yield func(domains.Entry, error) bool) {
		people, err := l.read(ctx)
		if err != nil {
			yield(domains.Entry{}, err)
			return
		}
		members := map[string][]string{}
		for _, p := range people {
			for _, group := range p.groups {
				members[group] = append(members[group], p.ID)
			}
			if !yield(domains.Entry{Person: &p.Identity}, nil) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if !yield(domains.Entry{Group: &domains.Group{ID: name, Name: name, Members: members[name]}}, nil) {
				return
			}
		}
	}
}
