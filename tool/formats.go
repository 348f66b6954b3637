// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/tool/output"
)

// formatNames are the formats that JSON Schema defines.
var formatNames = []string{
	"date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6", "uri", "uri-reference",
	"iri", "iri-reference", "uuid", "uri-template", "json-pointer", "relative-json-pointer", "regex",
}

// formats are the formats that can be checked: those with one definition that
// programs agree on. All others are left to the model.
var formats = map[string]func(string) bool{
	"date-time": isDateTime,
	"date":      func(s string) bool { return dateForm.MatchString(s) && isTime(time.DateOnly, s) },
	"time":      func(s string) bool { return timeForm.MatchString(s) && isDateTime("2000-01-01T"+s) },
	"email":     isEmail,
	"uri":       isURI,
	"uuid":      uuidForm.MatchString,
	"ipv4":      func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() },
	"ipv6":      func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is6() && a.Zone() == "" },
}

var (
	dateForm     = lazyregexp.New(`^\d{4}-\d\d-\d\d$`)
	timeForm     = lazyregexp.New(`^\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$`)
	dateTimeForm = lazyregexp.New(`^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$`)
	uuidForm     = lazyregexp.New(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
)

// isDateTime reports whether a text is a date and time of RFC 3339.
func isDateTime(s string) bool {
	if !dateTimeForm.MatchString(s) {
		return false
	}
	s = strings.ToUpper(s)
	if s[17:19] == "60" { // a leap second, which package time does not know
		s = s[:17] + "59" + s[19:]
	}
	return isTime(time.RFC3339, s)
}

func isTime(layout, s string) bool {
	_, err := time.Parse(layout, s)
	return err == nil
}

// isEmail reports whether a text is an address such as name@host. Letters of any
// language are accepted. Quoted names, which hardly any mail server accepts, are not.
func isEmail(s string) bool {
	i := strings.LastIndexByte(s, '@')
	if i < 1 || i > 64 || len(s) > 254 || i == len(s)-1 {
		return false
	}
	name, host := s[:i], s[i+1:]
	if address, ok := strings.CutPrefix(host, "["); ok {
		address, ok = strings.CutSuffix(address, "]")
		_, err := netip.ParseAddr(strings.TrimPrefix(address, "IPv6:"))
		return ok && err == nil && isDotted(name, 64)
	}
	return isDotted(name, 64) && isDotted(host, 63) && !strings.ContainsAny(host, "!#$%&'*+/=?^_`{|}~") && !strings.Contains("."+host+".", ".-") && !strings.Contains("."+host+".", "-.")
}

// isDotted reports whether a text is words separated by dots.
func isDotted(s string, longest int) bool {
	for word := range strings.SplitSeq(s, ".") {
		if word == "" || len(word) > longest || strings.ContainsAny(word, "()<>[]:;@\\,\" ") || strings.ContainsFunc(word, func(r rune) bool { return r < ' ' || r == 0x7F }) {
			return false
		}
	}
	return true
}

// isURI reports whether a text is a URI with a scheme, in ASCII, as RFC 3986 defines
// it.
func isURI(s string) bool {
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r) }) {
		return false
	}
	u, err := url.Parse(s)
	return err == nil && u.IsAbs()
}

// inFormat accepts texts of a format.
func inFormat(name string, ok func(string) bool) assertion {
	return assertion{
		length: anyLength,
		ok:     func(v any) bool { s, is := v.(string); return !is || ok(s) },
		why: func(v any) string {
			return fmt.Sprintf("format: %s is not a text of the format %s", output.Clip(canonical(v), maxValueText), name)
		},
	}
}
