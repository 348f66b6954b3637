// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/internal/homedir"
	"github.com/antiphon-go/antiphon/internal/obeyed"
)

// A Profile says what a program may do. It is a value: a copy can be changed without
// changing the original. The zero value lets a program read the system's folders and
// write in a private temporary folder.
type Profile struct {
	// Name is for messages.
	Name string
	// Unconfined lets the program do everything that its user may do. All of its
	// processes still end with the run, and the limits apply.
	Unconfined bool
	// Write lists the folders, or files, that the program may write and read.
	Write []string
	// Read lists the folders, or files, that the program may read, in addition to
	// those of the system: programs, libraries and configuration, and the tools and
	// packages that are usually installed in a user's home.
	Read []string
	// Hidden lists paths that the program cannot read even if they lie in a folder that
	// it may read or write, in addition to the usual places of keys and passwords.
	Hidden []string
	// Fixed lists paths that the program cannot change even if they lie in a folder that it
	// may write, in addition to what git and other programs of the user obey there: hooks,
	// settings, tasks of editors (docs/sandbox.md has the list). The folders around them cannot be
	// moved. Write can name such a path.
	// Without namespaces on Linux they are not protected; [Run.Planted] tells of changes.
	Fixed []string
	// Held says what paths of Write and Read led to when the caller chose them, as [Hold]
	// returns it: a program may have made a link of such a path since then. If one leads
	// elsewhere, it is an error for Write, and it is left out of Read.
	Held map[string]string
	// Temp is the program's temporary folder. The default is a new one that is deleted
	// after the run.
	Temp string
	// Network lets the program reach every network that its user reaches, including the
	// services on this machine. Otherwise it has none, or one without an outside.
	Network bool
	// Hosts limits the network to these hosts, whether Network is set or not: names such
	// as "proxy.golang.org", names below another as "*.npmjs.org", and addresses. An entry
	// is for the ports 443 and 80, or for the port that it names, as in "example.com:8443".
	// The program reaches them through an HTTP proxy in this process, which the usual
	// variables name. Names that lead to addresses outside the public internet are refused,
	// except that an entry without * may name a loopback or private one with its port.
	// An entry may be any address, and is then for that address alone.
	Hosts []string
	// Limits bound what the program may use.
	Limits Limits
	// Without lists parts that are not used although the system has them. Command
	// returns an error if the others are not enough.
	Without []Part

	program string // the path of the program, for messages
}

// DefaultLimits are the limits of the profiles that this package makes: enough for
// builds and tests, not enough to take the machine.
var DefaultLimits = Limits{Memory: 4 << 30, Processes: 512, Files: 4096, FileSize: 4 << 30}

// The names of the profiles, for settings and flags.
const (
	NameReadOnly  = "read-only"
	NameWorkspace = "workspace"
	NameHosts     = "hosts"
	NameNetwork   = "network"
	NameFull      = "full"
)

// ReadOnly returns a profile for programs that look and change nothing: they read the
// folders and write in a temporary folder only. They have no network.
func ReadOnly(folders ...string) Profile {
	return Profile{Name: NameReadOnly, Read: slices.Clone(folders), Limits: DefaultLimits}
}

// Workspace returns a profile for programs that work in the folders: they read and
// write them, and have no network.
func Workspace(folders ...string) Profile {
	return Profile{Name: NameWorkspace, Write: slices.Clone(folders), Limits: DefaultLimits}
}

// Network returns a profile like [Workspace] with the network of the user.
func Network(folders ...string) Profile {
	p := Workspace(folders...)
	p.Name, p.Network = NameNetwork, true
	return p
}

// Full returns a profile without confinement and limits. It takes folders like the
// others, and needs none.
func Full(...string) Profile { return Profile{Name: NameFull, Unconfined: true} }

