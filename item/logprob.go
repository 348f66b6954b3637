// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// TokenLogprob is one token of a text with the logarithm of its probability.
// Bytes are those of the token, nil where the endpoint does not say. Schemas:
// LogProb, ResponseLogProb.
type TokenLogprob struct {
	Token   string
	Logprob float64
	Bytes   []int64
	// Top lists the likeliest tokens at this place.
	Top   []TopLogprob
	Extra Extra
}

// TopLogprob is one of the likeliest tokens. Schemas: TopLogProb,
// ResponseLogProb.top_logprobs.
type TopLogprob struct {
	Token   string
	Logprob float64
	Bytes   []int64
	Extra   Extra
}

// TokenLogprobs reads the log probabilities, which come when
// [IncludeLogprobs] asks for them.
func (p *OutputText) TokenLogprobs() ([]TokenLogprob, error) {
	return parseListOf(p.Logprobs, parseLogprob)
}

// LogprobList writes log probabilities as [OutputText] keeps them.
func LogprobList(list ...TokenLogprob) (JSON, error) {
	return listJSON(list, func(dst []byte, v TokenLogprob) ([]byte, error) { return appendRecord(dst, &v) })
}

func parseLogprob(s string) (TokenLogprob, error) {
	var v TokenLogprob
	err := decodeRecord(s, &v)
	return v, err
}

func (v *TokenLogprob) fields(c *codec) {
	c.text("token", &v.Token, &v.Extra)
	c.numbers("bytes", &v.Bytes)
	c.decimal("logprob", &v.Logprob, &v.Extra)
	recordList(c, "top_logprobs", &v.Top)
	c.end(&v.Extra)
}

func (v *TopLogprob) fields(c *codec) {
	c.text("token", &v.Token, &v.Extra)
	c.numbers("bytes", &v.Bytes)
	c.decimal("logprob", &v.Logprob, &v.Extra)
	c.end(&v.Extra)
}
