// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"errors"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/item"
)

// ErrNothing is returned, wrapped, by a conversion that has no message to send.
var ErrNothing = errors.New("there is nothing to send")

// Loss is something that the other API cannot express, or has in another place.
type Loss = dialect.Loss

// LossKind is how important a [Loss] is.
type LossKind = dialect.LossKind

// The kinds of a [Loss]; see package dialect.
const (
	LostMember  = dialect.LostMember
	LostContent = dialect.LostContent
	LostLabel   = dialect.LostLabel
	Moved       = dialect.Moved
)

// Common descriptions of losses.
const (
	noCounterpart = "has no counterpart"
	reordered     = "moved: the order of the two is not the same"
	olderCall     = "the older form: becomes a call of a tool"
)

// place is the current position in the source, and collects its losses.
type place struct {
	to   *[]Loss // nil if losses are not reported
	path string
}

func (p place) at(name string) place {
	if p.path == "" {
		return place{p.to, name}
	}
	return place{p.to, p.path + "." + name}
}

func (p place) index(i int) place {
	return place{p.to, p.path + "[" + strconv.Itoa(i) + "]"}
}

func (p place) lose(what string) { p.add(Loss{Path: p.path, What: what}) }

// move reports a value that is kept in another place or form.
func (p place) move(what string) { p.add(Loss{Path: p.path, What: what, Kind: Moved}) }

// label reports an id, a state or an origin that has no counterpart.
func (p place) label() { p.add(Loss{Path: p.path, What: noCounterpart, Kind: LostLabel}) }

// loseContent reports a part that the model does not see.
func (p place) loseContent(what string) { p.add(Loss{Path: p.path, What: what, Kind: LostContent}) }

func (p place) add(l Loss) {
	if p.to != nil {
		*p.to = append(*p.to, l)
	}
}

// extra reports the unknown members that a struct of package item kept, and the texts that it could
// not hold.
func (p place) extra(x item.Extra) {
	for _, m := range x {
		if m.Value != "" && !blank(m.Value) {
			p.at(m.Name).lose(noCounterpart)
		}
	}
}

// shapeError returns an error about the source's shape.
func shapeError(path, problem string) error { return &item.ShapeError{Path: path, Problem: problem} }

// placed adds an item's position to an error of package item.
func placed(err error, at place) error {
	var shape *item.ShapeError
	if !errors.As(err, &shape) || strings.HasPrefix(shape.Path, at.path) {
		return err
	}
	e := *shape
	e.Path = at.at(shape.Path).path
	return &e
}