// profiles are the named profiles, from the narrowest to the widest. The profile of hosts is
// that of a workspace until it gets its hosts.
var profiles = []struct {
	name  string
	make  func(folders ...string) Profile
	hosts bool // it is made for hosts
}{
	{NameReadOnly, ReadOnly, false},
	{NameWorkspace, Workspace, false},
	{NameHosts, Workspace, true},
	{NameNetwork, Network, false},
	{NameFull, Full, false},
}

// Names returns the names of the profiles, from the narrowest to the widest.
func Names() (list []string) {
	for _, p := range profiles {
		list = append(list, p.name)
	}
	return list
}

// Maker returns the function that makes the profile of that name for folders. The profile
// hosts needs at least one host; it is also used if hosts are given and name is "". The other
// profiles take no hosts. A text may list several hosts, with commas or spaces between them;
// the profile has each once, in order and in lower case.
func Maker(name string, hosts ...string) (func(folders ...string) Profile, error) {
	if name == "" && len(hosts) > 0 {
		name = NameHosts
	}
	i := slices.Index(Names(), name)
	switch {
	case i < 0:
		return nil, fmt.Errorf("sandbox: there is no profile %q; the profiles are %s", name, strings.Join(Names(), ", "))
	case !profiles[i].hosts && len(hosts) > 0:
		return nil, fmt.Errorf("sandbox: hosts are for the profile %s, and the profile is %s: give one of them", NameHosts, name)
	case !profiles[i].hosts:
		return profiles[i].make, nil
	}
	list, err := hostList(hosts)
	if err != nil {
		return nil, err
	}
	return func(folders ...string) Profile {
		p := profiles[i].make(folders...)
		p.Name, p.Hosts = name, slices.Clone(list)
		return p
	}, nil
}

// mostHosts is how many hosts a person can read in a question.
const mostHosts = 50

