// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/internal/private"
	"github.com/antiphon-go/antiphon/internal/reach"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/trust"
)

// A gate keeps a file, with all files that belong to it, within what a person agreed
// to. There is one for each load of a file by a caller. All that the file wants passes
// it: what is not agreed to is recorded as a power, and left out. See [Options.Consent].
type gate struct {
	inside []string // the file's folder and the workspace, with links resolved
	home   string   // with links resolved, or "" if not known
	agreed trust.Powers
	claim  trust.Claim
	// places are where in the files each power comes from first.
	places map[trust.Power]place
	// withheld means that an import or an agent was not read in this pass, so that the file may have
	// mistakes that it would not have otherwise.
	withheld bool
	unread   []string // what was withheld
	// reads means that the model gets to see more than the text of the files, and browses
	// are the tools of the endpoint that reach the web.
	reads   bool
	browses []browse
	// crowded is the place of a power for which there was no room.
	crowded place
	// texts are the files that were read, by their paths. A load reads each file once, so
	// that what a person agreed to is what is used.
	texts map[string][]byte
	// hashes are those of files that commands name, and hashed is how many bytes they have.
	hashes map[string]string
	hashed int64
	found  map[string]foundAt // by the paths of these files, before links are resolved
	// included is how many bytes of documents, images and files this pass has so far, and payload how many of payloads.
	included, payload int64
	earlier           *trust.Outputs // what calls of earlier runs left
}

func newGate(p places) *gate {
	g := &gate{texts: map[string][]byte{}, hashes: map[string]string{}, found: map[string]foundAt{}}
	for _, dir := range []string{p.promptDir, p.workspace} {
		g.inside = append(g.inside, resolved(dir))
	}
	if home := p.guardedHome(); home != "" {
		g.home = resolved(home)
	}
	return g
}

// resolved returns an absolute path with links resolved, as far as it exists.
func resolved(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolved(parent), filepath.Base(path))
}

// begin starts a pass over the file at path.
func (g *gate) begin(path string) {
	g.claim, g.withheld, g.places = trust.Claim{Path: path}, false, map[trust.Power]place{}
	g.reads, g.browses, g.crowded = false, nil, place{}
	g.included, g.payload = 0, 0
}

// includes counts what a file includes, and returns an error if all of it is too large.
func (g *gate) includes(size int, payload bool) error {
	sum, most, what := &g.included, maxSources, "the documents, images and files"
	if payload {
		sum, most, what = &g.payload, int64(maxPayload), "the payloads"
	}
	if *sum += int64(size); *sum > most {
		return fmt.Errorf("with it, %s are together larger than %d MiB", what, most>>20)
	}
	return nil
}

// place is where in a file something comes from.
type place struct {
	file         string
	line, column int
}

// String returns the place as errors have it.
func (p place) String() string { return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.column) }

// at returns the place of an element of the file.
func (f *File) at(e chatmd.Element) place {
	return place{cmp.Or(e.File, f.doc().Name), e.Line, e.Column}
}

// atConfig returns the place of the config, or the beginning of a file without one.
func (f *File) atConfig() place {
	if c := f.doc().Config; c != nil {
		return f.at(c.Element)
	}
	return place{f.doc().Name, 1, 1}
}

// mostPowers is how many powers a file may have: nobody reads a list that is longer.
const mostPowers = 1000

// wants records a power with its place, and reports whether the person agreed to it.
func (g *gate) wants(p trust.Power, at place) bool {
	if _, known := g.places[p]; !known && g.places != nil {
		g.places[p] = at
	}
	if len(g.claim.Powers) == mostPowers && !g.claim.Powers.Has(p) {
		g.crowded = at
		return false
	}
	g.claim.Powers.Add(p)
	return g.agreed.Has(p)
}

