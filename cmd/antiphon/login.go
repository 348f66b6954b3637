// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/zalando/go-keyring"
	"golang.org/x/term"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/filelock"
	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/internal/private"
	"github.com/antiphon-go/antiphon/internal/show"
)

// endpointService is the name in keyrings under which the keys of endpoints are.
const endpointService = "antiphon endpoints"

// keptKey is a line of the list of keys. The list says which keys there are, so that no keyring
// is asked for others; it holds those that are not in a keyring.
type keptKey struct {
	URL string `json:"url"`           // the key goes there, and to what is below it
	Key string `json:"key,omitempty"` // "" means that it is in the keyring
}

// where returns where a key is.
func (k *keptKey) where(env environment) string {
	if k.Key == "" {
		return "the keyring"
	}
	return keptFile(env)
}

// keptFile returns the file with the list of keys, or "" if the environment names no home.
func keptFile(env environment) string {
	folder := settingsFolder(env)
	if folder == "" {
		return ""
	}
	return filepath.Join(folder, "keys")
}

// The largest list of keys, and the longest key, in bytes.
const (
	maxKept = 1 << 20
	maxKey  = 16 << 10
)

// readKept reads the list of keys. Errors do not quote it.
func readKept(env environment) (list []keptKey, err error) {
	path := keptFile(env)
	if path == "" {
		return nil, nil
	}
	text, err := private.ReadFile(path, maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		var info fs.FileInfo
		if info, err = os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			err = fmt.Errorf("others may read the file (mode %04o); chmod 600 it, and think about new keys", info.Mode().Perm())
		}
	}
	if err != nil {
		return nil, usage(fmt.Errorf("%s holds keys: %w", path, err))
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, usage(fmt.Errorf("%s is not a list of keys; move it away, and log in again", path))
	}
	return list, nil
}