// hostList returns the hosts that texts list.
func hostList(texts []string) (list []string, err error) {
	for _, text := range texts {
		list = append(list, strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })...)
	}
	switch {
	case len(list) == 0:
		return nil, fmt.Errorf("sandbox: the profile %s names no host: write names as in example.com, *.example.com or example.com:8443", NameHosts)
	case len(list) > mostHosts:
		return nil, fmt.Errorf("sandbox: the profile %s names %d hosts; at most %d can be named", NameHosts, len(list), mostHosts)
	}
	hosts, err := parseHosts(list)
	if err != nil {
		return nil, err
	}
	for i, h := range hosts {
		list[i] = h.String()
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Width returns the name of the narrowest of the named profiles that allows all that
// this one allows. Its own folders, and hidden paths, do not count.
func (p Profile) Width() string {
	switch {
	case p.Unconfined:
		return NameFull
	case len(p.Hosts) > 0:
		return NameHosts
	case p.Network:
		return NameNetwork
	case len(p.Write) > 0:
		return NameWorkspace
	}
	return NameReadOnly
}

// Wider reports whether a named profile allows more than another. A name that is not
// one of a profile is the widest.
func Wider(name, than string) bool { return width(name) > width(than) }

func width(name string) int {
	if i := slices.Index(Names(), name); i >= 0 {
		return i
	}
	return len(profiles)
}

// everywhere reports whether the profile lets programs reach all hosts.
func (p Profile) everywhere() bool { return p.Unconfined || p.Network && len(p.Hosts) == 0 }

// Covers reports whether the profile allows what another one does: whether programs write,
// and which hosts they reach. Folders, hidden paths and limits do not count.
func (p Profile) Covers(other Profile) bool {
	switch {
	case p.Unconfined:
		return true
	case other.Unconfined, len(other.Write) > 0 && len(p.Write) == 0, other.everywhere() && !p.everywhere():
		return false
	}
	return p.everywhere() || len(p.Lacks(other.Hosts...)) == 0
}

// Lacks returns those of the hosts that the profile does not let programs reach, though it
// may be for their addresses. What is not a host is lacked.
func (p Profile) Lacks(hosts ...string) (list []string) {
	own, err := parseHosts(p.Hosts)
	for _, entry := range hosts {
		h, wrong := parseHost(entry)
		reached := p.everywhere() || err == nil && slices.ContainsFunc(own, func(o host) bool { return o.covers(h) })
		if wrong != nil || !reached {
			list = append(list, entry)
		}
	}
	return list
}

// Widened returns the profile with what another one allows in addition: its folders to
// write in and its network, or the hosts of both. It keeps the other settings, such as limits
// and hidden paths, except that the profile full has no limits. The profile is returned as it
// is if it [Profile.Covers] the other one.
func (p Profile) Widened(to Profile) Profile {
	switch {
	case p.Covers(to):
		return p
	case to.Unconfined:
		return to
	}
	all := p.everywhere() || to.everywhere()
	p.Write = append(slices.Clip(p.Write), to.Write...)
	p.Network, p.Hosts = all, slices.Concat(p.Hosts, p.Lacks(to.Hosts...))
	if all {
		p.Hosts = nil
	}
	slices.Sort(p.Hosts)
	p.Name = p.Width()
	return p
}

// Supported returns nil if this system can confine programs as the profile says, and
// otherwise an error that wraps [ErrUnavailable] and says what is missing.
func (p Profile) Supported() error {
	if p.Unconfined {
		return nil
	}
	return p.supported(Available())
}

// Words says what programs may do, as the end of a sentence that begins with "the program".
func (p Profile) Words() string {
	if p.Unconfined {
		return "has all your permissions, outside of the sandbox"
	}
	text := "writes in the workspace"
	if len(p.Write) == 0 {
		text = "changes no files"
	}
	switch {
	case len(p.Hosts) > 0:
		return text + ", and reaches only " + strings.Join(p.Hosts, ", ")
	case p.Network:
		return text + ", and has the network"
	}
	return text + ", without network"
}

// ToolFolders returns the folders that must be readable so that the programs in some
// folders, such as those of PATH, can run: each folder that exists and, for a folder
// named bin, its parent, which holds the programs' libraries. It leaves out the home
// folder, the hidden folders in it, and every folder that contains it.
func ToolFolders(folders ...string) (list []string) {
	home, _ := homedir.Folder() // without one nothing is in it
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	for _, folder := range folders {
		real, err := filepath.EvalSymlinks(folder)
		if err != nil || !filepath.IsAbs(folder) {
			continue
		}
		if info, err := os.Stat(real); err != nil || !info.IsDir() || within(home, []string{real}) {
			continue
		}
		list = append(list, folder)
		around := filepath.Dir(real)
		hidden := filepath.Dir(around) == home && strings.HasPrefix(filepath.Base(around), ".")
		if filepath.Base(real) == "bin" && !hidden && !within(home, []string{around}) {
			list = append(list, around)
		}
	}
	return list
}

// Reads reports whether programs with the profile may read a file or folder: for the profile
// [ReadOnly] without folders, whether all programs may.
func (p Profile) Reads(path string) bool {
	if p.Unconfined {
		return true
	}
	v, err := p.look()
	if err != nil {
		return false
	}
	real, err := v.real(filepath.Clean(path))
	return err == nil && (within(real, v.read) || within(real, v.write)) && !within(real, v.hidden)
}

// leastMemory is the least that a program needs to start.
const leastMemory = 16 << 20

func (p *Profile) check() error {
	l := p.Limits
	if l.Memory < 0 || l.Processes < 0 || l.Files < 0 || l.FileSize < 0 || l.CPU < 0 {
		return errors.New("sandbox: a limit is negative")
	}
	if l.Memory > 0 && l.Memory < leastMemory {
		return fmt.Errorf("sandbox: the limit of memory is %d bytes; programs need at least %d to start", l.Memory, leastMemory)
	}
	if _, err := parseHosts(p.Hosts); err != nil {
		return err
	}
	if p.Unconfined && len(p.Hosts) > 0 {
		return errors.New("sandbox: the profile names hosts and is unconfined: only one of them can be meant")
	}
	for _, list := range [][]string{p.Write, p.Read, p.Hidden, p.Fixed, {p.Temp}} {
		for _, path := range list {
			if path != "" && !filepath.IsAbs(path) {
				return fmt.Errorf("sandbox: %s is not an absolute path", path)
			}
		}
	}
	return nil
}

// systemFolders lists what programs read of the system. Folders that hold the state
// of services, such as /run and most of /var, are not in it.
var systemFolders = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt",
	"/nix/store", "/nix/var/nix/profiles", "/run/current-system", "/home/linuxbrew", "/snap",
	"/var/lib/ca-certificates", "/var/lib/dpkg", "/var/lib/rpm", "/sys/devices/system",
}