// belongs reports whether a file needs no agreement to be read: it is in the file's
// folder or in the workspace. Hidden files and folders of the home folder, such as
// .ssh, do not belong to a file that happens to lie there.
func (g *gate) belongs(real string) bool {
	return slices.ContainsFunc(g.inside, func(dir string) bool {
		if !within(dir, real) {
			return false
		}
		if g.home == "" || !within(dir, g.home) {
			return true
		}
		rest := strings.TrimPrefix(real, dir)
		return !slices.ContainsFunc(strings.Split(filepath.ToSlash(rest), "/"), func(name string) bool {
			return strings.HasPrefix(name, ".") && name != "." && name != ".chatmd"
		})
	})
}

// ownFolder returns the file's folder, which its programs may read: their scripts lie there.
// It returns none if the home folder is in it.
func (g *gate) ownFolder() []string {
	if g == nil || g.home != "" && within(g.inside[0], g.home) {
		return nil
	}
	return g.inside[:1:1]
}

// within reports whether path is dir or in it.
func within(dir, path string) bool {
	rest, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rest)
}

// ErrWithheld means that a file was not read, because it is outside and nobody agreed
// to that.
var ErrWithheld = errors.New("it is outside the file's folder and the workspace, and the file is not trusted")

// read reads an import or an agent with at most limit bytes, which an element at a place names.
func (g *gate) read(path string, limit int64, at place) ([]byte, error) {
	data, err := g.content(path, limit, at)
	g.withheld = g.withheld || errors.Is(err, ErrWithheld)
	return data, err
}

// content is like read for a file that declares nothing, such as a document: that it is missing is no
// reason for a mistake elsewhere.
func (g *gate) content(path string, limit int64, at place) ([]byte, error) {
	if data, ok := g.texts[path]; ok {
		_, err := g.mayRead(path, at)
		return data, err
	}
	real, err := g.mayRead(path, at)
	if err != nil {
		return nil, err
	}
	data, err := readAgreed(real, limit)
	if err == nil && g.texts != nil {
		g.texts[path] = data
	}
	return data, err
}

// forget drops the texts when the file is loaded.
func (g *gate) forget() { g.texts, g.hashes, g.found = nil, nil, nil }

// mayRead returns the file at path with links resolved, for [readAgreed], or [ErrWithheld] if it
// must not be read.
func (g *gate) mayRead(path string, at place) (real string, err error) {
	real = resolved(path)
	if !g.belongs(real) && !g.wants(trust.Power{Kind: trust.Reads, What: real}, at) {
		g.unread = append(g.unread, real)
		return "", ErrWithheld
	}
	return real, nil
}

// readRegular reads a regular file with at most limit bytes.
func readRegular(path string, limit int64) ([]byte, error) {
	file, _, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file, limit)
}

// readAgreed is readRegular for a path with links resolved: it follows none that took the place
// of the file or of a folder since then.
func readAgreed(real string, limit int64) ([]byte, error) {
	file, _, err := openAgreed(real)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file, limit)
}

// openRegular opens a regular file, and describes what is open.
func openRegular(path string) (*os.File, os.FileInfo, error) {
	file, info, err := private.Open(path)
	if errors.Is(err, private.ErrNotRegular) {
		err = errNotRegular
	}
	return file, info, plain(err)
}

var errNotRegular = errors.New("not a regular file")

// openAgreed is openRegular as [readAgreed] needs it. What is open is compared with what is at the
// path without links, because a path may lead elsewhere at each use.
func openAgreed(real string) (*os.File, os.FileInfo, error) {
	file, info, err := openRegular(real)
	if err != nil {
		return nil, nil, err
	}
	now, err := os.Lstat(real)
	if err != nil || resolved(real) != real || !os.SameFile(now, info) {
		_ = file.Close()
		return nil, nil, errors.New("another file took its place while it was read")
	}
	return file, info, nil
}

// readAll reads at most limit bytes.
func readAll(file io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, plain(err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("it is larger than %d MiB", limit>>20)
	}
	return data, nil
}

// mayList reports whether the model may use a folder, which a file declares for its tools. If
// its tools may write there, or its programs run there, that is another power.
func (g *gate) mayList(path string, writes bool, at place) bool {
	real := resolved(path)
	folder := strings.TrimSuffix(real, string(filepath.Separator)) + string(filepath.Separator)
	kind := trust.Reads
	if writes {
		kind = trust.Changes
	}
	return g.belongs(real) || g.wants(trust.Power{Kind: kind, What: folder}, at)
}

