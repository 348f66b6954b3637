// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// FormatText is the [CustomTool.Format] of any text. Schema:
// CustomTextFormatParam.
const FormatText JSON = `{"type":"text"}`

// The syntaxes of a grammar. Schema: GrammarSyntax1.
const (
	SyntaxLark  = "lark"
	SyntaxRegex = "regex"
)

// FormatGrammar returns the [CustomTool.Format] of texts that fit a grammar in
// the syntax [SyntaxLark] or [SyntaxRegex]. Schema: CustomGrammarFormatParam.
func FormatGrammar(syntax, definition string) JSON {
	return `{"type":"grammar","syntax":` + Quote(syntax) + `,"definition":` + Quote(definition) + `}`
}

// CustomFormat is a view of [CustomTool.Format]. Schemas:
// CustomTextFormatParam, CustomGrammarFormatParam.
type CustomFormat struct {
	// Type is "text" or "grammar".
	Type       string
	Syntax     string
	Definition string
	Extra      Extra
}

// ParseCustomFormat reads a format. Types that this version does not know are
// no error.
func ParseCustomFormat(j JSON) (*CustomFormat, error) { return parseBody[CustomFormat]([]byte(j)) }

// JSON returns the format as [CustomTool.Format] takes it.
func (v *CustomFormat) JSON() (JSON, error) {
	b, err := appendRecord(nil, v)
	return JSON(b), err
}

func (v *CustomFormat) fields(c *codec) {
	c.optString("type", &v.Type)
	c.optString("syntax", &v.Syntax)
	c.optString("definition", &v.Definition)
	c.rest(&v.Extra)
}
