package saml

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// maxEntityID is the longest entity id, in bytes.
const maxEntityID = 1024

// open makes a realm of a configuration.
func (d Driver) open(config json.RawMessage, client *http.Client) (domains.Realm, error) {
	all := members{}
	if err := json.Unmarshal(config, &all); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "metadataURL or metadataXML must be given in a JSON object")
	}
	address, err := all.text("metadataURL")
	if err != nil {
		return nil, err
	}
	document, err := all.text("metadataXML")
	if err != nil {
		return nil, err
	}
	r := &realm{}
	switch {
	case address == "" && document == "":
		return nil, errs.New(errs.Invalid, "metadataURL or metadataXML must be given")
	case address != "" && document != "":
		return nil, errs.New(errs.Invalid, "metadataURL must be left out where metadataXML is given")
	case address != "":
		r.provider, err = remoteMetadata(address, client)
		r.denied = d.Denied != nil && d.Denied(address)
	default:
		r.provider, err = pastedMetadata(document)
	}
	if err != nil {
		return nil, err
	}
	if r.entityID, err = all.text("entityID"); err != nil {
		return nil, err
	}
	if len(r.entityID) > maxEntityID || strings.ContainsFunc(r.entityID, notInURI) {
		return nil, errs.New(errs.Invalid, "entityID must be a URI of at most %d bytes, or left out", maxEntityID)
	}
	if r.attributes, err = all.attributes(); err != nil {
		return nil, err
	}
	return r, nil
}

// notInURI reports whether a rune is not allowed in URIs.
func notInURI(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// pastedMetadata checks metadata that the configuration has.
func pastedMetadata(document string) (metadata, error) {
	p, err := readProvider([]byte(document))
	if err != nil {
		return nil, errs.New(errs.Invalid, "metadataXML %s", err)
	}
	return func(context.Context) (*provider, error) { return p.current() }, nil
}

// remoteMetadata checks the address of metadata.
func remoteMetadata(address string, client *http.Client) (metadata, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || !secure(u) || u.User != nil {
		return nil, errs.New(errs.Invalid, "metadataURL must be an https address without a password, or http to a loopback address")
	}
	r := &remote{client: client, url: u, lock: make(chan struct{}, 1)}
	return r.provider, nil
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

// attributes returns the attributes' names, those that the configuration leaves out by default.
func (m members) attributes() (map[string]string, error) {
	var given members
	if raw, ok := m["attributes"]; ok && json.Unmarshal(raw, &given) != nil {
		return nil, errs.New(errs.Invalid, "attributes must be an object of text")
	}
	names := maps.Clone(defaults)
	for key := range defaults {
		name, err := given.text(key)
		if err != nil {
			return nil, errs.New(errs.Invalid, "attributes.%s must be text", key)
		}
		if raw, ok := given[key]; ok && string(raw) != "null" {
			names[key] = name
		}
	}
	if names["username"] == "" {
		return nil, errs.New(errs.Invalid, "attributes.username must name an attribute")
	}
	return names, nil
}
