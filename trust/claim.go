// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/session"
)

// Kind is what a power does.
type Kind string

// The kinds of powers, worst first.
const (
	// Unconfines lets a program run outside of the sandbox, with all permissions of the
	// user. What is the program or the tool that runs it.
	Unconfines Kind = "unconfines"
	// Starts starts a program as soon as the agent runs. What is its [CommandLine].
	Starts Kind = "starts"
	// Varies starts a program that uses what no agreement covers: it may change without a
	// question. What is the file or folder and why, and Where the [CommandLine] and its folder.
	Varies Kind = "varies"
	// Allows lets the model use a tool without an approval. What is the tool, and what the model
	// chooses of its calls.
	Allows Kind = "allows"
	// Changes lets the model read a folder, and its tools and programs write and delete there.
	// What is the path.
	Changes Kind = "changes"
	// Networks lets the programs of a tool reach the network. What is the tool.
	Networks Kind = "networks"
	// Reaches lets the programs of a tool reach a host. What is the host, with its port unless
	// it is 443 or 80, and Where the tool and its folder.
	Reaches Kind = "reaches"
	// Reveals sends a variable of the environment to Where. What is its name.
	Reveals Kind = "reveals"
	// Lends sends the token of a served agent's client to an MCP server. What is the server's
	// address.
	Lends Kind = "lends"
	// Sends sends the conversation to another endpoint than the person's. What is its
	// address.
	Sends Kind = "sends"
	// Connects connects to an MCP server, or lets the endpoint do so. What is its
	// address.
	Connects Kind = "connects"
	// Equips gives the model tools whose definition endpoints may read in different ways, so that
	// the question cannot say what they do. What is the beginning of the item.
	Equips Kind = "equips"
	// Browses lets the endpoint open addresses of the web that the model chooses, in a file
	// that also reads something. What is the type of the endpoint's tool.
	Browses Kind = "browses"
	// Reads reads a file outside the file's folder and the workspace, or lets the model
	// read a folder. What is the path.
	Reads Kind = "reads"
	// Fetches fetches a document from the network. What is its address.
	Fetches Kind = "fetches"
	// Loads lets the endpoint fetch images and files by addresses in the conversation. What is
	// their scheme and host, or an address without a host.
	Loads Kind = "loads"
)

// kinds are the kinds in the order in which people read them, worst first, with the words
// that a person reads. WHAT and WHERE stand for the fields of [Power]. docs/trust.md says
// what each comes from.
var kinds = []struct {
	kind  Kind
	words string
}{
	{Unconfines, "gives WHAT in WHERE all your permissions, outside of the sandbox"},
	{Starts, "starts the program WHAT in WHERE"},
	{Varies, "lets WHAT, which WHERE uses, change later without a new question"},
	{Allows, "allows itself WHAT in WHERE, without asking you"},
	{Changes, "reads, changes and deletes what is in WHAT"},
	{Networks, "gives WHAT in WHERE the network"},
	{Reaches, "lets WHERE reach WHAT"},
	{Reveals, "sends the variable WHAT to WHERE"},
	{Lends, "sends the token that a client of the server gives for it to the MCP server WHAT"},
	{Sends, "sends the conversation to WHAT"},
	{Connects, "connects to the MCP server WHAT"},
	{Equips, "gives the model tools of the endpoint, which can be read in more than one way: WHAT"},
	{Browses, "lets the model send what it reads to the web, by WHAT of the endpoint"},
	{Reads, "reads WHAT"},
	{Fetches, "fetches WHAT"},
	{Loads, "lets the endpoint fetch from WHAT"},
}

// Power is one thing that a file may do. Two powers are the same if all fields are.
type Power struct {
	Kind Kind   `json:"kind"`
	What string `json:"what"`
	// Where is the folder in which a program starts or a tool acts, the tool that reaches a
	// host, or the address to which a variable is sent. It is empty for other kinds.
	Where string `json:"where,omitzero"`
}

// String describes the power as the end of a sentence that begins with "this file".
// Characters that would change the look of the text are escaped.
func (p Power) String() string {
	words := fmt.Sprintf("does %q with WHAT", string(p.Kind))
	if i := p.Kind.rank(); i >= 0 {
		words = kinds[i].words
	}
	what, where := phrase(p.What), phrase(p.Where)
	switch p.Kind {
	case Lends, Sends, Connects, Fetches, Loads:
		what = withHost(p.What) + what
	case Reveals:
		where = withHost(p.Where) + where
	}
	return strings.NewReplacer("WHAT", what, "WHERE", where).Replace(words)
}

