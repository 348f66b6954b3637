// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/internal/publicip"
)

// A host is an entry of Profile.Hosts.
type host struct {
	name string     // in lower case, or "" for an address
	any  bool       // all names below name, and not name itself
	addr netip.Addr // if name is ""
	port uint16     // or 0 for the ports of the web
}

// parseHosts reads the entries of a profile.
func parseHosts(entries []string) ([]host, error) {
	list := make([]host, len(entries))
	for i, entry := range entries {
		h, err := parseHost(entry)
		if err != nil {
			return nil, fmt.Errorf("sandbox: the host %q %w", entry, err)
		}
		list[i] = h
	}
	return list, nil
}

var errNotHost = errors.New("is not the name of a host: write names as in example.com or *.example.com, without https:// and paths, and those of other alphabets as xn--…")

func parseHost(entry string) (h host, err error) {
	name := entry
	if strings.ContainsAny(entry, "/@") {
		return h, errNotHost
	}
	if addr, err := netip.ParseAddr(strings.Trim(entry, "[]")); err == nil {
		name = addr.String()
	} else if strings.Contains(entry, ":") {
		var port string
		if name, port, err = net.SplitHostPort(entry); err != nil {
			return h, errors.New("cannot be read: write a name or an address, and a port if it is not 443 or 80, such as example.com:8443 or [::1]:5000")
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return h, fmt.Errorf("has the port %q: a port is a number from 1 to 65535", port)
		}
		h.port = uint16(n)
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		if addr.Zone() != "" {
			return h, errors.New("has a zone: write the address without it")
		}
		h.addr = addr.Unmap()
		return h, nil
	}
	rest, wild := strings.CutPrefix(name, "*.")
	if h.name, h.any = plainName(rest), wild; h.name == "" {
		return h, errNotHost
	}
	return h, nil
}

// String returns the entry in its one form.
func (h host) String() string {
	name := h.name
	switch {
	case name == "":
		name = h.addr.String()
	case h.any:
		name = "*." + name
	}
	if h.port != 0 {
		return net.JoinHostPort(name, strconv.Itoa(int(h.port)))
	}
	return name
}

// covers reports whether an entry allows all that another one does.
func (h host) covers(o host) bool {
	ports := h.port == o.port || h.port == 0 && (o.port == 443 || o.port == 80)
	switch {
	case h == o:
		return true
	case !ports, (h.name == "") != (o.name == ""):
		return false
	case h.name == "":
		return h.addr == o.addr
	case !o.any && o.port != 0: // which may lead to private addresses
		return false
	case h.any:
		return strings.HasSuffix(o.name, "."+h.name) || o.any && o.name == h.name
	}
	return !o.any && o.name == h.name
}

// entryFor returns the entry that allows a host and port, or "" if none does.
func entryFor(name string, port uint16, exactly bool) string {
	entry := net.JoinHostPort(name, strconv.Itoa(int(port)))
	if !exactly && (port == 443 || port == 80) {
		entry = name
	}
	h, err := parseHost(entry)
	if err != nil {
		return ""
	}
	return h.String()
}

// plainName returns the name of a host in lower case and without a dot at its end, or ""
// if it is not one. A name that systems may read as an address, such as 0x7f.1, is not one.
func plainName(name string) string {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "" || len(name) > 253 {
		return ""
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return ""
		}
	}
	if publicip.EndsInNumber(labels[len(labels)-1]) {
		return ""
	}
	return name
}

// onPort reports whether an entry is about a port.
func (h host) onPort(port uint16) bool {
	return h.port == port || h.port == 0 && (port == 443 || port == 80)
}

// names reports whether an entry names a host and port.
func (h host) names(name string, port uint16) bool {
	if h.name == "" || !h.onPort(port) {
		return false
	}
	if h.any {
		return strings.HasSuffix(name, "."+h.name)
	}
	return name == h.name
}

// A refusal says that a program asked for a host that it may not reach.
type refusal struct {
	host  string // with its port
	why   string // if the host is named in the profile, or ""
	entry string // the entry of a profile that would allow it, or ""
}

func (r *refusal) Error() string {
	text := "the sandbox does not allow the network: " + r.host
	if r.why != "" {
		text += " (" + r.why + ")"
	}
	return text
}

// allowed returns which addresses of a host a program may reach: resolve looks up the
// addresses of a name.
func allowed(hosts []host, name string, port uint16, resolve func(name string) ([]netip.Addr, error)) ([]netip.Addr, error) {
	target := net.JoinHostPort(name, strconv.Itoa(int(port)))
	if addr, err := netip.ParseAddr(name); err == nil {
		plain := addr.Unmap()
		if addr.Zone() == "" && slices.ContainsFunc(hosts, func(h host) bool { return h.name == "" && h.addr == plain && h.onPort(port) }) {
			return []netip.Addr{plain}, nil
		}
		return nil, &refusal{host: target, entry: entryFor(name, port, false)}
	}
	plain := plainName(name)
	named, exactly := false, false
	for _, h := range hosts {
		if plain != "" && h.names(plain, port) {
			named, exactly = true, exactly || !h.any && h.port != 0
		}
	}
	if !named {
		return nil, &refusal{host: target, entry: entryFor(name, port, false)}
	}
	addrs, err := resolve(plain)
	if err != nil {
		return nil, err
	}
	var list []netip.Addr
	why, entry := "it has no address", ""
	for _, addr := range addrs {
		if addr = addr.Unmap(); addr.Zone() != "" {
			continue
		}
		kind := publicip.Special(addr)
		own := (addr.IsLoopback() || addr.IsPrivate()) && !publicip.Metadata(addr)
		if kind == "" || exactly && own {
			list = append(list, addr)
			continue
		}
		if own {
			entry = entryFor(plain, port, true)
		}
		why = fmt.Sprintf("its address %v is %s; the profile must name it with its port, or the address itself", addr, kind)
	}
	if len(list) == 0 {
		return nil, &refusal{target, why, entry}
	}
	return list, nil
}
