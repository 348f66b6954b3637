// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// ComputerAction is one action on a computer: [*ClickAction],
// [*DoubleClickAction], [*DragAction], [*KeyPressAction], [*MoveAction],
// [*ScreenshotAction], [*ScrollAction], [*TypeAction], [*WaitAction] or
// [*UnknownAction]. Places are pixels from the upper left corner; Keys are held
// meanwhile. Schema: ComputerAction.
type ComputerAction interface {
	// ActionType returns the type member.
	ActionType() string
	record
}

// ClickAction clicks with the Button left, right, wheel, back or forward.
// Schema: ClickParam.
type ClickAction struct {
	Button string
	X, Y   int64
	Keys   []string
	Extra  Extra
}

// DoubleClickAction clicks twice with the left button. Schema:
// DoubleClickAction.
type DoubleClickAction struct {
	X, Y  int64
	Keys  []string
	Extra Extra
}

// DragAction moves along Path with the left button down. Schema: DragParam.
type DragAction struct {
	Path  []Coordinate
	Keys  []string
	Extra Extra
}

// Coordinate is a place on the screen. Schema: CoordParam.
type Coordinate struct {
	X, Y  int64
	Extra Extra
}

// KeyPressAction presses Keys together. Schema: KeyPressAction.
type KeyPressAction struct {
	Keys  []string
	Extra Extra
}

// MoveAction moves the pointer. Schema: MoveParam.
type MoveAction struct {
	X, Y  int64
	Keys  []string
	Extra Extra
}

// ScreenshotAction asks for a picture of the screen and nothing else. Schema:
// ScreenshotParam.
type ScreenshotAction struct{ Extra Extra }

// ScrollAction scrolls by ScrollX and ScrollY at the place X, Y. Schema:
// ScrollParam.
type ScrollAction struct {
	X, Y             int64
	ScrollX, ScrollY int64
	Keys             []string
	Extra            Extra
}

// TypeAction types Text. Schema: TypeParam.
type TypeAction struct {
	Text  string
	Extra Extra
}

// WaitAction waits for the screen to change. Schema: WaitParam.
type WaitAction struct{ Extra Extra }

// UnknownAction is an action of a type that this version does not know, kept
// byte for byte.
type UnknownAction struct{ Raw JSON }

// ActionType returns "click".
func (*ClickAction) ActionType() string { return "click" }

// ActionType returns "double_click".
func (*DoubleClickAction) ActionType() string { return "double_click" }

// ActionType returns "drag".
func (*DragAction) ActionType() string { return "drag" }

// ActionType returns "keypress".
func (*KeyPressAction) ActionType() string { return "keypress" }

// ActionType returns "move".
func (*MoveAction) ActionType() string { return "move" }

// ActionType returns "screenshot".
func (*ScreenshotAction) ActionType() string { return "screenshot" }

// ActionType returns "scroll".
func (*ScrollAction) ActionType() string { return "scroll" }

// ActionType returns "type".
func (*TypeAction) ActionType() string { return "type" }

// ActionType returns "wait".
func (*WaitAction) ActionType() string { return "wait" }

// ActionType returns the type member, or "".
func (a *UnknownAction) ActionType() string { return typeOfRaw(a.Raw) }

func newAction(typ string) (ComputerAction, bool) {
	switch typ {
	case "click":
		return new(ClickAction), true
	case "double_click":
		return new(DoubleClickAction), true
	case "drag":
		return new(DragAction), true
	case "keypress":
		return new(KeyPressAction), true
	case "move":
		return new(MoveAction), true
	case "screenshot":
		return new(ScreenshotAction), true
	case "scroll":
		return new(ScrollAction), true
	case "type":
		return new(TypeAction), true
	case "wait":
		return new(WaitAction), true
	}
	return nil, false
}

func parseAction(s string) (ComputerAction, error) {
	return parseUnion(s, "an action", newAction, func(raw JSON) ComputerAction { return &UnknownAction{Raw: raw} })
}

func (a *ClickAction) fields(c *codec) {
	c.kind("click", &a.Extra)
	c.needText("button", &a.Button, &a.Extra)
	place(c, &a.X, &a.Y, &a.Extra)
	c.optStrings("keys", &a.Keys)
	c.end(&a.Extra)
}

func (a *DoubleClickAction) fields(c *codec) {
	c.kind("double_click", &a.Extra)
	place(c, &a.X, &a.Y, &a.Extra)
	c.orEmpty("keys", "null", a.Keys == nil, &a.Extra)
	c.optStrings("keys", &a.Keys)
	c.end(&a.Extra)
}

func (a *DragAction) fields(c *codec) {
	c.kind("drag", &a.Extra)
	c.orEmpty("path", "[]", a.Path == nil, &a.Extra)
	recordList(c, "path", &a.Path)
	c.optStrings("keys", &a.Keys)
	c.end(&a.Extra)
}

func (p *Coordinate) fields(c *codec) {
	place(c, &p.X, &p.Y, &p.Extra)
	c.end(&p.Extra)
}

func (a *KeyPressAction) fields(c *codec) {
	c.kind("keypress", &a.Extra)
	c.orEmpty("keys", "[]", a.Keys == nil, &a.Extra)
	c.optStrings("keys", &a.Keys)
	c.end(&a.Extra)
}

func (a *MoveAction) fields(c *codec) {
	c.kind("move", &a.Extra)
	place(c, &a.X, &a.Y, &a.Extra)
	c.optStrings("keys", &a.Keys)
	c.end(&a.Extra)
}

func (a *ScreenshotAction) fields(c *codec) {
	c.kind("screenshot", &a.Extra)
	c.end(&a.Extra)
}

func (a *ScrollAction) fields(c *codec) {
	c.kind("scroll", &a.Extra)
	place(c, &a.X, &a.Y, &a.Extra)
	c.needNumber("scroll_x", &a.ScrollX, &a.Extra)
	c.needNumber("scroll_y", &a.ScrollY, &a.Extra)
	c.optStrings("keys", &a.Keys)
	c.end(&a.Extra)
}

func (a *TypeAction) fields(c *codec) {
	c.kind("type", &a.Extra)
	c.needText("text", &a.Text, &a.Extra)
	c.end(&a.Extra)
}

func (a *WaitAction) fields(c *codec) {
	c.kind("wait", &a.Extra)
	c.end(&a.Extra)
}

// fields is never reached: an unknown action is its raw text.
func (a *UnknownAction) fields(*codec) {}

func (a *UnknownAction) rawJSON() JSON { return a.Raw }

func place(c *codec, x, y *int64, extra *Extra) {
	c.needNumber("x", x, extra)
	c.needNumber("y", y, extra)
}
