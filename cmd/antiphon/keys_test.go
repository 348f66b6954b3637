// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A key is shown once, a list has no secret, and a revoked key stays in it.
func TestKeysCommands(t *testing.T) {
	env := []string{"XDG_DATA_HOME=" + t.TempDir()}
	keys := func(code int, args ...string) outcome {
		t.Helper()
		o := programEnv(t, env, append([]string{"keys"}, args...)...)
		if o.code != code {
			t.Errorf("%v: exit code %d: %s%s", args, o.code, o.out, o.err)
		}
		return o
	}
	sent := strings.TrimSpace(keys(exitOK, "create", "ci", "--project", "shop", "--expires", "90d", "--requests", "60", "--cost", "5", "--trial").out)
	secret := sent[strings.LastIndex(sent, "_")+1:]
	if !strings.HasPrefix(sent, "antiphon_") || len(secret) != 26 {
		t.Fatal(sent)
	}
	for _, want := range []string{"already expired", "is not a scope", "not a time", "there is a key"} {
		args := map[string][]string{
			"already expired": {"create", "x", "--expires", "2020-01-01"}, "is not a scope": {"create", "x", "--scopes", "root"},
			"not a time": {"create", "x", "--expires", "soon"}, "there is a key": {"create", "ci"},
		}[want]
		if o := keys(exitUsage, args...); !strings.Contains(o.err, want) {
			t.Errorf("%v: %s", args, o.err)
		}
	}
	for _, list := range []string{keys(exitOK, "list").out, keys(exitOK, "list", "--json").out} {
		if strings.Contains(list, secret) || strings.Contains(list, "sha256") || !strings.Contains(list, "shop") || !strings.Contains(list, "60") {
			t.Error(list)
		}
	}
	if o := keys(exitOK, "revoke", "ci"); !strings.Contains(o.err, "warning: no key is valid any more") || !strings.Contains(o.err, "keys.json none is needed") {
		t.Error(o.err)
	}
	keys(exitUsage, "revoke", "ci")
	if list := keys(exitOK, "list").out; !strings.Contains(list, "revoked 2") || !strings.Contains(list, "60 requests/min, 5/day, trial") {
		t.Error(list)
	}
	for _, args := range [][]string{{"create", "x", "--requests", "0"}, {"create", "x", "--tokens=-1"}, {"create", "x", "--runs", "0"}, {"create", "x", "--cost", "0"}} {
		if o := keys(exitUsage, args...); !strings.Contains(o.err, strings.SplitN(args[2], "=", 2)[0]) || !strings.Contains(o.err, "leave it out") {
			t.Errorf("%v: %s", args, o.err)
		}
	}
	keys(exitOK, "create", "cheap", "--cost", "0.000001")
	if list := keys(exitOK, "list").out; !strings.Contains(list, "0.000001/day") {
		t.Error(list)
	}
	missing := filepath.Join(t.TempDir(), "nosuch")
	for _, args := range [][]string{{"keys", "list", "--keys", missing}, {"usage", "--usage", missing}} {
		if o := programEnv(t, env, args...); o.code != exitUsage || !strings.Contains(o.err, "nosuch") {
			t.Errorf("%v: exit code %d: %s%s", args, o.code, o.out, o.err)
		}
	}
	agent := write(t, filepath.Join(t.TempDir(), "it.md"), "<config model=\"rehearsal\"/>\n")
	for _, flag := range []string{"--max-runs", "--max-connections", "--max-body"} {
		if o := programEnv(t, env, "serve", agent, flag, "0", "--check"); o.code != exitUsage || !strings.Contains(o.err, flag+" 0") {
			t.Errorf("%s: exit code %d: %s", flag, o.code, o.err)
		}
	}
	if o := programEnv(t, env, "serve", agent, "--owner", "me", "--listen", "127.0.0.1:0"); o.code != exitUsage || !strings.Contains(o.err, "their project owns the sessions: leave --owner out") {
		t.Error(o.code, o.err)
	}
}

// An address of IPv4 opens none of IPv6. V6
func TestNetworkOf(t *testing.T) {
	for address, want := range map[string]string{"0.0.0.0:80": "tcp4", "127.0.0.1:0": "tcp4", "[::]:80": "tcp", "[::1]:80": "tcp", ":80": "tcp", "localhost:80": "tcp", "no port": "tcp"} {
		if got := networkOf(address); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
}

// An address that another program has is explained, not only refused.
func TestPortTaken(t *testing.T) {
	other, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	at := other.Addr().String()
	agent := write(t, filepath.Join(t.TempDir(), "it.md"), "<config model=\"rehearsal\"/>\n")
	env := []string{"XDG_DATA_HOME=" + t.TempDir()}
	for flag, args := range map[string][]string{
		"--listen":  {"serve", agent, "--listen", at},
		"--metrics": {"work", "--agents", filepath.Dir(agent), "--metrics", at, "--once"},
	} {
		want := flag + " " + at + ": another program listens there\n  hint: end it, or name another port; port 0 takes a free one"
		if o := programEnv(t, env, args...); o.code == exitOK || runtime.GOOS != "windows" && !strings.Contains(o.err, want) {
			t.Errorf("%v: %d, %s", args, o.code, o.err)
		}
	}
}
