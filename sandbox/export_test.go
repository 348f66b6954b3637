// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
)

// names are the addresses of names in tests, which ask no name server.
var names sync.Map

// Name sets the address of a name below .example, for the tests of this process.
func Name(name, address string) { names.Store(name, netip.MustParseAddr(address)) }

func init() {
	lookup = func(_ context.Context, _, name string) ([]netip.Addr, error) {
		if addr, ok := names.Load(strings.TrimSuffix(name, ".")); ok {
			return []netip.Addr{addr.(netip.Addr)}, nil
		}
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
}