// rootOnly returns what only root and groups of the system may read in the folder of
// settings: keys and passwords of services. The programs of root do without it, as those
// of other users do. It looks once, because that takes milliseconds: what is added while
// this process runs is found by the next one.
var rootOnly = sync.OnceValue(func() []string { return unreadable("/etc") })

// unreadable returns the files and folders in a folder that not everybody may read, and
// the folders that not everybody may enter.
func unreadable(folder string) (list []string) {
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return nil // what a link leads to is looked at in its own place
		}
		info, err := entry.Info()
		needed := fs.FileMode(0o004)
		if entry.IsDir() {
			needed = 0o005
		}
		if err == nil && info.Mode().Perm()&needed != needed {
			list = append(list, path)
			if entry.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	return list
}

// homeFolders lists the tools and packages in a user's home that programs read, and
// the settings of git.
var homeFolders = []string{
	"go", "sdk", "bin", ".local/bin", ".local/lib", ".local/share/pnpm", ".local/share/uv",
	".cargo/bin", ".cargo/env", ".cargo/registry", ".cargo/git", ".rustup",
	".nvm", ".volta", ".bun", ".deno", ".pyenv", ".rbenv", ".rvm", ".asdf", ".sdkman", ".m2/repository", ".gradle/caches",
	".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes",
}

// goCache returns the folder of the Go compiler's cache, or "" if there is none. Programs
// read it, because without it each build compiles the standard library. What they add to
// it is in a folder of their own.
func goCache() string {
	dir := os.Getenv("GOCACHE")
	if !filepath.IsAbs(dir) {
		base, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(base, "go-build")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// fromVariables lists what the usual variables name: packages of Go, and certificates. They do not
// name the home folder, nor what contains it.
func fromVariables() (list []string) {
	for _, name := range []string{"GOROOT", "GOMODCACHE"} {
		list = append(list, ToolFolders(os.Getenv(name))...)
	}
	for _, dir := range filepath.SplitList(os.Getenv("GOPATH")) {
		list = append(list, ToolFolders(filepath.Join(dir, "bin"), filepath.Join(dir, "pkg"))...)
	}
	list = append(list, ToolFolders(os.Getenv("SSL_CERT_DIR"))...)
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} {
		file := os.Getenv(name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && filepath.IsAbs(file) {
			list = append(list, file)
		}
	}
	return list
}

// homeSecrets lists the places of keys and passwords in a user's home.
var homeSecrets = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".oci", ".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".config/antiphon/keys",
	".config/git/credentials", ".git-credentials", ".netrc", ".npmrc", ".pypirc", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml",
	".m2/settings.xml", ".gradle/gradle.properties", ".pgpass", ".my.cnf", ".vault-token", ".terraform.d", ".password-store",
	".local/share/keyrings", ".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history",
}

// A view is a profile in which all paths exist, are resolved, and are complete.
type view struct {
	write, read, hidden []string
	// fixed must not change, and pinned must not be moved, although they are in write.
	fixed, pinned []string
	asked         []string // what the profile itself fixes
	scan          *obeyed.Scan
	// links are paths that programs use, and the paths that they lead to.
	links map[string]string

	folders map[string]folder // those that were resolved while the view was made
}

// folder is what a folder leads to.
type folder struct {
	real string
	err  error
}

// real returns the path that a path leads to. Most of the paths of a view lie in a few
// folders, so it looks at each folder once.
func (v *view) real(path string) (string, error) {
	dir, name := filepath.Split(path)
	if name == "" || dir == "" {
		return filepath.EvalSymlinks(path)
	}
	f, ok := v.folders[dir]
	if !ok {
		if f.real, f.err = "/", nil; dir != "/" {
			f.real, f.err = v.real(filepath.Clean(dir))
		}
		v.folders[dir] = f
	}
	if f.err != nil {
		return "", f.err
	}
	path = filepath.Join(f.real, name)
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		return filepath.EvalSymlinks(path)
	}
	return path, nil
}

