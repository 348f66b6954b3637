// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// The types of an [Environment].
const (
	EnvironmentLocal     = "local"
	EnvironmentContainer = "container_reference"
	EnvironmentNew       = "container_auto" // for the shell
	EnvironmentAuto      = "auto"           // for the code interpreter
)

// Environment is where commands or code run: on the client's machine, in the
// container named by ContainerID, or in one made for the purpose, which has the
// files, limits and skills given here. Schemas: LocalEnvironmentParam,
// LocalEnvironmentResource, ContainerReferenceParam,
// ContainerReferenceResource, ContainerAutoParam, AutoCodeInterpreterToolParam.
type Environment struct {
	// Type is one of the constants above.
	Type        string
	ContainerID string
	FileIDs     []string
	// MemoryLimit is 1g, 4g, 16g or 64g.
	MemoryLimit   string
	NetworkPolicy *NetworkPolicy
	Skills        []Skill
	Extra         Extra
}

// NetworkPolicy says what a container may reach: with the type "disabled"
// nothing, with "allowlist" the AllowedDomains. Schemas:
// ContainerNetworkPolicyDisabledParam, ContainerNetworkPolicyAllowlistParam.
type NetworkPolicy struct {
	Type           string
	AllowedDomains []string
	DomainSecrets  []DomainSecret
	Extra          Extra
}

// DomainSecret is a value that is put in for requests to a domain and that the
// model does not see. Schema: ContainerNetworkPolicyDomainSecretParam.
type DomainSecret struct {
	Domain string
	Name   string
	Value  string
	Extra  Extra
}

// Skill is instructions with files for the model: one that is stored, named by
// SkillID with the type "skill_reference"; one given as Source, with the type
// "inline"; or without a type a folder at Path on the client's machine.
// Schemas: SkillReferenceParam, InlineSkillParam, LocalSkillParam.
type Skill struct {
	Type        string
	SkillID     string
	Version     string
	Name        string
	Description string
	Path        string
	Source      *SkillSource
	Extra       Extra
}

// SkillSource is a packed skill: the type "base64", the media type
// application/zip and the data. Schema: InlineSkillSourceParam.
type SkillSource struct {
	Type      string
	MediaType string
	Data      string
	Extra     Extra
}

// JSON returns the environment as [CodeInterpreterTool] takes it.
func (v *Environment) JSON() (JSON, error) {
	b, err := appendRecord(nil, v)
	return JSON(b), err
}

func (v *Environment) fields(c *codec) {
	c.optString("type", &v.Type)
	c.optString("container_id", &v.ContainerID)
	c.optStrings("file_ids", &v.FileIDs)
	c.optString("memory_limit", &v.MemoryLimit)
	optRecord(c, "network_policy", &v.NetworkPolicy)
	recordList(c, "skills", &v.Skills)
	c.rest(&v.Extra)
}

func (v *NetworkPolicy) fields(c *codec) {
	c.optString("type", &v.Type)
	c.optStrings("allowed_domains", &v.AllowedDomains)
	recordList(c, "domain_secrets", &v.DomainSecrets)
	c.rest(&v.Extra)
}

func (v *DomainSecret) fields(c *codec) {
	c.text("domain", &v.Domain, &v.Extra)
	c.text("name", &v.Name, &v.Extra)
	c.text("value", &v.Value, &v.Extra)
	c.end(&v.Extra)
}

func (v *Skill) fields(c *codec) {
	c.optString("type", &v.Type)
	c.optString("skill_id", &v.SkillID)
	c.optString("version", &v.Version)
	c.optString("name", &v.Name)
	c.optString("description", &v.Description)
	c.optString("path", &v.Path)
	optRecord(c, "source", &v.Source)
	c.rest(&v.Extra)
}

func (v *SkillSource) fields(c *codec) {
	c.optString("type", &v.Type)
	c.optString("media_type", &v.MediaType)
	c.optString("data", &v.Data)
	c.rest(&v.Extra)
}