// changeKept changes the list of keys. The file is replaced as a whole, and only its owner can
// read it.
func changeKept(env environment, change func(list []keptKey) ([]keptKey, error)) (err error) {
	path := keptFile(env)
	if path == "" {
		return usage(errors.New("the environment names no home folder to keep keys in"))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock, err := filelock.Take(path + ".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	list, err := readKept(env)
	if err != nil {
		return err
	}
	if list, err = change(list); err != nil {
		return err
	}
	if len(list) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.Marshal(list, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".keys-") // nobody else can read it from the beginning
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// loginCommand is antiphon login.
type loginCommand struct {
	Name      string `arg:"" name:"endpoint-name" help:"An endpoint: a name of the settings, openai, a host such as openrouter.ai, or a URL."`
	NoKeyring bool   `name:"no-keyring" help:"Keep the key in a file that only you can read, and not in the keyring."`
}

// Help is shown by antiphon login --help.
func (loginCommand) Help() string {
	return `Keeps a key for an endpoint, and sends it to that host only. The key is typed at the
terminal, without showing it, or read from standard input; it is never an argument, which
other users could see. It goes to the keyring of the system, or to the file keys beside
your settings if there is none.

OPENAI_API_KEY has precedence for the endpoint of OPENAI_BASE_URL, or OpenAI's.

Examples:
  antiphon login openai
  antiphon login router
  pass show openrouter | antiphon login https://openrouter.ai/api/v1`
}

// errPlace does not repeat the name, which may be a key.
var errPlace = usage(errors.New("name an endpoint: a name of the settings, openai, a host such as openrouter.ai, or a URL; the key itself is never an argument"))

// hostName matches a host as people type it. Keys have capital letters, or no dot.
var hostName = lazyregexp.New(`^(localhost|[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)+)(:[0-9]{1,5})?$`)

// place returns the base URL that a key is kept for: without /v1, which may be left out of
// base URLs.
func (s *settings) place(name string) (string, error) {
	address := s.endpoint(name)
	switch {
	case address != name:
	case name == "openai":
		address = endpoint.DefaultBaseURL
	case strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://"):
	case !hostName.MatchString(name) || len(name) > 100 || strings.HasPrefix(name, "sk-"):
		return "", errPlace
	case here(strings.Split(name, ":")[0]):
		address = "http://" + name
	default:
		address = "https://" + name
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", errPlace
	}
	return u.Scheme + "://" + strings.ToLower(u.Host) + strings.TrimSuffix(strings.TrimRight(u.EscapedPath(), "/"), "/v1"), nil
}

// Run keeps a key.
func (c *loginCommand) Run(ctx context.Context, std stdio, env environment, own settings) error {
	place, err := own.place(c.Name)
	if err != nil {
		return err
	}
	key, err := askKey(ctx, std, place)
	if err != nil {
		return err
	}
	kept, because := keptKey{URL: place}, ""
	err = changeKept(env, func(list []keptKey) ([]keptKey, error) {
		if c.NoKeyring {
			kept.Key = key.Reveal()
			if i := slices.IndexFunc(list, kept.same); i >= 0 && list[i].Key == "" {
				_ = ringDelete(endpointService, place) // an old one, which is not used any more
			}
		} else if err := ringSet(endpointService, place, key.Reveal()); err != nil {
			kept.Key, because = key.Reveal(), fmt.Sprintf(", because no keyring can be used (%s)", show.Unbroken(key.Hide(err.Error())))
		}
		return append(slices.DeleteFunc(list, kept.same), kept), nil
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.err, "antiphon: the key for %s is kept in %s%s; antiphon logout %s forgets it\n", place, show.Visible(kept.where(env)), because, quoted(c.Name))
	return err
}

// same reports whether another key is for the same place.
func (k *keptKey) same(other keptKey) bool { return other.URL == k.URL }

// askKey reads a key from the terminal, without showing it, or from standard input.
func askKey(ctx context.Context, std stdio, place string) (endpoint.Key, error) {
	var text []byte
	var err error
	none := "there is no key on standard input"
	if in, ok := std.in.(*os.File); ok && show.IsTerminal(in) {
		fmt.Fprintf(std.err, "the key for %s (it is not shown): ", place)
		text, err = readHidden(ctx, int(in.Fd()))
		fmt.Fprintln(std.err)
		none = "no key was typed; nothing was kept"
	} else {
		text, err = io.ReadAll(io.LimitReader(std.in, maxKey+1))
	}
	if err != nil {
		return endpoint.Key{}, err
	}
	key := endpoint.NewKey(string(text))
	strange := func(r rune) bool { return r <= ' ' || r > '~' }
	switch {
	case key.IsZero():
		return key, usage(errors.New(none))
	case len(text) > maxKey || strings.ContainsFunc(key.Reveal(), strange):
		return key, usage(errors.New("what was read is not a key: a key is one word of letters, digits and signs"))
	}
	return key, nil
}

// readHidden reads a line from a terminal without showing it. If ctx ends, the terminal is as it
// was.
func readHidden(ctx context.Context, fd int) ([]byte, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		if errors.Is(l.err, io.EOF) {
			return l.text, nil
		}
		return l.text, l.err
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), term.Restore(fd, before))
	}
}

// logoutCommand is antiphon logout.
type logoutCommand struct {
	Name string `arg:"" name:"endpoint-name" help:"The endpoint, as for login."`
}

// Run forgets a key.
func (c *logoutCommand) Run(std stdio, env environment, own settings) error {
	place, err := own.place(c.Name)
	if err != nil {
		return err
	}
	old := keptKey{URL: place}
	err = changeKept(env, func(list []keptKey) ([]keptKey, error) {
		i := slices.IndexFunc(list, old.same)
		if i < 0 {
			return nil, usage(fmt.Errorf("no key is kept for %s; antiphon config lists those that are", place))
		}
		if list[i].Key == "" {
			if err := ringDelete(endpointService, place); err != nil && !errors.Is(err, keyring.ErrNotFound) {
				return nil, fmt.Errorf("the keyring does not forget the key for %s: %w", place, err)
			}
		}
		return slices.Delete(list, i, i+1), nil
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.err, "antiphon: the key for %s is forgotten; it stays valid until you revoke it at the endpoint\n", place)
	return err
}

// withKept returns the environment with the keys that the person keeps. One that cannot be read
// is told and left out. The endpoints of the settings that have no key get none: -m NAME does
// not show where it goes, so OPENAI_API_KEY must not go there with it.
func (s *settings) withKept(env environment, w io.Writer) (environment, error) {
	list, err := readKept(env)
	if err != nil {
		return env, err
	}
	for _, k := range list {
		text := k.Key
		if text == "" {
			if text, err = ringGet(endpointService, k.URL); err != nil {
				fmt.Fprintf(w, "antiphon: the key for %s cannot be read from the keyring: %s\n", show.Visible(k.URL), show.Printable(err.Error()))
				continue
			}
		}
		env = env.WithKey(k.URL, endpoint.NewKey(text))
	}
	for _, name := range s.keyless(list) {
		if place, err := s.place(name); err == nil {
			env = env.WithKey(place, endpoint.Key{})
		}
	}
	return env, nil
}

// asksEndpoints reports whether a command may ask an endpoint, or hides keys in what leaves the
// machine. Others read no keys, because a keyring may ask the person to open it.
func asksEndpoints(command string) bool {
	asking := []string{"run", "ask", "chat", "serve", "mcp", "sessions compact", "sessions export", "work start", "doctor", "models"}
	return slices.ContainsFunc(asking, func(one string) bool { return strings.HasPrefix(command+" ", one+" ") })
}

// keyless returns the endpoints of the settings for which no key is kept.
func (s *settings) keyless(kept []keptKey) (names []string) {
	for name := range s.endpoints {
		place, err := s.place(name)
		has := func(k keptKey) bool { return place == k.URL || strings.HasPrefix(place+"/", k.URL+"/") }
		if err == nil && !slices.ContainsFunc(kept, has) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// here reports whether a host is this machine.
func here(name string) bool {
	address, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && address.IsLoopback()
}
