// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/internal/spool"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// This file holds the sandbox of commands: the profile of a call, a call that asks for
// more than the profile, and what a command lacked.

// supports says whether this system can confine programs as a profile says.
var supports = sandbox.Profile.Supported

// own returns the profile of commands that ask for no more. They read the programs of
// PATH. On a system without a sandbox it is [sandbox.Full], unless the options name a profile.
func (c *Command) own() sandbox.Profile {
	make := c.options.Sandbox
	switch {
	case make == nil && supports(sandbox.Workspace()) != nil:
		return sandbox.Full()
	case make == nil:
		make = sandbox.Workspace
	}
	p := make(c.files.Dirs()...)
	if !p.Unconfined {
		p.Read = append(slices.Clip(p.Read), c.tools...)
		p.Held = maps.Clone(p.Held)
		if p.Held == nil {
			p.Held = map[string]string{}
		}
		maps.Copy(p.Held, c.held)
		p.Fixed = append(slices.Clip(p.Fixed), c.files.ProtectedPaths()...)
	}
	return p
}

// A confinement is how a call runs.
type confinement struct {
	profile sandbox.Profile
	// wider says in words what a person has not agreed to for all calls of the tool, or it is "".
	wider string
}

// confinement returns the profile of a call. It is wider than the own one if the call asks
// for more.
func (c *Command) confinement(a asked) (confinement, error) {
	own := c.own()
	if own.Unconfined {
		if c.options.Sandbox == nil {
			return confinement{own, unconfined}, nil
		}
		return confinement{own, ""}, nil
	}
	if err := supports(own); err != nil {
		return confinement{}, fmt.Errorf("%w; without a sandbox the command would run with all permissions of the user, who must choose the profile %s for that", err, sandbox.NameFull)
	}
	if a.sandbox == "" && len(a.hosts) == 0 {
		return confinement{own, ""}, nil
	}
	make, err := sandbox.Maker(a.sandbox, a.hosts...)
	if err != nil {
		return confinement{}, err
	}
	to := make(c.files.Dirs()...)
	if own.Covers(to) {
		return confinement{own, ""}, nil
	}
	p := own.Widened(to)
	if c.options.Fixed {
		return confinement{}, fmt.Errorf("the sandbox of this tool is fixed, so a command cannot ask for the profile %s", p.Width())
	}
	if err := supports(p); err != nil {
		return confinement{}, fmt.Errorf("%w; instead of hosts, the call can ask for \"sandbox\": %q", err, sandbox.NameNetwork)
	}
	return confinement{p, "the command wants to run " + widening(own, p)}, nil
}

// unconfined is the reason for asking about commands that nothing confines, though nobody
// has chosen that.
const unconfined = "this system has no sandbox, so the command would run with all your permissions"

// Sandbox returns the name of the profile in which a call runs its command, with the hosts
// that it may reach: see [sandbox.Profile.Width]. It is "" if the call cannot be parsed.
func (c *Command) Sandbox(call tool.Call) string {
	a, err := c.read(call.Arguments)
	if err != nil {
		return ""
	}
	run, err := c.confinement(a)
	if err != nil {
		return ""
	}
	return inWords(run.profile)
}

// Sandbox is like [Command.Sandbox]. These calls cannot ask for another profile.
func (s *shell) Sandbox(tool.Call) string {
	return inWords(s.c.own())
}

// inWords returns the name of a profile, and its hosts.
func inWords(p sandbox.Profile) string {
	return strings.Join(append([]string{p.Width()}, p.Hosts...), " ")
}

// commandWith is the beginning of the member of a rule about commands with a profile. A
// program that does not know such rules takes them for rules about an argument that no
// tool has, so that they allow nothing there.
const commandWith = "command with "

// memberOf returns the member of rules that cover commands with a profile.
func memberOf(p sandbox.Profile) string {
	switch width := p.Width(); width {
	case sandbox.NameWorkspace:
		return "command"
	case sandbox.NameHosts:
		return commandWith + width + " " + strings.Join(p.Hosts, ", ")
	default:
		return commandWith + width
	}
}

// profileOf returns the profile that a member of a rule is about.
func profileOf(member string) (sandbox.Profile, error) {
	name, hosts := sandbox.NameWorkspace, []string(nil)
	if of, named := strings.CutPrefix(member, commandWith); named {
		name = of
	}
	if first, list, given := strings.Cut(name, " "); given {
		name, hosts = first, []string{list}
	}
	make, err := sandbox.Maker(name, hosts...)
	if err != nil {
		return sandbox.Profile{}, err
	}
	return make("/"), nil
}

// about reports whether a rule is about commands with a profile. A rule that allows a
// profile allows the narrower ones. A rule that denies or asks about one does so for the
// wider ones, and for all if the profile cannot be read.
func about(r session.Rule, p sandbox.Profile) bool {
	if r.Member != "command" && !strings.HasPrefix(r.Member, commandWith) {
		return false
	}
	if r.Verdict != session.Allow && r.Member == "command" {
		return true
	}
	of, err := profileOf(r.Member)
	if r.Verdict == session.Allow {
		return err == nil && of.Covers(p)
	}
	return err != nil || p.Covers(of)
}

