package saml

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/certs"
)

// maxEntityID is the longest entity id, in bytes.
const maxEntityID = 1024

// open makes a realm of a configuration.
func (d Driver) open(config json.RawMessage, keys domains.Keys) (domains.Realm, error) {
	all := members{}
	if err := json.Unmarshal(config, &all); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "metadataURL or metadataXML must be given in a JSON object")
	}
	r := &realm{keys: keys}
	if err := d.openMetadata(r, all); err != nil {
		return nil, err
	}
	var err error
	if r.entityID, err = all.text("entityID"); err != nil {
		return nil, err
	}
	if len(r.entityID) > maxEntityID || strings.ContainsFunc(r.entityID, notInURI) {
		return nil, errs.New(errs.Invalid, "entityID must be a URI of at most %d bytes, or left out", maxEntityID)
	}
	for name, flag := range map[string]*bool{
		"signRequests": &r.signs,
		"idpInitiated": &r.unasked,
		"trustEmail":   &r.trustEmail,
	} {
		if raw, ok := all[name]; ok && json.Unmarshal(raw, flag) != nil {
			return nil, errs.New(errs.Invalid, "%s must be true or false", name)
		}
	}
	r.wantsGroups = all.asksForGroups()
	if r.attributes, err = all.attributes(); err != nil {
		return nil, err
	}
	return r, nil
}

// openMetadata reads where the metadata of the provider is, or the metadata itself.
func (d Driver) openMetadata(r *realm, all members) error {
	address, err := all.text("metadataURL")
	if err != nil {
		return err
	}
	document, err := all.text("metadataXML")
	if err != nil {
		return err
	}
	pem, err := all.text("caCert")
	if err != nil {
		return err
	}
	trusted, err := certs.Read("caCert", pem)
	if err != nil {
		return err
	}
	switch {
	case address == "" && document == "":
		return errs.New(errs.Invalid, "metadataURL or metadataXML must be given")
	case address != "" && document != "":
		return errs.New(errs.Invalid, "metadataURL must be left out where metadataXML is given")
	case address != "":
		client, err := d.client(trusted)
		if err != nil {
			return err
		}
		r.source, err = remoteMetadata(address, client)
		r.denied = d.Denied != nil && d.Denied(address)
		return err
	}
	r.source, err = pastedMetadata(document)
	return err
}

// asksForGroups reports whether the rules for logging in, which package domains reads, need the
// person's groups.
func (m members) asksForGroups() bool {
	var allow struct {
		Groups json.RawMessage `json:"groups"`
	}
	_ = json.Unmarshal(m["allow"], &allow) // domains says what is wrong with it
	there := func(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
	return there(allow.Groups) || there(m["teams"])
}

// notInURI reports whether a rune is not allowed in URIs.
func notInURI(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// pastedMetadata checks metadata that the configuration has.
func pastedMetadata(document string) (source, error) {
	p, err := readProvider([]byte(document))
	if err != nil {
		return nil, errs.New(errs.Invalid, "metadataXML %s", err)
	}
	return pasted{p}, nil
}

// remoteMetadata checks the address of metadata.
func remoteMetadata(address string, client *http.Client) (source, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || !secure(u) || u.User != nil {
		return nil, errs.New(
			errs.Invalid,
			"metadataURL must be an https address without a password, or http to a loopback address",
		)
	}
	return &remote{client: client, url: u, lock: make(chan struct{}, 1)}, nil
}

// secure reports whether responses of an address cannot be changed on the way.
func secure(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// members are those of a JSON object under their exact names.
type members map[string]json.RawMessage

// text returns a member that is text; null and none are "".
func (m members) text(name string) (string, error) {
	var s string
	if raw, ok := m[name]; ok && json.Unmarshal(raw, &s) != nil {
		return "", errs.New(errs.Invalid, "%s must be text", name)
	}
	return s, nil
}

// attributes returns the names of attributes that the configuration has.
func (m members) attributes() (attributes, error) {
	var given members
	if raw, ok := m["attributes"]; ok && json.Unmarshal(raw, &given) != nil {
		return nil, errs.New(errs.Invalid, "attributes must be an object of text")
	}
	names := attributes{}
	for _, key := range attributeKeys {
		name, err := given.text(key)
		if err != nil {
			return nil, errs.New(errs.Invalid, "attributes.%s must be text", key)
		}
		if raw, ok := given[key]; ok && string(raw) != "null" {
			names[key] = name
		}
	}
	if name, named := names["username"]; named && name == "" {
		return nil, errs.New(errs.Invalid, "attributes.username must name an attribute, or be left out")
	}
	return names, nil
}
