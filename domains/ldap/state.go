package ldap

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	goldap "github.com/go-ldap/ldap/v3"
)

// Attributes that tell whether an account may be used, and what it is.
const (
	controlFlags   = "userAccountControl"
	computedFlags  = "msDS-User-Account-Control-Computed" // of a lock that may have ended meanwhile
	accountExpires = "accountExpires"
	lockoutTime    = "lockoutTime"
	critical       = "isCriticalSystemObject"
	securityID     = "objectSid"
	primaryGroupID = "primaryGroupID"

	nsAccountLock = "nsAccountLock"        // 389 Directory Server, FreeIPA: made inactive
	accountUnlock = "accountUnlockTime"    // 389 Directory Server: when a lock ends
	lockedTime    = "pwdAccountLockedTime" // OpenLDAP: since when it is locked
	groupNumber   = "gidNumber"
)

// Flags of userAccountControl.
const (
	accountDisabled = 0x2
	accountLocked   = 0x10
)

// lockLasts is how long a lock is taken to last whose end the entry does not tell: the default of
// Windows is half of it. OpenLDAP goes on showing one until the next login.
const lockLasts = time.Hour

// isDisabled reports whether somebody has disabled an account, or whether it has expired. An
// account that does not show that is not disabled.
func (r *realm) isDisabled(e *goldap.Entry) bool {
	if !r.activeDirectory {
		return strings.EqualFold(e.GetEqualFoldAttributeValue(nsAccountLock), "true")
	}
	if number(e, controlFlags)&accountDisabled != 0 {
		return true
	}
	expires := number(e, accountExpires)
	return expires > 0 && expires < never && !time.Now().Before(fileTime(expires))
}

// isLocked reports whether an account is locked, for instance after wrong passwords. An expired
// password is no lock: it can be changed elsewhere.
func (r *realm) isLocked(e *goldap.Entry, now time.Time) bool {
	if r.activeDirectory {
		if e.GetEqualFoldAttributeValue(computedFlags) != "" {
			return number(e, computedFlags)&accountLocked != 0
		}
		since := number(e, lockoutTime)
		return since > 0 && now.Before(fileTime(since).Add(lockLasts))
	}
	if ends := e.GetEqualFoldAttributeValue(accountUnlock); ends != "" {
		at, err := generalizedTime(ends)
		return err == nil && (at.Unix() == 0 || now.Before(at)) // 1970: until somebody unlocks it
	}
	since := e.GetEqualFoldAttributeValue(lockedTime)
	if since == "000001010000Z" { // until somebody unlocks it
		return true
	}
	at, err := generalizedTime(since)
	return err == nil && now.Before(at.Add(lockLasts))
}

// never is the accountExpires of an account that does not expire, as is 0.
const never = 1<<63 - 1

func number(e *goldap.Entry, attribute string) int64 {
	n, _ := strconv.ParseInt(e.GetEqualFoldAttributeValue(attribute), 10, 64)
	return n
}

// fileTime returns the time of a number of 100 nanoseconds since 1601, as Active Directory counts.
func fileTime(n int64) time.Time { return time.Unix(n/1e7-11_644_473_600, n%1e7*100) }

func generalizedTime(s string) (time.Time, error) {
	whole, _, _ := strings.Cut(strings.TrimSuffix(s, "Z"), ".")
	return time.Parse("20060102150405", whole)
}

// firstRID is that of the first account of a domain that does not come with it.
const firstRID = 1000

// isBuiltin reports whether an entry is one that Active Directory has by itself, such as krbtgt,
// Guest, Domain Users, and everything in the container Builtin, and that the configuration does not
// ask for.
func (r *realm) isBuiltin(e *goldap.Entry) bool {
	if r.builtin {
		return false
	}
	name := e.GetEqualFoldAttributeValue(accountName)
	sid := e.GetEqualFoldRawAttributeValue(securityID)
	return strings.EqualFold(e.GetEqualFoldAttributeValue(critical), "true") ||
		strings.HasPrefix(strings.ToLower(name), "krbtgt") || strings.EqualFold(name, "DnsAdmins") ||
		strings.EqualFold(name, "DnsUpdateProxy") ||
		strings.HasPrefix(sidText(sid), "S-1-5-32-") || strings.HasPrefix(sidText(sid), "S-1-5-21-") &&
		binary.LittleEndian.Uint32(sid[len(sid)-4:]) < firstRID
}

// primaryKey returns the key of the primary group of a person, which its members do not have: by
// the RID of Active Directory, and by gidNumber elsewhere.
func (s *scan) primaryKey(e *goldap.Entry) (k key, ok bool) {
	if !s.activeDirectory {
		return s.numberKey(e)
	}
	sid, rid := e.GetEqualFoldRawAttributeValue(securityID), number(e, primaryGroupID)
	if sidText(sid) == "" || len(sid) < 12 || rid <= 0 || rid >= 1<<32 {
		return key{}, false
	}
	of := append([]byte{}, sid...)
	binary.LittleEndian.PutUint32(of[len(of)-4:], uint32(rid))
	return s.keys.other(sidText(of)), true
}

// ownKey returns the key that primaryKey returns for the people of a group.
func (s *scan) ownKey(e *goldap.Entry) (k key, ok bool) {
	if !s.activeDirectory {
		return s.numberKey(e)
	}
	sid := sidText(e.GetEqualFoldRawAttributeValue(securityID))
	return s.keys.other(sid), sid != ""
}

func (s *scan) numberKey(e *goldap.Entry) (k key, ok bool) {
	n := e.GetEqualFoldAttributeValue(groupNumber)
	return s.keys.other("gid " + n), n != ""
}
