// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Talks to a gateway with OpenAI's client, its Agents SDK and Vercel's AI SDK. It ends with an error
// where a client, or what it returns, is not as with the real endpoint.
import assert from 'node:assert/strict';
import OpenAI, { BadRequestError, NotFoundError } from 'openai';
import { Agent, run, setDefaultOpenAIClient, setTracingDisabled, tool as agentTool } from '@openai/agents';
import { APICallError, Output, generateText, isStepCount, jsonSchema, streamText, tool } from 'ai';
import { createOpenAI } from '@ai-sdk/openai';

const baseURL = process.argv[2], model = 'plain';
const client = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
setDefaultOpenAIClient(client);
setTracingDisabled(true);
const openai = createOpenAI({ baseURL, apiKey: 'none' });
globalThis.AI_SDK_LOG_WARNINGS = false;
const parameters = { type: 'object', properties: { at: { type: 'string' } }, required: ['at'], additionalProperties: false };
const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false };
const look = { type: 'function', name: 'look', description: 'looks', strict: true, parameters };
const plain = new Agent({ name: 'Plain', instructions: 'Help.', model });

const steps = {
  async 'openai: text, in one piece and streamed'() {
    const r = await client.responses.create({ model, input: 'Hello.' });
    assert.match(r.output_text, /Hello\./);
    assert.equal(r.status, 'completed');
    let text = '', number = 0, last;
    for await (const e of await client.responses.create({ model, input: 'Hello.', stream: true })) {
      assert.equal(e.sequence_number, number++);
      if (e.type === 'response.output_text.delta') text += e.delta;
      last = e;
    }
    assert.equal(text, r.output_text);
    assert.equal(last.type, 'response.completed');
    assert.equal((await client.responses.stream({ model, input: 'Hello.' }).finalResponse()).output_text, text);
    assert.deepEqual((await client.responses.retrieve(r.id)).output, r.output);
  },

  async 'openai: function tools'() {
    for (const stream of [false, true]) {
      const ask = (params) => stream ? client.responses.stream(params).finalResponse() : client.responses.create(params);
      const first = await ask({ model, input: 'Look.', tools: [look] });
      const call = first.output.find((o) => o.type === 'function_call');
      assert.equal(call.name, 'look');
      JSON.parse(call.arguments);
      const second = await ask({ model, previous_response_id: first.id, tools: [look], input: [{ type: 'function_call_output', call_id: call.call_id, output: 'reddish' }] });
      assert.match(second.output_text, /reddish/);
    }
  },

  async 'openai: structured output'() {
    const r = await client.responses.create({ model: 'json', input: 'Answer.', text: { format: { type: 'json_schema', name: 'answer', strict: true, schema } } });
    assert.equal(r.text.format.name, 'answer');
    assert.deepEqual(JSON.parse(r.output_text), { n: 4 });
  },

  async 'openai: on by id, and in a conversation'() {
    const first = await client.responses.create({ model, input: 'One.' });
    const second = await client.responses.create({ model, input: 'Two.', previous_response_id: first.id });
    const items = [];
    for await (const it of await client.responses.inputItems.list(second.id, { order: 'asc' })) items.push(it);
    assert.deepEqual(items.map((it) => it.role), ['user', 'assistant', 'user']);
    const talk = await client.conversations.create({ items: [{ type: 'message', role: 'user', content: 'Before.' }] });
    const r = await client.responses.create({ model, conversation: talk.id, input: 'And now.' });
    assert.equal(r.conversation.id, talk.id);
    let n = 0;
    for await (const _ of await client.conversations.items.list(talk.id)) n++;
    assert.equal(n, 3);
    await client.responses.delete(second.id);
    await assert.rejects(client.responses.retrieve(second.id), NotFoundError);
  },

  async 'openai: in the background, left and taken up again, and cancelled'() {
    let r = await client.responses.create({ model, input: 'Later.', background: true });
    while (r.status === 'queued' || r.status === 'in_progress') r = await client.responses.retrieve(r.id);
    assert.match(r.output_text, /Later\./);
    let id, last;
    for await (const e of await client.responses.create({ model, input: 'Later still.', background: true, stream: true })) {
      id ??= e.response.id;
      last = e.sequence_number;
      if (last === 3) break;
    }
    const events = [];
    for await (const e of await client.responses.retrieve(id, { stream: true, starting_after: last })) events.push(e);
    assert.equal(events[0].sequence_number, 4);
    assert.equal(events.at(-1).type, 'response.completed');
    const long = await client.responses.create({ model, input: 'word '.repeat(20000), background: true });
    assert.equal((await client.responses.cancel(long.id)).status, 'cancelled');
    assert.equal((await client.responses.retrieve(long.id)).status, 'cancelled');
  },

  async 'openai: a request that is sent again'() {
    const again = { headers: { 'Idempotency-Key': 'key-1' } };
    const first = await client.responses.create({ model, input: 'Once.' }, again);
    assert.equal((await client.responses.create({ model, input: 'Once.' }, again)).id, first.id);
    await assert.rejects(client.responses.create({ model, input: 'Twice.' }, again), BadRequestError);
  },

  async 'openai: errors'() {
    await assert.rejects(client.responses.create({ model, input: 'x', prompt: { id: 'pmpt_1' } }), BadRequestError);
    await assert.rejects(client.responses.create({ model, input: 'x', previous_response_id: 'resp_none' }), BadRequestError);
    await assert.rejects(client.responses.create({ model: 'broken', input: 'x' }), (e) => e instanceof BadRequestError && e.code === 'invalid_prompt');
  },

  async 'openai: chat completions'() {
    const c = await client.chat.completions.create({ model, messages: [{ role: 'user', content: 'Hello.' }] });
    assert.match(c.choices[0].message.content, /Hello\./);
  },

  async 'Agents SDK: text, streamed, tools, structured output, on by id and in a conversation'() {
    assert.match((await run(plain, 'Hello.')).finalOutput, /Hello\./);
    const streamed = await run(plain, 'Hello.', { stream: true });
    let text = '';
    for await (const piece of streamed.toTextStream()) text += piece;
    await streamed.completed;
    assert.match(text, /Hello\./);
    const seen = agentTool({ name: 'look', description: 'looks', strict: false, parameters: { ...parameters, additionalProperties: true }, execute: async () => 'reddish' });
    assert.match((await run(new Agent({ name: 'Looker', model, tools: [seen] }), 'Look.')).finalOutput, /reddish/);
    const json = new Agent({ name: 'JSON', model: 'json', outputType: { type: 'json_schema', name: 'answer', strict: true, schema } });
    assert.deepEqual((await run(json, 'Answer.')).finalOutput, { n: 4 });
    const first = await run(plain, 'One.');
    const talk = await client.conversations.create({});
    for (const options of [{ previousResponseId: first.lastResponseId }, { conversationId: talk.id }, { conversationId: talk.id }]) {
      assert.match((await run(plain, 'Two.', options)).finalOutput, /Two\./);
    }
  },

  async 'AI SDK: text, streamed, tools, structured output, on by id, and errors'() {
    const ask = (name, options) => generateText({ model: openai.responses(name), maxRetries: 0, ...options });
    const r = await ask(model, { prompt: 'Hello.' });
    assert.match(r.text, /Hello\./);
    assert.equal(r.finishReason, 'stop');
    let text = '';
    for await (const piece of streamText({ model: openai.responses(model), maxRetries: 0, prompt: 'Hello.' }).textStream) text += piece;
    assert.equal(text, r.text);
    const seen = tool({ description: 'looks', inputSchema: jsonSchema(parameters), execute: async () => 'reddish' });
    assert.match((await ask(model, { prompt: 'Look.', tools: { look: seen }, stopWhen: isStepCount(3) })).text, /reddish/);
    assert.deepEqual((await ask('json', { prompt: 'Answer.', output: Output.object({ schema: jsonSchema(schema) }) })).output, { n: 4 });
    const previousResponseId = r.providerMetadata.openai.responseId;
    assert.match((await ask(model, { prompt: 'Two.', providerOptions: { openai: { previousResponseId } } })).text, /Two\./);
    await assert.rejects(ask('broken', { prompt: 'x' }), (e) => APICallError.isInstance(e) && e.statusCode === 400);
  },
};

for (const [name, step] of Object.entries(steps)) {
  try {
    await step();
    console.log('ok', name);
  } catch (e) {
    console.error('failed:', name, e);
    process.exitCode = 1;
  }
}