// widening says in words what a profile adds to the own one.
func widening(own, p sandbox.Profile) string {
	if p.Unconfined {
		return "with all your permissions: it could read, change and send every file that you can"
	}
	text := ""
	switch more := own.Lacks(p.Hosts...); {
	case len(more) > 0:
		text = "with the network to " + strings.Join(more, ", ") + ": it could send them what it reads"
	case p.Width() == sandbox.NameNetwork && own.Width() != sandbox.NameNetwork:
		text = "with the network: it could send what it reads to anybody, and reach the services on this machine"
	}
	if len(own.Write) > 0 {
		return text
	}
	if text != "" {
		text += "; "
	}
	return text + "and to write in the workspace"
}

// mostSearched is how much of the end of each output is searched for what a command
// lacked.
const mostSearched = 32 << 10

// lacked says what the sandbox refused to a command: the first of it in a few words, for
// the person, and all with what to do, for the model. It returns "" if it refused nothing. Of a
// command that succeeded, the output is not searched unless it has the errors as well.
func (p *process) lacked(run *sandbox.Run, end sandbox.Exit, stdout, stderr *spool.Spool) (first, note string) {
	text := tailOf(stderr)
	if end.Code != 0 || p.joinsErrors() {
		text = tailOf(stdout) + "\n" + text
	}
	list := run.Denials(end, text)
	if len(list) == 0 {
		return "", ""
	}
	var reasons, hosts []string
	wants := sandbox.NameReadOnly
	for _, d := range list {
		if len(reasons) < 3 {
			reasons = append(reasons, d.Reason)
		}
		need := p.needs(d)
		if need == sandbox.NameHosts && d.Entry != "" && !slices.Contains(hosts, d.Entry) {
			hosts = append(hosts, d.Entry)
		}
		if sandbox.Wider(need, wants) {
			wants = need
		}
	}
	how := p.howToAsk(wants, hosts)
	offline := !slices.ContainsFunc(list, func(d sandbox.Denial) bool { return d.Permission != sandbox.PermissionNetwork })
	if end.Code == 0 && offline { // many programs report to their makers, and do without
		how = "the command succeeded all the same; if its result lacks what you need: " + how
	}
	return reasons[0], "[" + strings.Join(reasons, "; ") + "; " + how + "]"
}

// joinsErrors reports whether the command is a script that writes errors to the output, as
// in make 2>&1 | tail.
func (p *process) joinsErrors() bool {
	return slices.ContainsFunc(p.argv, func(arg string) bool {
		return strings.Contains(arg, "2>&1") || strings.Contains(arg, "&>") || strings.Contains(arg, "|&")
	})
}

// mostPlanted is how many of the files that a command made for other programs are named.
const mostPlanted = 5

// planted says what a command made that other programs run or obey, or "".
func planted(list []string) string {
	if len(list) == 0 {
		return ""
	}
	more := ""
	if n := len(list) - mostPlanted; n > 0 {
		list, more = list[:mostPlanted], fmt.Sprintf("; and %d more", n)
	}
	return "[tell the user to look at this before using it: " + strings.Join(list, "; ") + more + "]"
}

// needs returns the narrowest profile that has a permission. It is wider than the profile of
// the process, so that a call that asks for it does not lack the same again.
func (p *process) needs(d sandbox.Denial) string {
	width := p.profile.Width()
	switch {
	case d.Permission == sandbox.PermissionNetwork && p.byHost(d):
		return sandbox.NameHosts
	case d.Permission == sandbox.PermissionNetwork && sandbox.Wider(sandbox.NameNetwork, width):
		return sandbox.NameNetwork
	case d.Permission == sandbox.PermissionWrite && within(p.roots, d.Path) && sandbox.Wider(sandbox.NameWorkspace, width):
		return sandbox.NameWorkspace
	}
	return sandbox.NameFull
}

// byHost reports whether hosts may be all that a program lacks: the one that was refused or,
// if the profile names none yet, those that the model knows of.
func (p *process) byHost(d sandbox.Denial) bool {
	host := cmp.Or(d.Entry, "unknown.example")
	if d.Entry == "" && (d.Host != "" || len(p.profile.Hosts) > 0) {
		return false
	}
	make, err := sandbox.Maker("", host)
	return err == nil && supports(p.profile.Widened(make())) == nil
}

// howToAsk says how to get a wider profile.
func (p *process) howToAsk(profile string, hosts []string) string {
	if profile != sandbox.NameHosts {
		if p.fixed {
			return fmt.Sprintf("only the user can allow it, with the sandbox profile %s", profile)
		}
		return fmt.Sprintf(`to ask the user for it, call the tool again with "sandbox": %q and a short "why"`, profile)
	}
	names := strings.Join(hosts, ", ")
	switch {
	case p.fixed && len(hosts) == 0:
		return "only the user can allow it, with the hosts that the sandbox may reach"
	case p.fixed:
		return "only the user can allow it, with the hosts of the sandbox: " + names
	case len(hosts) == 0:
		return fmt.Sprintf(`to ask the user for it, call the tool again with "hosts", a list of the hosts that it needs, and a short "why"; if they are not known, with "sandbox": %q`, sandbox.NameNetwork)
	}
	all := slices.Clone(p.asked) // without them a next call would lack the first again
	for _, host := range hosts {
		if !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	list, _ := json.Marshal(all) // texts can always be written
	return fmt.Sprintf(`to ask the user for it, call the tool again with "hosts": %s and a short "why"`, list)
}

// tailOf returns the end of an output.
func tailOf(s *spool.Spool) string {
	at := max(0, s.Size()-mostSearched)
	text, _ := io.ReadAll(io.NewSectionReader(s, at, s.Size()-at)) // what cannot be read has no denials
	return string(text)
}