// source records a parsed file and its imports, and the endpoint that it names.
func (g *gate) source(path string, f *File, o Options) {
	g.claim.AddSource(f.asSource(path, o.Known))
	for _, src := range f.Doc.Imports {
		g.claim.AddSource(trust.Source{Path: src.Base, Hash: trust.Hash(src.Text)})
	}
	if name, rehearsed := rehearsal.ParseModel(f.Model()); rehearsed && name != "" {
		path := f.scriptPath(name)
		text, err := g.content(path, rehearsal.MaxScript, f.atConfig())
		if err == nil {
			g.claim.AddSource(trust.Source{Path: path, Hash: trust.Hash(text)})
		}
		f.script = script{path, text, err}
	}
	if base := f.BaseURL(); base != "" && (o.Configured == nil || !o.Configured(base)) {
		g.wants(trust.Power{Kind: trust.Sends, What: base}, f.atConfig())
	}
}

// asSource returns the file at path as a source. What runs append to a transcript of this
// user is not part of it. A stranger's transcript may begin like a trusted file, and all
// of it is the stranger's.
func (f *File) asSource(path string, known func(trust.Source) (trust.Left, bool)) trust.Source {
	src := f.beginsWith(path)
	if own := f.own(); own != strings.TrimRight(f.Doc.Source(), "\n") {
		yours := false
		if known != nil {
			_, yours = known(src)
		}
		if !yours {
			src.Hash = trust.Hash([]byte(f.Doc.Source()))
		}
	}
	return src
}

// beginsWith returns the file at path, without what runs appended to it, as a source.
func (f *File) beginsWith(path string) trust.Source {
	return trust.Source{Path: path, Hash: trust.Hash([]byte(f.own()))}
}

// own returns the text of the file without what runs appended to it, as in a
// transcript. That part holds nothing but messages; what they include is a power.
func (f *File) own() string {
	text := f.Doc.Source()
	for _, e := range f.Doc.Elements {
		if e.Tag == chatmd.RunTag {
			text = text[:e.Offset]
			break
		}
	}
	return strings.TrimRight(text, "\n")
}

// maxHashed is how much of the files that commands name is read to notice changes, all
// together.
const maxHashed = 1 << 30

// command records the files that the words of a command name, such as a script, as sources.
// What belongs to a stranger's folder and cannot be a source is a power, [trust.Varies], and
// so are files elsewhere. The command is declared at a place. The scripts are returned: see
// [changed].
func (g *gate) command(dir string, words []string, at place) []trust.Source {
	scripts := g.scripts(dir, words, func(name, why string) {
		g.wants(trust.Power{Kind: trust.Varies, What: trust.CommandLine(name) + " (" + why + ")", Where: trust.CommandLine(words...) + " in " + dir}, at)
	})
	for _, s := range scripts {
		if s.Hash != "" {
			g.claim.AddSource(s)
		}
	}
	return scripts
}