// withHost returns what precedes an address for people: its host as it will be asked, unless the
// address begins with exactly that.
func withHost(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	host, port := u.Hostname(), u.Port()
	if strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		if ascii, err := idna.Lookup.ToASCII(host); err == nil {
			host = ascii
		} else if host, err = idna.Punycode.ToASCII(host); err != nil {
			return "an unknown host: "
		}
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" {
		host += ":" + port
	}
	begin := u.Scheme + "://" + host
	if len(address) >= len(begin) && strings.EqualFold(address[:len(begin)], begin) && strings.Trim(address[len(begin):min(len(begin)+1, len(address))], "/?#") == "" {
		return ""
	}
	return phrase(host) + ": "
}

// phrase returns a visible text that pushes nothing off the screen by blanks. No two texts look
// the same: what is written like an invisible character or a number of blanks is changed, too.
func phrase(text string) string {
	text = Visible(lookalikes.Replace(text))
	return blanks.ReplaceAllStringFunc(text, func(run string) string {
		n := len(strings.TrimRight(run, "0123456789"))
		if n == len(run) {
			return fmt.Sprintf("␣×%d", n)
		}
		return fmt.Sprintf("␣×%d %s", n-1, run[n:])
	})
}

var (
	blanks     = lazyregexp.New(" {3,}[0-9]?")
	lookalikes = strings.NewReplacer("<U+", "<U+003C>U+", "␣", "<U+2423>")
)

// CommandLine returns the words of a command as a person reads them: like a line for a shell,
// with quotes around words that could be taken for others. Characters that nobody sees are as
// they are, see [Visible].
func CommandLine(words ...string) string {
	var line []string
	for _, word := range words {
		if word == "" || !strings.HasPrefix(word, "-") && strings.Contains(word, "=") || strings.ContainsFunc(word, special) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		line = append(line, word)
	}
	return strings.Join(line, " ")
}

// special reports whether a character may mean something to a shell, or look like another one.
func special(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@,+%=", r)
}

// Visible returns a text with every character that a person would not see, or that hides or
// reorders others, as its number, such as <U+202E>. It keeps letters, numbers, punctuation, symbols
// and the space, and the few marks that a letter bears in written languages.
func Visible(text string) string {
	var b strings.Builder
	bears := 0 // marks that the character before may still bear
	for _, r := range text {
		mark := unicode.Is(unicode.Mn, r)
		switch {
		case !seen(r), mark && bears == 0:
			fmt.Fprintf(&b, "<U+%04X>", r)
			bears = 0
			continue
		case mark:
			bears--
		case unicode.In(r, unicode.Letter, unicode.Mc):
			bears = mostMarks
		default:
			bears = 0
		}
		b.WriteRune(r)
	}
	return b.String()
}

// mostMarks is the number of marks on one letter that languages need, such as a vowel and a tone.
// Many marks cover the lines around them.
const mostMarks = 2

// blank lists the characters without a shape that Unicode counts as symbols or letters, and the
// marks that lie over a letter.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{{0x0334, 0x0338, 1}, {0x20d2, 0x20d3, 1}, {0x20d8, 0x20da, 1}, {0x20e5, 0x20e6, 1}, {0x20ea, 0x20eb, 1}, {0x2800, 0x2800, 1}, {0xfffd, 0xfffd, 1}},
	R32: []unicode.Range32{{0x13441, 0x13442, 1}, {0x16fe4, 0x16fe4, 1}, {0x1d159, 0x1d159, 1}},
}