// look makes the view of a profile.
func (p *Profile) look() (view, error) {
	v := view{links: map[string]string{}, folders: map[string]folder{}}
	write := outermost(p.Write)
	for _, path := range write {
		err := p.unmoved(&v, path)
		if err == nil {
			err = v.add(&v.write, path)
		}
		if err == nil {
			err = v.spareHome()
		}
		if err != nil {
			return v, fmt.Errorf("sandbox: a program cannot write in %s: %w", path, cause(err))
		}
	}
	for _, path := range p.Read {
		// A program could have made a link of a path in a folder that it writes.
		if within(path, write) || p.unmoved(&v, path) != nil {
			continue
		}
		if err := v.add(&v.read, path); err != nil {
			return v, fmt.Errorf("sandbox: a program cannot read %s: %w", path, cause(err))
		}
	}
	usual, secrets := slices.Clone(systemFolders), slices.Clone(p.Hidden)
	if os.Geteuid() == 0 {
		secrets = append(secrets, rootOnly()...)
	}
	if p.Network && len(p.Hosts) == 0 {
		usual = append(usual, "/etc/resolv.conf")
	}
	if cache := goCache(); cache != "" {
		usual = append(usual, cache)
	}
	usual = append(usual, fromVariables()...)
	if home, err := homedir.Folder(); err == nil && filepath.IsAbs(home) {
		for _, name := range homeFolders {
			usual = append(usual, filepath.Join(home, name))
		}
		for _, name := range homeSecrets {
			secrets = append(secrets, filepath.Join(home, name))
		}
	}
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		secrets = append(secrets, filepath.Join(dir, "antiphon", "keys"))
	}
	for _, path := range usual {
		if !within(path, write) {
			_ = v.add(&v.read, path) // not every system has all of them
		}
	}
	v.read = outermost(v.read)
	v.hide(secrets)
	v.protect(p)
	return v, nil
}

// Hold returns what absolute paths lead to, by the paths, for [Profile.Held]. Paths that
// lead to nothing are left out.
func Hold(paths ...string) map[string]string {
	held := map[string]string{}
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			held[filepath.Clean(path)], held[real] = real, real
		}
	}
	return held
}

// unmoved returns an error if a path was held and leads elsewhere.
func (p *Profile) unmoved(v *view, path string) error {
	path = filepath.Clean(path)
	was, held := p.Held[path]
	if real, err := v.real(path); held && err == nil && real != was {
		return fmt.Errorf("it led to %s when it was chosen, and leads to %s now", was, real)
	}
	return nil // v.add reports the error
}

// ofPrograms are folders of a home folder that hold programs which the user starts by name,
// or that the system obeys.
var ofPrograms = []string{"bin", "go", "sdk", "snap", "Library", "Applications"}