// scripts returns the files that the words of a command name, and tells of what the command
// uses that cannot be one of them, and why. A file that is not there has no hash.
func (g *gate) scripts(dir string, words []string, varies func(name, why string)) (scripts []trust.Source) {
	for _, name := range named(words) {
		path := filepath.FromSlash(name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		at := g.look(path)
		lies := slices.ContainsFunc(g.inside, func(dir string) bool { return within(dir, at.itself) })
		why := ""
		switch {
		case at.missing:
			scripts = append(scripts, trust.Source{Path: path, Word: name})
		case g.belongs(at.real) && at.folder:
			why = "a folder"
		case g.belongs(at.real):
			var hash string
			if hash, why = g.hash(at.real); why == "" {
				if s := (trust.Source{Path: path, Word: name}); g.earlier.Has(trust.Output{Command: keyOf(dir, words), Path: path, Hash: hash}) && outlives(s, words) {
					hash = "" // as if it was not there: the command that a person agreed to made it
				}
				scripts = append(scripts, trust.Source{Path: path, Hash: hash, Word: name})
			}
		case lies || within(dir, path):
			why = "a link to outside"
		case at.folder && name != words[0]:
			why = "a folder outside"
		case !at.folder && name != words[0]: // strangers do not write the programs of the system
			why = "outside"
		}
		if why != "" {
			varies(name, why)
		}
	}
	return scripts
}

// foundAt is what a path of a command led to.
type foundAt struct {
	itself, real    string // without links on the way, and without any
	folder, missing bool
}

// look returns what a path leads to. While the file is loaded, that is what it led to at first:
// the question is about that, whatever somebody puts there before the answer.
func (g *gate) look(path string) foundAt {
	if at, known := g.found[path]; known {
		return at
	}
	at := foundAt{itself: filepath.Join(resolved(filepath.Dir(path)), filepath.Base(path)), real: resolved(path)}
	info, err := os.Stat(at.real)
	at.missing, at.folder = err != nil, err == nil && info.IsDir()
	if g.found != nil {
		g.found[path] = at
	}
	return at
}

// changed says which of the scripts of a command has changed since the agent's file was
// read, or returns "". The system reads them again when they start: an agreement is to what
// they were, and somebody, also the model, may have written to them since. K6
func changed(scripts []trust.Source) string {
	for _, s := range scripts {
		if s.Hash == "" {
			continue // see [appeared]
		}
		if hash, why := new(gate).hash(resolved(s.Path)); why != "" || hash != s.Hash {
			return fmt.Sprintf("%s has changed since the agent's file was read", trust.Visible(filepath.Base(s.Path)))
		}
	}
	return ""
}

// appeared says which of the scripts of a command is there, and was not when the agent's file was
// read, or returns "". Nobody agreed to one that somebody has made since. K6
func appeared(scripts []trust.Source) string {
	for _, s := range scripts {
		if _, err := os.Stat(s.Path); s.Hash == "" && err == nil {
			return fmt.Sprintf("%s is new since the agent's file was read", trust.Visible(filepath.Base(s.Path)))
		}
	}
	return ""
}

// named returns what the words of a command may name in its folder: the words, values of
// options, also right after the letter of one, modules of Python, and all these with an
// extension that interpreters add. A program without a folder is found by PATH.
func named(words []string) (names []string) {
	module := false
	for i, word := range words {
		if i == 0 {
			if strings.ContainsAny(word, `/\`) {
				names = append(names, word)
			}
			continue
		}
		names = append(names, extended(word)...)
		if parts := strings.FieldsFunc(word, endsWord); len(parts) > 1 { // a line for another shell, such as that of sh -c
			for _, part := range parts {
				names = append(names, extended(part)...)
			}
			names = append(names, recipes[programOf(parts[0])]...)
		}
		if _, value, ok := strings.Cut(word, "="); ok {
			names = append(names, extended(value)...)
		}
		if len(word) > 2 && word[0] == '-' && word[1] != '-' {
			names = append(names, extended(word[2:])...)
		}
		attached, ok := strings.CutPrefix(word, "-m")
		switch {
		case module:
			names = append(names, modules(word)...)
		case ok && attached != "":
			names = append(names, modules(attached)...)
		}
		module = word == "-m"
	}
	if len(words) > 0 {
		names = append(names, recipes[programOf(words[0])]...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// endsWord reports whether a character ends a word in a line for a shell.
func endsWord(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`;|&()<>{}$", r) }

// programOf returns the name of a program, without its folder and extension.
func programOf(word string) string {
	name := filepath.Base(filepath.FromSlash(strings.ReplaceAll(word, `\`, "/")))
	return strings.TrimSuffix(strings.ToLower(name), ".exe")
}

// recipes are the files that a program reads in its folder without being told, and that say what
// it starts.
var recipes = map[string][]string{
	"npm": packages, "npx": packages, "pnpm": packages, "yarn": packages, "node": packages,
	"bun": append([]string{"bunfig.toml"}, packages...), "bunx": packages,
	"deno": append([]string{"deno.json", "deno.jsonc"}, packages...),
	"make": makefiles, "gmake": makefiles,
	"just": {"justfile", "Justfile", ".justfile"}, "task": {"Taskfile.yml", "Taskfile.yaml"}, "rake": {"Rakefile", "rakefile"},
	"docker": composed, "docker-compose": composed, "podman": composed, "podman-compose": composed,
	"cargo": {"Cargo.toml", "build.rs", ".cargo/config.toml", ".cargo/config"}, "go": {"go.mod", "go.work"},
	"uv": python, "uvx": python, "poetry": python, "pdm": python, "hatch": python, "tox": append([]string{"tox.ini"}, python...),
	"bundle": {"Gemfile", ".bundle/config"}, "mvn": {"pom.xml", ".mvn/extensions.xml"},
	"gradle": gradle, "gradlew": gradle,
}

var (
	packages  = []string{"package.json", ".npmrc"}
	makefiles = []string{"GNUmakefile", "makefile", "Makefile"}
	composed  = []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml", "compose.override.yaml", "compose.override.yml", "docker-compose.override.yaml", "docker-compose.override.yml", "Dockerfile", ".env"}
	python    = []string{"pyproject.toml", "uv.toml", "setup.py"}
	gradle    = []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"}
)

// extended returns a name, and the names of the files that an interpreter may load for it: node
// loads server.js for ./server.
func extended(name string) []string {
	names := []string{name}
	if base := filepath.Base(filepath.FromSlash(name)); name != "" && base != "." && base != ".." && !strings.HasSuffix(name, "/") {
		for _, ext := range []string{".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".rb"} {
			names = append(names, name+ext)
		}
	}
	return names
}

// modules returns the files that make up a module of Python, such as a.b.
func modules(name string) (files []string) {
	path := ""
	for part := range strings.SplitSeq(name, ".") {
		path += part
		files = append(files, path+".py", path+"/__init__.py", path+"/__main__.py")
		path += "/"
	}
	return files
}

// hash returns the hash of a regular file, or why there is none. Links of its path are resolved.
func (g *gate) hash(path string) (hash, why string) {
	if hash, ok := g.hashes[path]; ok {
		return hash, ""
	}
	file, info, err := openAgreed(path)
	switch {
	case errors.Is(err, errNotRegular) || errors.Is(err, os.ErrNotExist):
		return "", "not a file"
	case err != nil:
		return "", "it cannot be read"
	}
	defer file.Close()
	if info.Size() > maxHashed-g.hashed {
		return "", "too large to check"
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(file, maxHashed-g.hashed+1))
	switch g.hashed += n; {
	case err != nil:
		return "", "it cannot be read"
	case g.hashed > maxHashed:
		return "", "too large to check"
	}
	hash = hex.EncodeToString(h.Sum(nil))
	if g.hashes != nil {
		g.hashes[path] = hash
	}
	return hash, ""
}

// server records what it takes to use an MCP server, which is declared at a place.
func (g *gate) server(decl *chatmd.Tool, s *mcpbridge.Server, at place) (scripts []trust.Source) {
	p := trust.Power{Kind: trust.Connects, What: s.URL}
	if len(s.Command) > 0 {
		p = trust.Power{Kind: trust.Starts, What: trust.CommandLine(s.Command...), Where: s.Dir}
		scripts = g.command(s.Dir, s.Command, at)
		g.outside(s, at)
	}
	g.wants(p, at)
	for _, name := range []string{decl.Value("client_id_env"), decl.Value("client_secret_env")} {
		if name != "" {
			g.wants(trust.Power{Kind: trust.Reveals, What: name, Where: cmp.Or(s.URL, p.What)}, at)
		}
	}
	if decl.Value("credentials") == callers {
		g.wants(trust.Power{Kind: trust.Lends, What: s.URL}, at)
	}
	return scripts
}

// outside records what a server's program may read outside because its command line names it,
// in the sandbox that it runs in. All programs read what belongs to the system.
func (g *gate) outside(s *mcpbridge.Server, at place) {
	if s.Sandbox == nil || s.Sandbox(s.Dir).Unconfined {
		return
	}
	usual := sandbox.ReadOnly()
	for _, path := range s.Hold() {
		if g.belongs(path) || usual.Reads(path) {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path += string(filepath.Separator)
		}
		g.wants(trust.Power{Kind: trust.Reads, What: path}, at)
	}
}

// hosted records what a tool that the endpoint runs may reach.
func (g *gate) hosted(def item.Tool, at place) {
	server, _ := def.(*item.MCPTool)
	for _, site := range reach.Sites(reach.Of(def), nil) {
		if server == nil || site != reach.SiteOf(server.ServerURL) {
			g.wants(trust.Power{Kind: trust.Loads, What: site}, at)
		}
	}
	switch d := def.(type) {
	case *item.MCPTool:
		g.reads = true
		g.wants(trust.Power{Kind: trust.Connects, What: cmp.Or(d.ServerURL, d.ConnectorID, d.TunnelID)}, at)
		return
	case *item.ImageGenerationTool, *item.ToolSearchTool, *item.ProgrammaticTool:
		return // they stay at the endpoint
	case *item.FileSearchTool:
		g.reads = true
		return
	case *item.CodeInterpreterTool:
		if g.reads = true; stays(d.Container) {
			return
		}
	}
	g.browses = append(g.browses, browse{trust.Power{Kind: trust.Browses, What: def.ToolType()}, at})
}

// stays reports whether code in a container of the endpoint reaches no network: the container has
// an id, or nothing in its description is unknown and no domain is allowed.
func stays(container item.JSON) bool {
	if _, id := container.Unquote(); id {
		return true
	}
	var auto struct {
		Type    string         `json:"type"`
		Files   jsontext.Value `json:"file_ids"`
		Memory  jsontext.Value `json:"memory_limit"`
		Network struct {
			Type string `json:"type"`
		} `json:"network_policy"`
	}
	err := json.Unmarshal([]byte(container), &auto, json.RejectUnknownMembers(true))
	return err == nil && auto.Type == item.EnvironmentAuto && (auto.Network.Type == "" || auto.Network.Type == "disabled")
}

// browse is a tool by which the endpoint reaches the web, and its place.
type browse struct {
	power trust.Power
	at    place
}

// asName returns a name that a file chose, for the description of a power: quoted if it could be taken
// for other words of it.
func asName(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.*?/@:", r)
	}) || name == "" {
		return strconv.Quote(name)
	}
	return name
}

// settle records the powers that come of several files together: who reads nothing has
// nothing to send away.
func (g *gate) settle() {
	if !g.reads {
		return
	}
	for _, b := range g.browses {
		g.wants(b.power, b.at)
	}
}

// ask asks for the powers of the pass, unless that was asked before. It reports whether
// another pass is necessary, because more is agreed to.
func (g *gate) ask(ctx context.Context, asked *[]trust.Claim, o *Options) (again bool, err error) {
	g.settle()
	known := slices.ContainsFunc(*asked, func(c trust.Claim) bool { return c.Covers(&g.claim) })
	switch {
	case g.crowded != (place{}):
		return false, chatmd.ErrorList{{File: g.crowded.file, Line: g.crowded.line, Column: g.crowded.column,
			Message: fmt.Sprintf("the file has more than %d powers, which nobody can read", mostPowers), Hint: "divide it"}}
	case len(g.claim.Powers) == 0 || known:
		return false, g.refused()
	case o.Consent == nil && (o.Check || o.Salvage):
		return false, nil
	case o.Consent == nil:
		return false, &trust.UntrustedError{Claim: g.claim}
	}
	*asked = append(*asked, g.claim)
	a, err := o.Consent(ctx, g.claim)
	if err == nil && a.Remember != nil {
		err = a.Remember(ctx)
	}
	if err != nil {
		return false, err
	}
	g.agreed = a.Powers
	return true, g.refused()
}

// refused returns an error if a power is not agreed to that the file cannot do
// without. The calls of a tool that a file allows itself can be asked about.
func (g *gate) refused() error {
	if g == nil { // of a File that was not loaded
		return nil
	}
	for _, p := range g.claim.Powers.Without(g.agreed) {
		if p.Kind != trust.Allows {
			return &trust.UntrustedError{Claim: g.claim}
		}
	}
	return nil
}
