// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tracing

import "go.opentelemetry.io/otel/attribute"

// The attributes. Those of gen_ai have the names of OpenTelemetry's conventions for
// generative AI, which are in a repository of their own (semantic-conventions-genai)
// since version 1.42 of the general ones, and still change: this is the only file to
// update. .ci/collector/testdata/gen_ai.txt has the names of its version 0.1.0.
const (
	keyOperation      = attribute.Key("gen_ai.operation.name")
	keyProvider       = attribute.Key("gen_ai.provider.name")
	keyAgent          = attribute.Key("gen_ai.agent.name")
	keyConversation   = attribute.Key("gen_ai.conversation.id")
	keyRequestModel   = attribute.Key("gen_ai.request.model")
	keyMaxTokens      = attribute.Key("gen_ai.request.max_tokens")
	keyTemperature    = attribute.Key("gen_ai.request.temperature")
	keyTopP           = attribute.Key("gen_ai.request.top_p")
	keyStream         = attribute.Key("gen_ai.request.stream")
	keyOutputType     = attribute.Key("gen_ai.output.type")
	keyResponseID     = attribute.Key("gen_ai.response.id")
	keyResponseModel  = attribute.Key("gen_ai.response.model")
	keyFinishReasons  = attribute.Key("gen_ai.response.finish_reasons")
	keyFirstChunk     = attribute.Key("gen_ai.response.time_to_first_chunk")
	keyInputTokens    = attribute.Key("gen_ai.usage.input_tokens")
	keyOutputTokens   = attribute.Key("gen_ai.usage.output_tokens")
	keyCachedTokens   = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	keyCacheWrite     = attribute.Key("gen_ai.usage.cache_write.input_tokens")
	keyReasoning      = attribute.Key("gen_ai.usage.reasoning.output_tokens")
	keyModality       = attribute.Key("gen_ai.token.modality")
	keyReasoningLevel = attribute.Key("gen_ai.request.reasoning.level")
	keyPrevious       = attribute.Key("gen_ai.request.previous_response.id")
	keyTool           = attribute.Key("gen_ai.tool.name")
	keyToolType       = attribute.Key("gen_ai.tool.type")
	keyCallID         = attribute.Key("gen_ai.tool.call.id")
	keyErrorType      = attribute.Key("error.type")
	keyInstructions   = attribute.Key("gen_ai.system_instructions") // from here on only with Content
	keyInputMessages  = attribute.Key("gen_ai.input.messages")
	keyOutputMessages = attribute.Key("gen_ai.output.messages")
	keyArguments      = attribute.Key("gen_ai.tool.call.arguments")
	keyResult         = attribute.Key("gen_ai.tool.call.result")

	keyTurn          = attribute.Key("antiphon.turn")
	keyDepth         = attribute.Key("antiphon.depth")
	keyStatus        = attribute.Key("antiphon.response.status")
	keyCost          = attribute.Key("antiphon.cost")
	keyAttempts      = attribute.Key("antiphon.attempts")
	keyRequestID     = attribute.Key("antiphon.request_id")
	keyServer        = attribute.Key("server.address")
	keyPort          = attribute.Key("server.port")
	keyHTTPStatus    = attribute.Key("http.response.status_code")
	keyCacheExpected = attribute.Key("antiphon.cache.expected_tokens")
	keyCacheHit      = attribute.Key("antiphon.cache.hit")
	keyCacheBroken   = attribute.Key("antiphon.cache.broken_by")
	keyPaused        = attribute.Key("antiphon.call.paused")
	keyRefusal       = attribute.Key("antiphon.call.refusal") // only with Content
	keyWhy           = attribute.Key("antiphon.run.why")
	keyTurns         = attribute.Key("antiphon.run.turns")
	keyCalls         = attribute.Key("antiphon.run.calls")
	keyFailedCalls   = attribute.Key("antiphon.run.failed_calls")
	keyRefusedCalls  = attribute.Key("antiphon.run.refused_calls")
	keyTokens        = attribute.Key("antiphon.run.tokens")
	keyNestedTokens  = attribute.Key("antiphon.run.nested_tokens")
	keyCompactions   = attribute.Key("antiphon.run.compactions")
	keyCompactBy     = attribute.Key("antiphon.compact.by")
	keyReplaced      = attribute.Key("antiphon.compact.replaced_items")
	keyNotice        = attribute.Key("antiphon.notice.kind")
	keyNoticeText    = attribute.Key("antiphon.notice.text") // only with Content
	keyBefore        = attribute.Key("antiphon.compact.before_tokens")
	keyAfter         = attribute.Key("antiphon.compact.after_tokens")
)

// The operations. Spans are named after them.
const (
	opRun     = "invoke_agent"
	opModel   = "chat"
	opTool    = "execute_tool"
	opCompact = "compact" // not part of the conventions
)

// eventRefused is the event of a run's span for a call that was refused.
const eventRefused = "antiphon.call_refused"

// eventNoticed is the event of a run's span for a notice.
const eventNoticed = "antiphon.noticed"

// The instruments.
const (
	nameDuration   = "gen_ai.client.inference.duration"
	nameFirstChunk = "gen_ai.client.inference.time_to_first_chunk"
	nameInput      = "gen_ai.client.inference.usage.input_tokens"
	nameOutput     = "gen_ai.client.inference.usage.output_tokens"
	nameCached     = "gen_ai.client.inference.usage.cache_read.input_tokens"
	nameWritten    = "gen_ai.client.inference.usage.cache_write.input_tokens"
	nameReasoning  = "gen_ai.client.inference.usage.reasoning.output_tokens"
	nameInputs     = "gen_ai.client.inference.operation.input_tokens"
	nameOutputs    = "gen_ai.client.inference.operation.output_tokens"
	nameRun        = "gen_ai.invoke_agent.duration"
	nameTurns      = "gen_ai.invoke_agent.inference_calls"
	nameToolCalls  = "gen_ai.invoke_agent.tool_calls"
	nameTool       = "gen_ai.execute_tool.duration"
	nameCalls      = "antiphon.calls"
	nameFailures   = "antiphon.failures"
	nameRefused    = "antiphon.refused"
	nameCost       = "antiphon.cost"
	nameExpected   = "antiphon.cache.expected"
)

// other replaces a value if there would be too many values.
const other = "_OTHER"
