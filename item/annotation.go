// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// Annotation says where a piece of the model's text comes from:
// [*FileCitation], [*URLCitation], [*ContainerFileCitation], [*FilePath] or
// [*UnknownAnnotation]. Indexes count characters of the text. Schema:
// Annotation.
type Annotation interface {
	// AnnotationType returns the type member.
	AnnotationType() string
	record
}

// FileCitation is a file of the caller's that the text rests on. Schema:
// FileCitationBody.
type FileCitation struct {
	FileID   string
	Filename string
	Index    int64
	Extra    Extra
}

// URLCitation is a web page that the text from StartIndex to EndIndex rests on.
// Schema: UrlCitationBody.
type URLCitation struct {
	URL        string
	Title      string
	StartIndex int64
	EndIndex   int64
	Extra      Extra
}

// ContainerFileCitation is a file that code made in its container. Schema:
// ContainerFileCitationBody.
type ContainerFileCitation struct {
	ContainerID string
	FileID      string
	Filename    string
	StartIndex  int64
	EndIndex    int64
	Extra       Extra
}

// FilePath is a file that the model made. Schema: FilePath.
type FilePath struct {
	FileID string
	Index  int64
	Extra  Extra
}

// UnknownAnnotation is an annotation of a type that this version does not know,
// kept byte for byte.
type UnknownAnnotation struct{ Raw JSON }

// AnnotationType returns "file_citation".
func (*FileCitation) AnnotationType() string { return "file_citation" }

// AnnotationType returns "url_citation".
func (*URLCitation) AnnotationType() string { return "url_citation" }

// AnnotationType returns "container_file_citation".
func (*ContainerFileCitation) AnnotationType() string { return "container_file_citation" }

// AnnotationType returns "file_path".
func (*FilePath) AnnotationType() string { return "file_path" }

// AnnotationType returns the type member, or "".
func (a *UnknownAnnotation) AnnotationType() string { return typeOfRaw(a.Raw) }

func newAnnotation(typ string) (Annotation, bool) {
	switch typ {
	case "file_citation":
		return new(FileCitation), true
	case "url_citation":
		return new(URLCitation), true
	case "container_file_citation":
		return new(ContainerFileCitation), true
	case "file_path":
		return new(FilePath), true
	}
	return nil, false
}

func parseAnnotation(s string) (Annotation, error) {
	return parseUnion(s, "an annotation", newAnnotation, func(raw JSON) Annotation { return &UnknownAnnotation{Raw: raw} })
}

// Citations reads the annotations. The error is a [*ShapeError] with the place
// of what is not an annotation.
func (p *OutputText) Citations() ([]Annotation, error) {
	return parseListOf(p.Annotations, parseAnnotation)
}

// AnnotationList writes annotations as [OutputText] keeps them; without any it
// is the empty list, which the schema wants.
func AnnotationList(list ...Annotation) (JSON, error) { return listJSON(list, appendUnion[Annotation]) }

func (a *FileCitation) fields(c *codec) {
	c.kind("file_citation", &a.Extra)
	c.text("file_id", &a.FileID, &a.Extra)
	c.text("filename", &a.Filename, &a.Extra)
	c.number("index", &a.Index, &a.Extra)
	c.end(&a.Extra)
}

func (a *URLCitation) fields(c *codec) {
	c.kind("url_citation", &a.Extra)
	c.number("end_index", &a.EndIndex, &a.Extra)
	c.number("start_index", &a.StartIndex, &a.Extra)
	c.text("title", &a.Title, &a.Extra)
	c.text("url", &a.URL, &a.Extra)
	c.end(&a.Extra)
}

func (a *ContainerFileCitation) fields(c *codec) {
	c.kind("container_file_citation", &a.Extra)
	c.text("container_id", &a.ContainerID, &a.Extra)
	c.number("end_index", &a.EndIndex, &a.Extra)
	c.text("file_id", &a.FileID, &a.Extra)
	c.text("filename", &a.Filename, &a.Extra)
	c.number("start_index", &a.StartIndex, &a.Extra)
	c.end(&a.Extra)
}

func (a *FilePath) fields(c *codec) {
	c.kind("file_path", &a.Extra)
	c.text("file_id", &a.FileID, &a.Extra)
	c.number("index", &a.Index, &a.Extra)
	c.end(&a.Extra)
}

// fields is never reached: an unknown annotation is its raw text.
func (a *UnknownAnnotation) fields(*codec) {}

func (a *UnknownAnnotation) rawJSON() JSON { return a.Raw }
