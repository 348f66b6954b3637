// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// setEnv sets a variable of the command.
func (r *Run) setEnv(name, value string) {
	r.cmd.Env = append(slices.DeleteFunc(slices.Clone(r.cmd.Env), func(v string) bool {
		return strings.HasPrefix(v, name+"=")
	}), name+"="+value)
}

// setCaches tells programs where their caches and temporary files are: in the temporary
// folder, as the program sees it. A cache that programs shared would let one change what
// the next one builds. The cache of the Go compiler is the user's if the program has a
// folder of its own over it.
func (r *Run) setCaches(temp, goCache string) {
	// The one of this process was passed on, and is not what the program can use.
	r.cmd.Env = slices.DeleteFunc(slices.Clone(r.cmd.Env), func(v string) bool { return v == "GOCACHE="+os.Getenv("GOCACHE") })
	given := slices.ContainsFunc(r.cmd.Env, func(v string) bool { return strings.HasPrefix(v, "GOCACHE=") })
	r.setEnv("TMPDIR", temp)
	r.setEnv("XDG_CACHE_HOME", filepath.Join(temp, ".cache"))
	r.setEnv("npm_config_cache", filepath.Join(temp, ".npm"))
	if goCache != "" && !given {
		r.setEnv("GOCACHE", goCache)
	}
}

// temporary returns the program's temporary folder and makes it if the profile names
// none.
func (r *Run) temporary(base string) (string, error) {
	if r.profile.Temp != "" {
		return filepath.EvalSymlinks(r.profile.Temp)
	}
	dir := filepath.Join(base, "tmp")
	return dir, os.Mkdir(dir, 0o700)
}

// scratch makes a folder that is deleted after the run.
func (r *Run) scratch() (string, error) {
	dir, err := os.MkdirTemp("", "antiphon-")
	if err != nil {
		return "", fmt.Errorf("sandbox: no temporary folder: %w", err)
	}
	r.cleanup = append(r.cleanup, func() { removeAll(dir) })
	return filepath.EvalSymlinks(dir)
}

// removeAll removes a folder, also if the program took away its permissions.
func removeAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // what remains is in the temporary folder
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// proxyVariables returns the variables by which programs find a proxy.
func proxyVariables(address string) [][2]string {
	u := "http://" + address
	const own = "localhost,127.0.0.1,::1" // servers that the program starts itself
	return [][2]string{
		{"HTTP_PROXY", u}, {"http_proxy", u}, {"HTTPS_PROXY", u}, {"https_proxy", u}, {"ALL_PROXY", u}, {"all_proxy", u},
		{"NO_PROXY", own}, {"no_proxy", own}, {"NODE_USE_ENV_PROXY", "1"},
	}
}
