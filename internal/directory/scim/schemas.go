package scim

// Attribute describes an attribute (RFC 7643, section 7).
type Attribute struct {
	Name            string      `json:"name"`
	Type            string      `json:"type"`
	MultiValued     bool        `json:"multiValued"`
	Description     string      `json:"description"`
	Required        bool        `json:"required"`
	CaseExact       bool        `json:"caseExact"`
	Mutability      string      `json:"mutability"`
	Returned        string      `json:"returned"`
	Uniqueness      string      `json:"uniqueness"`
	ReferenceTypes  []string    `json:"referenceTypes,omitempty"`
	CanonicalValues []string    `json:"canonicalValues,omitempty"`
	SubAttributes   []Attribute `json:"subAttributes,omitempty"`
}

// Schema describes the attributes of a type of resource.
type Schema struct {
	ID          string      `json:"id"`
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Attributes  []Attribute `json:"attributes"`
}

// Type is a type of resource.
type Type struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Endpoint    string `json:"endpoint"`
	Description string `json:"description"`
	Schema      string `json:"schema"`
}

// Types returns the types of resources.
func Types() []Type {
	return []Type{
		{"User", "User", "/Users", "The users of a domain", UserSchema},
		{"Group", "Group", "/Groups", "The teams of a domain that the provider keeps", GroupSchema},
	}
}

// text returns an attribute that a client may set.
func text(name, description string, parts ...Attribute) Attribute {
	a := Attribute{
		Name: name, Type: "string", Description: description,
		Mutability: "readWrite", Returned: "default", Uniqueness: "none", SubAttributes: parts,
	}
	if len(parts) > 0 {
		a.Type = "complex"
	}
	return a
}

func (a Attribute) typed(t string) Attribute { a.Type = t; return a }

func (a Attribute) many() Attribute { a.MultiValued = true; return a }

func (a Attribute) readOnly() Attribute { a.Mutability = "readOnly"; return a }

func (a Attribute) immutable() Attribute { a.Mutability = "immutable"; return a }

func (a Attribute) refers(to string) Attribute {
	a.Type, a.ReferenceTypes, a.CaseExact = "reference", []string{to}, true
	return a
}

func (a Attribute) requiredOnServer() Attribute {
	a.Required, a.Uniqueness = true, "server"
	return a
}

// Schemas returns the schemas of users and groups as this service supports them.
func Schemas() []Schema {
	work := text("type", "What the address is for")
	work.CanonicalValues = []string{"work"}
	user := text("type", "User: groups have no groups as members").immutable()
	user.CanonicalValues = []string{"User"}
	return []Schema{
		{UserSchema, "User", "User Account", []Attribute{
			text(
				"userName", "The name that the user logs in with; no other user of the tenant has it",
			).requiredOnServer(),
			text("name", "The parts of the user's name",
				text("formatted", "Its parts, joined").readOnly(),
				text("familyName", "The family name"), text("givenName", "The given name"),
				text("middleName", "The middle names")),
			text("displayName", "The name that people see"),
			text("timezone", "The IANA name of where the user lives, such as Europe/Berlin"),
			text("active", "Whether the user may log in").typed("boolean"),
			text("emails", "The user's address: the primary one of several",
				text("value", "The address"), work, text("primary", "True of the one address").typed("boolean")).many(),
			text("groups", "The groups that the user is in",
				text("value", "The id of the group").readOnly(),
				text("$ref", "The address of the group").refers("Group").readOnly(),
				text("display", "The name of the group").readOnly()).many().readOnly(),
		}},
		{GroupSchema, "Group", "Group", []Attribute{
			text("displayName", "The name of the group; no other group of the domain has it").requiredOnServer(),
			text("members", "The users in the group",
				text("value", "The id of the user").immutable(),
				text("$ref", "The address of the user").refers("User").immutable(),
				text("display", "The name of the user").readOnly(), user).many(),
		}},
	}
}
