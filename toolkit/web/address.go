// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// maxURL is the longest URL that is asked for.
const maxURL = 8 << 10

// refusedError says that an address may not be reached.
type refusedError struct {
	addr netip.Addr
	kind string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("%v is %s, which this tool must not reach. Use a page of the public internet", e.addr, e.kind)
}

// checkURL reads the URL of a page, of the model's or of a redirect's making.
func (w *webPages) checkURL(raw string) (*url.URL, error) {
	raw = strings.TrimSpace(raw)
	if len(raw) > maxURL {
		return nil, fmt.Errorf("the URL has %d bytes; the limit is %d", len(raw), maxURL)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("not a URL: %s. Give the whole address, such as https://example.com/page", wording.Quoted(raw))
	}
	shown := wording.Quoted(raw)
	switch {
	case u.Scheme == "" || u.Scheme != "http" && u.Scheme != "https" && !strings.Contains(raw, "://"):
		return nil, fmt.Errorf("%s is not a whole URL. Begin it with https:// or http://", shown)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%s: only http and https can be read, not %s", shown, u.Scheme)
	case u.User != nil:
		// Not shown: it may hold a password.
		return nil, errors.New("the URL holds a user name or password, which this tool does not send. Leave out what stands before @")
	case u.Opaque != "" || u.Hostname() == "":
		return nil, fmt.Errorf("%s names no host", shown)
	case !utf8.ValidString(u.Host):
		return nil, fmt.Errorf("%s: the host is not valid text", shown)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("%s: %s is not a port", shown, port)
		}
	}
	u.Fragment, u.RawFragment = "", ""
	return u, w.checkHost(u.Hostname())
}

// checkHost refuses what can be seen before a name is looked up. Where a proxy
// looks it up, nothing else can be.
func (w *webPages) checkHost(host string) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		return w.checkAddr(addr)
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	last := name[strings.LastIndexByte(name, '.')+1:]
	if endsInNumber(last) {
		return fmt.Errorf("the host %s is an unusual spelling of an address, which is refused. Write it as four plain numbers, or use its name", wording.Quoted(host))
	}
	if w.options.Proxy == nil {
		return nil
	}
	if strings.IndexFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return fmt.Errorf("the host %s must be written in ASCII (xn--…) for the proxy", wording.Quoted(host))
	}
	if slices.Contains([]string{"localhost", "local", "localdomain", "internal", "lan", "home", "intranet"}, last) {
		return fmt.Errorf("the host %s is local, which this tool must not reach. Use a page of the public internet", wording.Quoted(host))
	}
	return nil
}

// endsInNumber reports whether the last label of a host makes it an address,
// by the URL standard: 127.1, 0x7f000001 and 017700000001 all are.
func endsInNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

// checkAddr refuses addresses that are not public and not allowed.
func (w *webPages) checkAddr(addr netip.Addr) error {
	plain := addr.Unmap().WithZone("")
	for _, p := range w.options.Allow {
		if p.Contains(plain) {
			return nil
		}
	}
	if kind := specialKind(plain); kind != "" {
		return &refusedError{addr: plain, kind: kind}
	}
	if addr.Zone() != "" {
		return &refusedError{addr: addr, kind: "an address with a zone"}
	}
	return nil
}

// specialKind says what an address is that does not belong to the public
// internet, or "". By the special-purpose registries of IANA; an address that
// stands for one of IPv4 is judged as that.
func specialKind(a netip.Addr) string {
	if !a.IsValid() {
		return "no address"
	}
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.kind
		}
	}
	if nat64.Contains(a) {
		b := a.As16()
		return specialKind(netip.AddrFrom4([4]byte(b[12:])))
	}
	if a.Is6() && !public6.Contains(a) {
		return "not a public address"
	}
	return ""
}

var (
	public6 = netip.MustParsePrefix("2000::/3")
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
)

// special lists ranges with the narrower ones first.
var special = func() (list []struct {
	prefix netip.Prefix
	kind   string
}) {
	for _, s := range []struct{ kind, prefixes string }{
		{"a metadata address of a cloud", "169.254.169.254/32 169.254.170.2/32 100.100.100.200/32 168.63.129.16/32 192.0.0.192/32 fd00:ec2::/32 fd20:ce::254/128"},
		{"a loopback address", "127.0.0.0/8 ::1/128"},
		{"an unspecified address", "0.0.0.0/8 ::/128"},
		{"a private address", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10"},
		{"a link-local address", "169.254.0.0/16 fe80::/10"},
		{"an address shared inside a provider's network", "100.64.0.0/10"},
		{"a multicast address", "224.0.0.0/4 ff00::/8"},
		{"a reserved address", "192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4"},
		{"a reserved address", "::/96 ::ffff:0:0/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 3fff::/20 5f00::/16"},
	} {
		for p := range strings.FieldsSeq(s.prefixes) {
			list = append(list, struct {
				prefix netip.Prefix
				kind   string
			}{netip.MustParsePrefix(p), s.kind})
		}
	}
	return list
}()
