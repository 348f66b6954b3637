// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"net/http"
	"slices"

	"github.com/antiphon-go/antiphon/internal/nils"
)

// Rand is the source of randomness for [RandomAnswer]: a *rand.Rand of math/rand/v2,
// or the generator of a property-testing library.
type Rand interface {
	// IntN returns a number in [0, n).
	IntN(n int) int
}

// RandomAnswer returns right with up to three faults, or a failure, for property
// tests of clients. In every case a client must return the whole reply or an error.
// String describes the faults. No answer contains a complete reply other than
// right's, although some are valid in unusual ways. Stalls are endless, so a client
// needs a timeout for silence.
func RandomAnswer(dice Rand, right Reply) Reply {
	if nils.Is(dice) {
		return right
	}
	if dice.IntN(4) == 0 {
		return randomFailure(dice)
	}
	a := right
	for range dice.IntN(4) {
		a = randomFault(dice, a)
	}
	return a
}

// Schedule returns n random answers, at most 65536, followed by right itself.
func Schedule(dice Rand, n int, right Reply) []Reply {
	var list []Reply
	for range min(n, maxAnswers) {
		list = append(list, RandomAnswer(dice, right))
	}
	return append(list, right)
}

// randomFailure returns an answer without a reply.
func randomFailure(dice Rand) Reply {
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

// randomFault adds a fault, or an unusual but valid form.
func randomFault(dice Rand, a Reply) Reply {
	one := faults[dice.IntN(len(faults))]
	return one(dice, a)
}

// far is the range of positions in a body or among events, including positions after
// the end.
const (
	farBytes  = 6000
	farEvents = 24
)

var faults = []func(Rand, Reply) Reply{
	func(d Rand, a Reply) Reply { return a.CutAfter(d.IntN(farBytes)) },
	func(d Rand, a Reply) Reply { return a.CutAfter(d.IntN(farBytes)).ByReset() },
	func(d Rand, a Reply) Reply { return a.CutAfter(d.IntN(farBytes)).UntilClose() },
	func(d Rand, a Reply) Reply { return a.CutWire(d.IntN(farBytes)) },
	func(d Rand, a Reply) Reply { return a.CutWire(d.IntN(200)).ByReset() },
	func(d Rand, a Reply) Reply { return a.StallAfter(d.IntN(farEvents), nil) },
	func(_ Rand, a Reply) Reply { return a.Stall(nil) },
	func(d Rand, a Reply) Reply { return a.Without(d.IntN(farEvents)) },
	func(_ Rand, a Reply) Reply { return a.WithoutLast() },
	func(d Rand, a Reply) Reply { return a.Twice(d.IntN(farEvents)) },
	func(d Rand, a Reply) Reply { return a.Move(d.IntN(farEvents), d.IntN(farEvents)) },
	func(d Rand, a Reply) Reply { return a.Move(-1, d.IntN(farEvents)) },
	func(d Rand, a Reply) Reply { return a.WithEvent(d.IntN(farEvents), "garbage") },
	func(d Rand, a Reply) Reply { return a.WithEvent(d.IntN(farEvents), `{"type":"keepalive"}`) },
	func(d Rand, a Reply) Reply { return a.WithEvent(d.IntN(farEvents), `{"type":"response.`) },
	func(d Rand, a Reply) Reply { return a.WithEvent(d.IntN(farEvents), "[DONE]") },
	func(d Rand, a Reply) Reply { return a.WithBinary(d.IntN(farEvents), "\x00\xff") },
	func(_ Rand, a Reply) Reply { return a.WithDone() },
	func(_ Rand, a Reply) Reply { return a.NoFinalNewline() },
	func(_ Rand, a Reply) Reply { return a.WithBOM() },
	func(_ Rand, a Reply) Reply { return a.WithComments() },
	func(_ Rand, a Reply) Reply { return a.Tight().DataLines() },
	func(_ Rand, a Reply) Reply { return a.LineEnds("\r") },
	func(_ Rand, a Reply) Reply { return a.LineEnds("\r\n") },
	func(_ Rand, a Reply) Reply { return a.Gzip() },
	func(_ Rand, a Reply) Reply { return a.ByteByByte() },
	func(d Rand, a Reply) Reply { return a.InPieces(randomSizes(d)...) },
	func(d Rand, a Reply) Reply { return a.WrongLength(d.IntN(farBytes) - farBytes/2) },
	func(_ Rand, a Reply) Reply { return a.UntilClose() },
	func(_ Rand, a Reply) Reply { return a.Trailing("garbage\r\n\r\n") },
	func(_ Rand, a Reply) Reply { return a.TwoAnswers(http.StatusInternalServerError, "{}") },
	func(_ Rand, a Reply) Reply { return a.StatusLine("garbage") },
	func(_ Rand, a Reply) Reply { return a.After(http.StatusEarlyHints) },
	func(_ Rand, a Reply) Reply { return a.WithHeader("Content-Type", "text/plain") },
	func(_ Rand, a Reply) Reply { return a.WithHeader("Content-Type", "application/json") },
	func(_ Rand, a Reply) Reply { return a.HugeHeader(1 << 16) },
	func(d Rand, a Reply) Reply { return a.CloseAfter(d.IntN(farEvents), 1000+d.IntN(16), "") },
	func(_ Rand, a Reply) Reply { return a.NoPong() },
}

func randomSizes(dice Rand) []int {
	sizes := make([]int, dice.IntN(40))
	for i := range sizes {
		sizes[i] = 1 + dice.IntN(300)
	}
	return slices.Clip(sizes)
}
