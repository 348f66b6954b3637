// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package publicip tells the addresses of the public internet from others.
package publicip

import (
	"net/netip"
	"strings"
)

// Special describes an address that does not belong to the public internet,
// and returns "" for one that does. It follows the special-purpose registries of
// IANA. An address that stands for an IPv4 address is judged as the latter.
func Special(a netip.Addr) string {
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
		return Special(netip.AddrFrom4([4]byte(b[12:])))
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

const metadata = "a metadata address of a cloud"

// special lists the ranges, narrower ones first.
var special = func() (list []struct {
	prefix netip.Prefix
	kind   string
}) {
	for _, s := range []struct{ kind, prefixes string }{
		{metadata, "169.254.169.254/32 169.254.170.2/32 100.100.100.200/32 168.63.129.16/32 192.0.0.192/32 fd00:ec2::/32 fd20:ce::254/128"},
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

// EndsInNumber reports whether the last label of a host makes the host an
// address according to the URL standard, as in 127.1, 0x7f000001 and
// 017700000001.
func EndsInNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

// Metadata reports whether an address is one at which clouds tell their machines secrets.
func Metadata(a netip.Addr) bool { return Special(a) == metadata }
