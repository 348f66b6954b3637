// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// Kind is what a record is about.
type Kind string

// The kinds of records. Each says what has happened, or is about to.
const (
	// KindTrusted means that an agent's file may do what its claim says. Powers are those
	// that were agreed to.
	KindTrusted Kind = "trusted"
	// KindDistrusted means that somebody was asked about a file and did not agree.
	KindDistrusted Kind = "distrusted"
	// KindRevoked means that an agreement about a file was taken back.
	KindRevoked Kind = "revoked"
	// KindAllowed and KindRefused are the answers to a question about a call.
	KindAllowed Kind = "allowed"
	KindRefused Kind = "refused"
	// KindRemembered means that an answer added a rule for later calls. Rule is the rule.
	KindRemembered Kind = "remembered"
	// KindStarted means that a tool is about to start for a call. Rule is the rule that
	// allowed it, if no person did, and Sandbox where its programs run.
	KindStarted Kind = "started"
	// KindDenied means that a call did not start. Rule is the rule that denied it, if no
	// person did.
	KindDenied Kind = "denied"
	// KindConnected means that an MCP server is about to be started or connected to.
	// Command is its command line, and Where the folder and Sandbox the profile that it
	// starts in; or What is its address.
	KindConnected Kind = "connected"
	// KindReleased means that a variable of the environment, or the token of a caller, may be
	// sent. What is its name, and Where are the hosts.
	KindReleased Kind = "released"
	// KindRepaired means that the last line was incomplete, because a process or the
	// machine ended while it was written. The log removed it. What says how long it was.
	KindRepaired Kind = "repaired"
)

// Record is one line of a log. A field that does not apply is empty.
type Record struct {
	// At is the time. [Log.Write] sets it if it is zero.
	At   time.Time `json:"at"`
	Kind Kind      `json:"kind"`
	// Program is the name and version of the program.
	Program string `json:"program,omitzero"`
	Session string `json:"session,omitzero"`
	CallID  string `json:"call_id,omitzero"`
	// Agent is the name of the agent's file that the call comes from.
	Agent string `json:"agent,omitzero"`
	// File is the path of the agent's file that was started, and Claim the hash of its
	// content with all that it includes: see [trust.Claim].
	File  string `json:"file,omitzero"`
	Claim string `json:"claim_sha256,omitzero"`
	// Tool is the name of the tool, and Arguments the hash of the call's arguments.
	Tool      string `json:"tool,omitzero"`
	Arguments string `json:"arguments_sha256,omitzero"`
	// What and Where say what was connected to or sent, and Command what was started.
	What    string   `json:"what,omitzero"`
	Command []string `json:"command,omitzero"`
	Where   string   `json:"where,omitzero"`
	// Sandbox is the name of the profile in which programs are started, with the hosts that
	// they may reach: see package sandbox. It is full where nothing confines them.
	Sandbox string `json:"sandbox,omitzero"`
	// Powers are those that somebody agreed to.
	Powers trust.Powers `json:"powers,omitzero"`
	// Decided says who decided, By is the person's name, From the means or the place of
	// the rule, and Rule the rule.
	Decided session.Decider `json:"decided,omitzero"`
	By      string          `json:"by,omitzero"`
	From    string          `json:"from,omitzero"`
	Rule    string          `json:"rule,omitzero"`
	// Shown is the hash of the text that the person saw before the answer.
	Shown string `json:"shown_sha256,omitzero"`
	// Prev is the hash of the line before, "" in the first line. [Log.Write] sets it.
	Prev string `json:"prev"`
}

// Hash returns the SHA-256 hash of a text in hexadecimal, or "" for an empty text.
func Hash(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// maxText is the number of characters of a text that a record keeps. A rule about a
// command may contain a script.
const maxText = 300

// Hidden returns the record with hide applied to its texts, and long texts shortened.
// The function hide may be nil. A caller that knows secrets uses it before it writes.
func (r Record) Hidden(hide func(string) string) Record {
	for _, text := range []*string{&r.CallID, &r.Agent, &r.File, &r.Tool, &r.What, &r.Where, &r.By, &r.From, &r.Rule} {
		*text = short(hide, *text)
	}
	command := r.Command
	r.Command = nil
	for _, word := range command {
		r.Command = append(r.Command, short(hide, word))
	}
	powers := r.Powers
	r.Powers = nil
	for _, p := range powers {
		r.Powers = append(r.Powers, trust.Power{Kind: p.Kind, What: short(hide, p.What), Where: short(hide, p.Where)})
	}
	return r
}

func short(hide func(string) string, text string) string {
	if hide != nil {
		text = hide(text) // before it is shortened, because a part of a secret is not found
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	n := 0
	for i := range text {
		if n++; n > maxText {
			return text[:i] + "…"
		}
	}
	return text
}

// Agreed returns the record of the answer to a claim. The error is that of the
// question: somebody or nobody did not agree.
func Agreed(c trust.Claim, a trust.Agreement, err error) Record {
	r := Record{Kind: KindTrusted, File: c.Path, Claim: c.Hash(), Powers: a.Powers, Decided: cmp.Or(a.Decided, session.DeciderProgram), By: a.By, From: a.From, Shown: Hash(a.Shown)}
	if err != nil {
		r.Kind, r.Powers, r.Decided = KindDistrusted, nil, cmp.Or(a.Decided, session.DeciderNobody)
	}
	return r
}
