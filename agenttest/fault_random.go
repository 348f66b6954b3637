// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"net/http"
	"slices"
)

// Dice give the chance in [RandomAnswer]: a *rand.Rand of math/rand/v2, or what
// a property-testing library draws.
type Dice interface {
	// IntN returns a number in [0, n).
	IntN(n int) int
}

// RandomAnswer returns right with up to three faults, or a failure in its
// place, for property tests of clients: whatever it is, a client must come back
// with the whole reply or with an error. Its String tells what was drawn. No
// answer holds a whole reply other than right's, though some are right in
// unusual ways; those that stall do it for good, so that a client needs a limit
// on silence.
func RandomAnswer(dice Dice, right Answer) Answer {
	if dice.IntN(4) == 0 {
		return randomFailure(dice)
	}
	a := right
	for range dice.IntN(4) {
		a = randomFault(dice, a)
	}
	return a
}

// Schedule returns n random answers, and then right as it is.
func Schedule(dice Dice, n int, right Answer) []Answer {
	var list []Answer
	for range n {
		list = append(list, RandomAnswer(dice, right))
	}
	return append(list, right)
}

// randomFailure has no reply in it.
func randomFailure(dice Dice) Answer {
	statuses := []int{400, 401, 403, 404, 408, 409, 413, 429, 500, 501, 502, 503, 504, 529}
	status := statuses[dice.IntN(len(statuses))]
	switch dice.IntN(6) {
	case 0:
		return Reset()
	case 1:
		return WebPage(status, http.StatusText(status))
	case 2:
		return Raw(status, "text/plain", "")
	case 3:
		codes := []string{"rate_limit_exceeded", "server_error", "insufficient_quota", "previous_response_not_found"}
		return ErrorEvent(codes[dice.IntN(len(codes))], "no luck")
	case 4:
		return Failed("server_error", "no luck")
	}
	return Failure(status, "no_luck", "no luck")
}

// randomFault adds a fault, or an oddity that is not a fault.
func randomFault(dice Dice, a Answer) Answer {
	one := faults[dice.IntN(len(faults))]
	return one(dice, a)
}

// far is the range of places in a body or among events: after its end too.
const (
	farBytes  = 6000
	farEvents = 24
)

var faults = []func(Dice, Answer) Answer{
	func(d Dice, a Answer) Answer { return a.CutAfter(d.IntN(farBytes)) },
	func(d Dice, a Answer) Answer { return a.CutAfter(d.IntN(farBytes)).ByReset() },
	func(d Dice, a Answer) Answer { return a.CutAfter(d.IntN(farBytes)).UntilClose() },
	func(d Dice, a Answer) Answer { return a.CutWire(d.IntN(farBytes)) },
	func(d Dice, a Answer) Answer { return a.CutWire(d.IntN(200)).ByReset() },
	func(d Dice, a Answer) Answer { return a.StallAfter(d.IntN(farEvents), nil) },
	func(_ Dice, a Answer) Answer { return a.Stall(nil) },
	func(d Dice, a Answer) Answer { return a.Without(d.IntN(farEvents)) },
	func(_ Dice, a Answer) Answer { return a.WithoutLast() },
	func(d Dice, a Answer) Answer { return a.Twice(d.IntN(farEvents)) },
	func(d Dice, a Answer) Answer { return a.Move(d.IntN(farEvents), d.IntN(farEvents)) },
	func(d Dice, a Answer) Answer { return a.Move(-1, d.IntN(farEvents)) },
	func(d Dice, a Answer) Answer { return a.WithEvent(d.IntN(farEvents), "garbage") },
	func(d Dice, a Answer) Answer { return a.WithEvent(d.IntN(farEvents), `{"type":"keepalive"}`) },
	func(d Dice, a Answer) Answer { return a.WithEvent(d.IntN(farEvents), `{"type":"response.`) },
	func(d Dice, a Answer) Answer { return a.WithEvent(d.IntN(farEvents), "[DONE]") },
	func(d Dice, a Answer) Answer { return a.WithBinary(d.IntN(farEvents), "\x00\xff") },
	func(_ Dice, a Answer) Answer { return a.WithDone() },
	func(_ Dice, a Answer) Answer { return a.NoFinalNewline() },
	func(_ Dice, a Answer) Answer { return a.WithBOM() },
	func(_ Dice, a Answer) Answer { return a.WithComments() },
	func(_ Dice, a Answer) Answer { return a.Tight().DataLines() },
	func(_ Dice, a Answer) Answer { return a.LineEnds("\r") },
	func(_ Dice, a Answer) Answer { return a.LineEnds("\r\n") },
	func(_ Dice, a Answer) Answer { return a.Gzip() },
	func(_ Dice, a Answer) Answer { return a.ByteByByte() },
	func(d Dice, a Answer) Answer { return a.InPieces(randomSizes(d)...) },
	func(d Dice, a Answer) Answer { return a.WrongLength(d.IntN(farBytes) - farBytes/2) },
	func(_ Dice, a Answer) Answer { return a.UntilClose() },
	func(_ Dice, a Answer) Answer { return a.Trailing("garbage\r\n\r\n") },
	func(_ Dice, a Answer) Answer { return a.TwoAnswers(http.StatusInternalServerError, "{}") },
	func(_ Dice, a Answer) Answer { return a.StatusLine("garbage") },
	func(_ Dice, a Answer) Answer { return a.After(http.StatusEarlyHints) },
	func(_ Dice, a Answer) Answer { return a.WithHeader("Content-Type", "text/plain") },
	func(_ Dice, a Answer) Answer { return a.WithHeader("Content-Type", "application/json") },
	func(_ Dice, a Answer) Answer { return a.HugeHeader(1 << 16) },
	func(d Dice, a Answer) Answer { return a.CloseAfter(d.IntN(farEvents), 1000+d.IntN(16), "") },
	func(_ Dice, a Answer) Answer { return a.NoPong() },
}

func randomSizes(dice Dice) []int {
	sizes := make([]int, dice.IntN(40))
	for i := range sizes {
		sizes[i] = 1 + dice.IntN(300)
	}
	return slices.Clip(sizes)
}
