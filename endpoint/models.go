// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

// Efforts by generation of models. The generations differ at the ends: "minimal" existed only for
// gpt-5, "none" came with gpt-5.1, "xhigh" with gpt-5.1-codex-max, "max" with gpt-5.6.
var (
	lowToHigh      = []string{"low", "medium", "high"}
	minimalToHigh  = []string{"minimal", "low", "medium", "high"}
	noneToHigh     = []string{"none", "low", "medium", "high"}
	lowToXHigh     = []string{"low", "medium", "high", "xhigh"}
	noneToXHigh    = []string{"none", "low", "medium", "high", "xhigh"}
	mediumToXHigh  = []string{"medium", "high", "xhigh"}
	noneToMax      = []string{"none", "low", "medium", "high", "xhigh", "max"}
	mediumOnly     = []string{"medium"}
	highOnly       = []string{"high"}
	noEffort       = []string{}
	contextMillion = 1_050_000
)

// models are the known models. A field without a reliable source is left empty.
var models = []Model{
	// Models without reasoning.
	{Names: []string{"gpt-4o", "gpt-4o-mini", "chatgpt-4o-latest"}, Reasoning: No, Summaries: No, Sampling: Yes, Verbosity: No, Images: Yes, Files: Yes, ContextWindow: 128_000, MaxOutput: 16_384},
	{Names: []string{"gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano"}, Reasoning: No, Summaries: No, Sampling: Yes, Verbosity: No, Images: Yes, Files: Yes, ContextWindow: 1_047_576, MaxOutput: 32_768},
	{Names: []string{"gpt-4-turbo"}, Reasoning: No, Summaries: No, Sampling: Yes, Verbosity: No, Images: Yes, ContextWindow: 128_000, MaxOutput: 4_096},
	{Names: []string{"gpt-4", "gpt-4-0613"}, Reasoning: No, Summaries: No, Sampling: Yes, Verbosity: No, Images: No, ContextWindow: 8_192, MaxOutput: 8_192},
	{Names: []string{"gpt-3.5-turbo", "gpt-3.5-turbo-0125", "gpt-3.5-turbo-1106"}, Reasoning: No, Summaries: No, Sampling: Yes, Verbosity: No, Images: No, ContextWindow: 16_385, MaxOutput: 4_096},
	{Names: []string{"gpt-5-chat-latest", "gpt-5-chat"}, Reasoning: No, Summaries: No, Sampling: Yes, Images: Yes, Files: Yes, ContextWindow: 128_000, MaxOutput: 16_384},

	// The o series.
	{Names: []string{"o1"}, Reasoning: Yes, Efforts: lowToHigh, DefaultEffort: "medium", Sampling: No, Images: Yes, Files: Yes, ContextWindow: 200_000, MaxOutput: 100_000},
	{Names: []string{"o1-pro"}, Reasoning: Yes, Efforts: lowToHigh, DefaultEffort: "medium", Sampling: No, Images: Yes, Files: Yes, ContextWindow: 200_000, MaxOutput: 100_000},
	{Names: []string{"o1-mini"}, Reasoning: Yes, Efforts: noEffort, Sampling: No, Images: No, ContextWindow: 128_000, MaxOutput: 65_536},
	{Names: []string{"o1-preview"}, Reasoning: Yes, Efforts: noEffort, Sampling: No, Images: No, ContextWindow: 128_000, MaxOutput: 32_768},
	{Names: []string{"o3-mini"}, Reasoning: Yes, Efforts: lowToHigh, DefaultEffort: "medium", Summaries: Yes, Sampling: No, Images: No, ContextWindow: 200_000, MaxOutput: 100_000},
	{Names: []string{"o3", "o3-pro", "o4-mini"}, Reasoning: Yes, Efforts: lowToHigh, DefaultEffort: "medium", Summaries: Yes, Sampling: No, Images: Yes, Files: Yes, ContextWindow: 200_000, MaxOutput: 100_000},
	{Names: []string{"o3-deep-research", "o4-mini-deep-research"}, Reasoning: Yes, Summaries: Yes, Sampling: No, Images: Yes, ContextWindow: 200_000, MaxOutput: 100_000},
	{Names: []string{"codex-mini-latest", "codex-mini"}, Reasoning: Yes, Efforts: lowToHigh, DefaultEffort: "medium", Summaries: Yes, Sampling: No, Images: Yes, ContextWindow: 200_000, MaxOutput: 100_000},
	{Names: []string{"computer-use-preview"}, Reasoning: Yes, Summaries: Yes, Images: Yes, ContextWindow: 8_192, MaxOutput: 1_024},

	// gpt-5 and later. These accept sampling only with reasoning turned off.
	{Names: []string{"gpt-5", "gpt-5-mini", "gpt-5-nano"}, Reasoning: Yes, Efforts: minimalToHigh, DefaultEffort: "medium", Summaries: Yes, Sampling: No, Verbosity: Yes, Images: Yes, Files: Yes, ContextWindow: 400_000, MaxOutput: 128_000},
	{Names: []string{"gpt-5-pro"}, Reasoning: Yes, Efforts: highOnly, DefaultEffort: "high", Summaries: Yes, Sampling: No, Verbosity: Yes, Images: Yes, Files: Yes, ContextWindow: 400_000, MaxOutput: 272_000},
	{Names: []string{"gpt-5-codex"}, Reasoning: Yes, Efforts: lowToHigh, DefaultEffort: "medium", Summaries: Yes, Sampling: No, Verbosity: No, Images: Yes, Files: Yes, ContextWindow: 400_000, MaxOutput: 128_000},
	{Names: []string{"gpt-5.1"}, Reasoning: Yes, Efforts: noneToHigh, DefaultEffort: "none", Summaries: Yes, Sampling: WithoutReasoning, Verbosity: Yes, Images: Yes, Files: Yes, ContextWindow: 400_000, MaxOutput: 128_000},
	{Names: []string{"gpt-5.1-codex", "gpt-5.1-codex-mini"}, Reasoning: Yes, Efforts: lowToHigh, DefaultEffort: "medium", Summaries: Yes, Sampling: No, Verbosity: No, Images: Yes, Files: Yes, ContextWindow: 400_000, MaxOutput: 128_000},
	{Names: []string{"gpt-5.1-codex-max"}, Reasoning: Yes, Efforts: lowToXHigh, DefaultEffort: "medium", Summaries: Yes, Sampling: No, Verbosity: No, Images: Yes, Files: Yes, ContextWindow: 400_000, MaxOutput: 128_000},
	{Names: []string{
		"gpt-5.1-chat-latest", "gpt-5.1-chat", "gpt-5.2-chat-latest", "gpt-5.2-chat", "gpt-5.3-chat-latest", "gpt-5.3-chat",
	}, Reasoning: Yes, Efforts: mediumOnly, DefaultEffort: "medium", Sampling: No, Images: Yes, Files: Yes, ContextWindow: 128_000, MaxOutput: 16_384},
	{Names: []string{"gpt-5.2"}, Reasoning: Yes, Efforts: noneToXHigh, DefaultEffort: "none", Summaries: Yes, Sampling: WithoutReasoning, Verbosity: Yes, Images: Yes, Files: Yes, ContextWindow: 400_000, MaxOutput: 128_000},
	{Names: []string{"gpt-5.2-pro"}, Reasoning: Yes, Efforts: mediumToXHigh, DefaultEffort: "medium", Summaries: Yes, Sampling: No, Verbosity: Yes, Images: Yes, Files: Yes, ContextWindow: 400_000, MaxOutput: 128_000},
	// Sources disagree on "none" and on sampling for these two.
	{Names: []string{"gpt-5.2-codex", "gpt-5.3-codex"}, Reasoning: Yes, Efforts: noneToXHigh, Summaries: Yes, Sampling: WithoutReasoning, Images: Yes, Files: Yes, ContextWindow: 400_000, MaxOutput: 128_000},
	{Names: []string{"gpt-5.4"}, Reasoning: Yes, Efforts: noneToXHigh, DefaultEffort: "none", Summaries: Yes, Sampling: WithoutReasoning, Verbosity: Yes, Images: Yes, Files: Yes, ContextWindow: contextMillion, MaxOutput: 128_000},
	{Names: []string{"gpt-5.4-mini", "gpt-5.4-nano"}, Reasoning: Yes, Efforts: noneToXHigh, DefaultEffort: "none", Summaries: Yes, Sampling: WithoutReasoning, Verbosity: Yes, Images: Yes, Files: Yes, ContextWindow: 400_000, MaxOutput: 128_000},
	{Names: []string{"gpt-5.4-pro"}, Reasoning: Yes, Efforts: mediumToXHigh, DefaultEffort: "medium", Summaries: Yes, Sampling: No, Images: Yes, Files: Yes, ContextWindow: contextMillion, MaxOutput: 128_000},
	{Names: []string{"gpt-5.5"}, Reasoning: Yes, Efforts: noneToXHigh, DefaultEffort: "medium", Summaries: Yes, Sampling: WithoutReasoning, Verbosity: Yes, Images: Yes, Files: Yes, ContextWindow: contextMillion, MaxOutput: 128_000},
	{Names: []string{"gpt-5.5-pro"}, Reasoning: Yes, Summaries: Yes, Sampling: No, Images: Yes, Files: Yes, ContextWindow: contextMillion, MaxOutput: 128_000},
	{Names: []string{"gpt-5.6", "gpt-5.6-sol", "gpt-5.6-terra", "gpt-5.6-luna"}, Reasoning: Yes, Efforts: noneToMax, DefaultEffort: "medium", Summaries: Yes, Sampling: WithoutReasoning, Verbosity: Yes, Images: Yes, Files: Yes, ContextWindow: contextMillion, MaxOutput: 128_000},

	// Models with open weights, by the names that servers give them.
	{Names: []string{"gpt-oss-20b", "gpt-oss-120b", "gpt-oss:20b", "gpt-oss:120b", "gpt-oss"}, Reasoning: Yes, Efforts: lowToHigh, DefaultEffort: "medium", Sampling: Yes, Images: No, ContextWindow: 131_072},

	// Models of other makers.
	{Names: []string{"grok-3", "grok-3-latest"}, Reasoning: No, Sampling: Yes, Images: No, ContextWindow: 131_072},
	{Names: []string{"grok-3-mini", "grok-3-mini-latest"}, Reasoning: Yes, Efforts: []string{"low", "high"}, Sampling: Yes, Images: No, ContextWindow: 131_072},
	{Names: []string{"grok-4", "grok-4-0709", "grok-4-latest"}, Reasoning: Yes, Efforts: noEffort, Sampling: Yes, Images: Yes, ContextWindow: 256_000},
}
