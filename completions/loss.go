// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"errors"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// ErrNothing is what a conversion returns, wrapped, when there is no message to
// send.
var ErrNothing = errors.New("there is nothing to send")

// LossKind says how much a [Loss] matters.
type LossKind int

const (
	// LostMember is a setting or a member that the other side does not have.
	LostMember LossKind = iota
	// LostContent is a part of a message or of an output, such as an image: the
	// model was meant to see it and does not.
	LostContent
	// LostLabel is an id, a state or an origin of an item. The model never sees
	// it, and a log of items keeps it.
	LostLabel
	// Moved is not a loss: it stands at another place or in another form.
	Moved
)

// Loss names something that the other side has no form for, or has at another
// place.
type Loss struct {
	// Path leads to it in what was converted, such as "messages[2].name".
	Path string
	// What says what became of it.
	What string
	Kind LossKind
}

// String returns the path and what became of it.
func (l Loss) String() string { return l.Path + ": " + l.What }

// What is said of most losses.
const (
	noCounterpart = "has no counterpart"
	reordered     = "moved: the order of the two is not the same"
	olderCall     = "the older form: becomes a call of a tool"
)

// place is where in the source a conversion is, and takes its losses.
type place struct {
	to   *[]Loss // nil: nobody asks
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

// move names what is not missing, but stands elsewhere or in another form.
func (p place) move(what string) { p.add(Loss{Path: p.path, What: what, Kind: Moved}) }

// label names an id, a state or an origin that has no counterpart.
func (p place) label() { p.add(Loss{Path: p.path, What: noCounterpart, Kind: LostLabel}) }

// loseContent is for parts that the model does not get to see.
func (p place) loseContent(what string) { p.add(Loss{Path: p.path, What: what, Kind: LostContent}) }

func (p place) add(l Loss) {
	if p.to != nil {
		*p.to = append(*p.to, l)
	}
}

// extra names the members that a struct of package item kept without knowing
// them, and the texts that it could not hold.
func (p place) extra(x item.Extra) {
	for _, m := range x {
		if m.Value != "" && !blank(m.Value) {
			p.at(m.Name).lose(noCounterpart)
		}
	}
}

// shapeError is an error of the source's shape.
func shapeError(path, problem string) error { return &item.ShapeError{Path: path, Problem: problem} }

// placed adds where an item is to what package item says of it.
func placed(err error, at place) error {
	var shape *item.ShapeError
	if !errors.As(err, &shape) || strings.HasPrefix(shape.Path, at.path) {
		return err
	}
	e := *shape
	e.Path = at.at(shape.Path).path
	return &e
}
