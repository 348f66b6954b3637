// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/host"
)

// A10: the values of variables with secret names are secrets, and ordinary settings are
// not: to hide those would garble the outputs of tools.
func TestSecretVariables(t *testing.T) {
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "sk", "ANTIPHON_STORE_SECRET": "short", "GITHUB_TOKEN": "ghp_0123456789", "AWS_SECRET_ACCESS_KEY": "/wJalrXUtnFEMI/K7MDENG", "AWS_SESSION_TOKEN": "FwoGZXIvYXdzE",
		"npm_config__authToken": "npm_0123456", "DB_PASSWORD": "hunter2hunter2", "PGPASSWORD": "hunter2hunter2", "MYSQL_PWD": "hunter2hunter2", "SMTP_PASS": "hunter2hunter2", "GH_PAT": "ghp_0123456789",
		"STRIPE_KEY": "rk_live_0123", "SESSION_SECRET": "0123456789", "COOKIE": "sid=0123456789", "GPG_PASSPHRASE": "correct horse", "API_TOKEN": "abcdefghijklmnopqrst", "MY_CREDENTIALS": "user:0123456",
	} {
		if got := (host.Environment{name: value}).Secrets(); !slices.Equal(got, []string{value}) {
			t.Errorf("%s=%s: %q", name, value, got)
		}
	}
	for name, value := range map[string]string{
		"PATH": "/usr/bin:/bin", "PWD": "/home/me/project", "OLDPWD": "/home/me/project", "HOME": "/home/me/dir", "SSH_AUTH_SOCK": "/tmp/ssh-x/agent.1", "SESSION_MANAGER": "local/host:@/tmp/.ICE-unix/1", "XAUTHORITY": "/home/me/.Xauthority",
		"DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1000/bus", "XDG_SESSION_TYPE": "wayland-0", "DESKTOP_SESSION": "ubuntu-xorg", "GIT_AUTHOR_NAME": "Ann Example", "GIT_AUTHOR_EMAIL": "ann@example.org", "TOKENIZERS_PARALLELISM": "false-or-true",
		"GOOGLE_APPLICATION_CREDENTIALS": "/home/me/key.json", "AWS_ACCESS_KEY_ID": "AKIA0123456789", "DB_PASSWORD": "password", "API_KEY": "ollama", "TOKEN": "12345", "KEYBOARD_LAYOUT": "us-intl-dead", "PASSWORD_FILE": "/run/secrets/db", "": "0123456789",
		"DATABASE_URL": "postgres://me@db.example/app", "EDITOR": "vim --clean",
	} {
		if got := (host.Environment{name: value}).Secrets(); len(got) > 0 {
			t.Errorf("%s=%s: %q", name, value, got)
		}
	}
	for value, want := range map[string]string{
		"postgres://me:12/0123456789@db.example:5432/app": "12/0123456789", "postgres://me:ab/0123456789@db.example/app": "ab/0123456789",
		"postgres://me:p%zz0123456789@db.example/app": "p%zz0123456789", "https://example.org/@someone-else": "", "http://127.0.0.1:5173/@vite/client": "",
	} {
		if got := strings.Join((host.Environment{"ANTIPHON_STORE": value}).Secrets(), " "); got != want {
			t.Errorf("%s: %q", value, got)
		}
	}
	pem := "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nshort\n-----END KEY-----"
	env := host.Environment{"TLS_KEY": pem, "DATABASE_URL": "postgres://me:p%40ssw0rd-1@db.example/app", "A_TOKEN": "0123456789", "B_TOKEN": "0123456789-longer", "C_TOKEN": "0123456789"}
	want := []string{pem, "MIIEvQIBADANBgkqhkiG9w0B", "0123456789-longer", "p@ssw0rd-1", "0123456789"}
	if got := env.Secrets(); len(got) != len(want) || got[0] != pem || got[len(got)-1] != want[len(want)-1] && got[len(got)-2] != "0123456789" {
		t.Errorf("%q", got)
	}
	text := env.Hide("db postgres://me:p%40ssw0rd-1@db.example/app, 0123456789-longer, MIIEvQIBADANBgkqhkiG9w0B, p@ssw0rd-1, " + strings.ReplaceAll(pem, "\n", `\n`))
	if text != "db postgres://me:[redacted]@db.example/app, [redacted], [redacted], [redacted], [redacted]" {
		t.Error(text)
	}
	if got := (host.Environment{}).Hide("same"); got != "same" {
		t.Error(got)
	}
}
