// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// TextConfig says what the model's text is to be like, see [Request.Text].
// Schema: ResponseTextParam.
type TextConfig struct {
	Format *TextFormat
	// Verbosity is low, medium or high.
	Verbosity string
	Extra     Extra
}

// The types of a [TextFormat].
const (
	TextPlain      = "text"
	TextJSONObject = "json_object"
	TextJSONSchema = "json_schema"
)

// TextFormat is the form of the model's text: any, some JSON object, or JSON
// after a schema. Schemas: ResponseFormatText, ResponseFormatJsonObject,
// TextResponseFormatJsonSchema.
type TextFormat struct {
	// Type is [TextPlain], [TextJSONObject] or [TextJSONSchema]. The other
	// fields are for the last.
	Type        string
	Name        string
	Description string
	// Schema is a JSON Schema, which passes through unchanged.
	Schema JSON
	Strict *bool
	Extra  Extra
}

// The text formats without a schema, as [Request.Text] takes them.
const (
	TextAny      JSON = `{"format":{"type":"text"}}`
	TextAsObject JSON = `{"format":{"type":"json_object"}}`
)

// TextAsSchema returns the [Request.Text] for JSON after a schema. The name is
// for the model; the endpoint enforces the schema when strict is set.
func TextAsSchema(name string, schema JSON, strict bool) (JSON, error) {
	return (&TextConfig{Format: &TextFormat{Type: TextJSONSchema, Name: name, Schema: schema, Strict: &strict}}).JSON()
}

// ParseTextConfig reads [Request.Text] or [Response.TextConfig]. Formats that
// this version does not know are not errors.
func ParseTextConfig(j JSON) (*TextConfig, error) { return parseBody[TextConfig]([]byte(j)) }

// JSON returns the configuration as [Request.Text] takes it.
func (v *TextConfig) JSON() (JSON, error) {
	b, err := appendRecord(nil, v)
	return JSON(b), err
}

func (v *TextConfig) fields(c *codec) {
	optRecord(c, "format", &v.Format)
	c.optString("verbosity", &v.Verbosity)
	c.rest(&v.Extra)
}

func (v *TextFormat) fields(c *codec) {
	c.optString("type", &v.Type)
	c.optString("name", &v.Name)
	c.optString("description", &v.Description)
	c.raw("schema", &v.Schema)
	c.optBool("strict", &v.Strict)
	c.rest(&v.Extra)
}