// seen reports whether a character has a visible shape of its own.
func seen(r rune) bool {
	return unicode.IsPrint(r) && !unicode.In(r, blank, unicode.Me, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Powers is a list of powers, each once, worst first. The zero value is empty and
// ready for use.
type Powers []Power

// Add adds a power, unless the list has it.
func (l *Powers) Add(p Power) {
	at, found := slices.BinarySearchFunc(*l, p, compare)
	if !found {
		*l = slices.Insert(*l, at, p)
	}
}

// Has reports whether the list has a power.
func (l Powers) Has(p Power) bool { return slices.Contains(l, p) }

// Without returns the powers that are not in other.
func (l Powers) Without(other Powers) (rest Powers) {
	for _, p := range l {
		if !other.Has(p) {
			rest = append(rest, p)
		}
	}
	return rest
}

func compare(a, b Power) int {
	return cmp.Or(cmp.Compare(a.Kind.rank(), b.Kind.rank()), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.What, b.What), cmp.Compare(a.Where, b.Where))
}

// rank returns the place of a kind in kinds, or -1: an unknown power is the worst.
func (k Kind) rank() int {
	for i := range kinds {
		if kinds[i].kind == k {
			return i
		}
	}
	return -1
}

// Source is a file that powers come from, and the hash of its text.
type Source struct {
	Path string `json:"path"` // absolute
	Hash string `json:"hash"`
	// Word is the word of a command that names the file, and empty for other sources.
	Word string `json:"word,omitzero"`
}

// Hash returns the hash of a source's text.
func Hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Claim is what a file may do, and everything that decides about it.
type Claim struct {
	// Path is the absolute path of the agent's file.
	Path string
	// Sources are the file, then its imports, agents and scripts, and the files that its
	// commands name, as far as they are in its folder or the workspace.
	Sources []Source
	// Powers are those of all sources.
	Powers Powers
}

// Hash identifies the content that the claim is about: it covers the texts of all
// sources, in order, and the words of commands that name them. It does not cover their
// paths, because what depends on a path is a power: a copy of the file may do the same.
func (c *Claim) Hash() string {
	h := sha256.New()
	fmt.Fprintln(h, "antiphon trust 1")
	for _, s := range c.Sources {
		fmt.Fprint(h, s.Hash)
		if s.Word != "" { // else another file could take the place of this one
			fmt.Fprintf(h, " %q", s.Word)
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Covers reports whether an agreement to c is one to other: the content is the same,
// and c has all powers of other.
func (c *Claim) Covers(other *Claim) bool {
	return other != nil && c.Hash() == other.Hash() && len(other.Powers.Without(c.Powers)) == 0
}

// AddSource adds a source, unless the claim has one with the same path and word.
func (c *Claim) AddSource(s Source) {
	if !slices.ContainsFunc(c.Sources, func(o Source) bool { return o.Path == s.Path && o.Word == s.Word }) {
		c.Sources = append(c.Sources, s)
	}
}

// Agreement is a person's answer to a claim. The zero value agrees to nothing.
type Agreement struct {
	// Powers are those that the person agreed to. A file runs without an [Allows] power
	// that is missing, and asks about those calls; without another power it does not run.
	Powers Powers
	// Variables are the variables that the file may send, and where. A file that names a
	// variable needs this beside the power.
	Variables []Variable
	// Decided says who agreed or refused; the zero value means the program. By names the
	// person, and From the means, such as "terminal" or "--trust". Shown is the text that
	// the person read before. All four are for an audit log, and may be empty.
	Decided         session.Decider
	By, From, Shown string
	// Remember keeps the agreement for later runs. It may be nil. The program
	// that asked calls it after it has recorded the agreement: what could not be recorded
	// must not be remembered.
	Remember func(context.Context) error
}

// Everything agrees to all powers of a claim. It is for a program that runs only files
// of its own author.
func Everything(_ context.Context, c Claim) (Agreement, error) {
	return Agreement{Powers: c.Powers}, nil
}

// Variable is a variable of the environment, and the host that it may be sent to.
type Variable struct {
	Name string `json:"name"`
	Host string `json:"host"` // with a port, if the address has one
}

// ParseVariable parses NAME@HOST.
func ParseVariable(text string) (Variable, error) {
	name, host, ok := strings.Cut(text, "@")
	if !ok || name == "" || host == "" || strings.ContainsAny(host, "/@ ") || strings.ContainsAny(name, "= ") {
		return Variable{}, fmt.Errorf("%q is not a variable and its host, such as TOKEN@mcp.example", Visible(text))
	}
	return Variable{Name: name, Host: strings.ToLower(host)}, nil
}

// UntrustedError means that a file has powers to which nobody agreed. Nothing of it
// was run, sent or read outside its folder and the workspace.
type UntrustedError struct{ Claim Claim }

// Error lists the powers, one a line.
func (e *UntrustedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is not trusted, and it", Visible(e.Claim.Path))
	for _, p := range e.Claim.Powers {
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}
