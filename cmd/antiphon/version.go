// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by release builds with -ldflags "-X main.version=…".
var version = ""

type versionCommand struct {
	SBOM bool `name:"sbom" help:"Print the modules that the program is built from, as a CycloneDX document."`
}

// Run prints the program's version, the Go version and the platform, or what it is built
// from.
func (c versionCommand) Run(std stdio) error {
	if c.SBOM {
		return writeSBOM(std.out)
	}
	_, err := fmt.Fprintf(std.out, "antiphon %s %s %s/%s\n", programVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

func programVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