// spareHome takes the last folder out of those that may be written if it is the user's home
// or holds it, and puts in what programs may write there instead: what is in it, except for
// files and folders whose names begin with a dot, and those with programs. Nothing can be
// made in the home folder itself: it could be a start file of a shell.
func (v *view) spareHome() error {
	at := len(v.write) - 1
	folder := v.write[at]
	if folder == "/" {
		return errors.New("it is the root of all files: name a folder in it")
	}
	home, err := homedir.Folder()
	if err != nil {
		return nil
	}
	if home, err = filepath.EvalSymlinks(home); err != nil || !within(home, []string{folder}) {
		return nil
	}
	v.write = v.write[:at]
	return v.addParts(folder, home)
}

func (v *view) addParts(folder, home string) error {
	v.read = append(v.read, folder)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		switch {
		case e.Type()&os.ModeSymlink != 0 || strings.HasPrefix(e.Name(), "."):
		case within(home, []string{path}):
			if err := v.addParts(path, home); err != nil {
				return err
			}
		case folder != home || !slices.Contains(ofPrograms, e.Name()):
			v.write = append(v.write, path)
		}
	}
	return nil
}

// protect finds what must not change in the folders that may be written.
func (v *view) protect(p *Profile) {
	if len(v.write) == 0 {
		return
	}
	var more []string
	for _, path := range p.Fixed {
		more = append(more, v.reach(filepath.Clean(path)))
	}
	v.asked = more
	v.scan = obeyed.Look(v.write, more...)
	v.refresh(p)
}

// refresh takes over what the scan found.
func (v *view) refresh(p *Profile) {
	v.fixed, v.pinned = slices.DeleteFunc(slices.Clone(v.scan.Fixed), p.isNamed), slices.Clone(v.scan.Pinned)
	asked := slices.DeleteFunc(slices.Clone(v.asked), p.isNamed)
	for _, path := range slices.Concat(v.hidden, asked) { // in a folder that was moved, it would be seen, or another one takes its place
		for dir := filepath.Dir(path); within(dir, v.write) && !slices.Contains(v.write, dir); dir = filepath.Dir(dir) {
			v.pinned = append(v.pinned, dir)
		}
	}
	slices.Sort(v.pinned)
	v.pinned = slices.Compact(v.pinned)
}

// reach returns the path that a path leads to, as far as it exists.
func (v *view) reach(path string) string {
	if real, err := v.real(path); err == nil {
		return real
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(v.reach(parent), filepath.Base(path))
	}
	return path
}

// isNamed reports whether Write names a path itself.
func (p *Profile) isNamed(path string) bool {
	return slices.ContainsFunc(p.Write, func(named string) bool {
		real, err := filepath.EvalSymlinks(named)
		return err == nil && real == path
	})
}

// add adds a path to a list, by the path that it leads to.
func (v *view) add(list *[]string, path string) error {
	path = filepath.Clean(path)
	real, err := v.real(path)
	if err != nil {
		return err
	}
	if real != path {
		v.links[path] = real
	}
	*list = append(*list, real)
	return nil
}

// hide notes the secrets that exist and would be seen.
func (v *view) hide(secrets []string) {
	for _, path := range secrets {
		path = filepath.Clean(path)
		real, err := v.real(path)
		if err != nil {
			continue
		}
		for _, path := range []string{path, real} {
			info, err := os.Lstat(path)
			seen := within(path, v.read) || within(path, v.write)
			if err == nil && seen && info.Mode()&os.ModeSymlink == 0 && !slices.Contains(v.hidden, path) {
				v.hidden = append(v.hidden, path)
			}
		}
	}
	v.hidden = outermost(v.hidden)
}

// outermost returns the paths that lie in none of the others, in order.
func outermost(paths []string) (list []string) {
	for _, path := range slices.Sorted(slices.Values(paths)) {
		if path = filepath.Clean(path); !within(path, list) {
			list = append(list, path)
		}
	}
	return list
}

// within reports whether a path is one of the folders or lies in one.
func within(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
	})
}

// cause returns an error without the path that its text would repeat.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
