// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// CodeInterpreterCall is code that the model wrote and the endpoint ran. Schema:
// CodeInterpreterToolCall.
type CodeInterpreterCall struct {
	ID          string
	Status      string
	ContainerID string
	// Code is written as null when empty.
	Code string
	// Outputs come when [IncludeCodeInterpreterOutputs] asks for them. It is
	// written as null when nil.
	Outputs []CodeOutput
	Extra   Extra
}

// CodeOutput is what code wrote, with the type "logs", or a picture that it
// made, with the type "image". Schemas: CodeInterpreterOutputLogs,
// CodeInterpreterOutputImage.
type CodeOutput struct {
	Type  string
	Logs  string
	URL   string
	Extra Extra
}

// ImageGenerationCall is a picture that the endpoint made. Schema:
// ImageGenToolCall.
type ImageGenerationCall struct {
	ID     string
	Status string
	// Result is the picture in base64. It is written as null when empty.
	Result string
	Extra  Extra
}

// Program is code that the model wrote to call tools by, run by the endpoint.
// The calls that it makes name it as their [Caller]. Schemas: Program,
// ProgramItemParam.
type Program struct {
	ID     string
	CallID string
	Code   string
	// Fingerprint is for the endpoint to find the program again.
	Fingerprint string
	Extra       Extra
}

// ProgramOutput is what a [Program] came to. Schemas: ProgramOutput,
// ProgramOutputItemParam.
type ProgramOutput struct {
	ID     string
	CallID string
	Result string
	Status string
	Extra  Extra
}

// ItemType returns [TypeCodeInterpreterCall].
func (*CodeInterpreterCall) ItemType() Type { return TypeCodeInterpreterCall }

// ItemType returns [TypeImageGenerationCall].
func (*ImageGenerationCall) ItemType() Type { return TypeImageGenerationCall }

// ItemType returns [TypeProgram].
func (*Program) ItemType() Type { return TypeProgram }

// ItemType returns [TypeProgramOutput].
func (*ProgramOutput) ItemType() Type { return TypeProgramOutput }

func (v *CodeInterpreterCall) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeCodeInterpreterCall))
	c.optString("status", &v.Status)
	c.nullText("code", &v.Code, &v.Extra)
	c.optString("container_id", &v.ContainerID)
	c.orEmpty("outputs", "null", v.Outputs == nil, &v.Extra)
	recordList(c, "outputs", &v.Outputs)
	c.end(&v.Extra)
}

func (v *CodeOutput) fields(c *codec) {
	c.optString("type", &v.Type)
	c.optString("logs", &v.Logs)
	c.optString("url", &v.URL)
	c.rest(&v.Extra)
}

func (v *ImageGenerationCall) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeImageGenerationCall))
	c.optString("status", &v.Status)
	c.nullText("result", &v.Result, &v.Extra)
	c.end(&v.Extra)
}

func (v *Program) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeProgram))
	c.text("call_id", &v.CallID, &v.Extra)
	c.text("code", &v.Code, &v.Extra)
	c.text("fingerprint", &v.Fingerprint, &v.Extra)
	c.end(&v.Extra)
}

func (v *ProgramOutput) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeProgramOutput))
	c.optString("status", &v.Status)
	c.text("call_id", &v.CallID, &v.Extra)
	c.text("result", &v.Result, &v.Extra)
	c.end(&v.Extra)
}
