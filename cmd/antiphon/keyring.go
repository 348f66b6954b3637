// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/zalando/go-keyring"
)

// busVariable names the bus of a session on Unix, over which keyrings are asked.
const busVariable = "DBUS_SESSION_BUS_ADDRESS"

// withoutLaunch keeps the package for keyrings from starting a bus where there is none: the
// program dbus-launch would be taken from PATH, get all variables of this process, keys among
// them, and leave a daemon behind. The address that is set then is the usual socket, or nothing
// that can be reached.
func withoutLaunch() error {
	if os.Getenv(busVariable) != "" {
		return nil
	}
	address := "disabled:"
	socket := fmt.Sprintf("/run/user/%d/bus", os.Getuid())
	if _, err := os.Stat(socket); err == nil {
		address = "unix:path=" + socket
	}
	return os.Setenv(busVariable, address)
}

// ringGet returns a key of the system's keyring. The error is [keyring.ErrNotFound] if it has none
// of the name.
func ringGet(service, name string) (string, error) {
	if err := withoutLaunch(); err != nil {
		return "", err
	}
	return keyring.Get(service, name)
}

// ringSet puts a key into the system's keyring.
func ringSet(service, name, key string) error {
	if err := withoutLaunch(); err != nil {
		return err
	}
	return keyring.Set(service, name, key)
}

// ringDelete removes a key from the system's keyring.
func ringDelete(service, name string) error {
	if err := withoutLaunch(); err != nil {
		return err
	}
	return keyring.Delete(service, name)
}
