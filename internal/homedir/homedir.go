// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package homedir finds the user's home folder, whose hidden files need protection also in a
// process without the variable HOME.
package homedir

import (
	"errors"
	"os"
	"os/user"
)

// Folder returns the home folder: that of the environment, or if it names none, that of the
// system's list of users.
func Folder() (string, error) {
	if folder, err := os.UserHomeDir(); err == nil {
		return folder, nil
	}
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	if u.HomeDir == "" {
		return "", errors.New("the home folder is not known")
	}
	return u.HomeDir, nil
}
