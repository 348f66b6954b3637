// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Talks to agents with Vercel's AI SDK. It sends the history back itself, stored items as
// references, and without what it did not understand.
import assert from 'node:assert/strict';
import { APICallError, Output, generateText, isStepCount, jsonSchema, streamText, tool } from 'ai';
import { createOpenAI } from '@ai-sdk/openai';
import { png, play } from './play.mjs';

const openai = createOpenAI({ baseURL: process.argv[2], apiKey: 'none' });
const ask = (model, options) => generateText({ model: openai.responses(model), maxRetries: 0, ...options });
const object = (properties) => jsonSchema({ type: 'object', properties, required: Object.keys(properties), additionalProperties: false });
const look = tool({ description: 'looks', inputSchema: object({ at: { type: 'string' } }), execute: async ({ at }) => `a red ${at}` });
const said = (r) => r.steps.flatMap((s) => s.response.messages);
globalThis.AI_SDK_LOG_WARNINGS = false;

await play({
  async 'text, in one piece and streamed'() {
    const r = await ask('plain', { prompt: 'Hello.' });
    assert.match(r.text, /You said: "Hello\."/);
    assert.equal(r.finishReason, 'stop');
    assert.ok(r.usage.inputTokens > 0);
    const s = streamText({ model: openai.responses('plain'), maxRetries: 0, prompt: 'Hello.' });
    let text = '';
    for await (const piece of s.textStream) text += piece;
    assert.equal(text, r.text);
  },

  async 'an image and a file'() {
    const r = await ask('plain', { messages: [{ role: 'user', content: [
      { type: 'text', text: 'What is it?' },
      { type: 'file', mediaType: 'image/png', data: png },
      { type: 'file', mediaType: 'application/pdf', filename: 'a.pdf', data: 'JVBERi0xLjQK' },
    ] }] });
    assert.match(r.text, /image\/png/);
  },

  async 'structured output'() {
    const r = await ask('json', { prompt: 'Answer.', output: Output.object({ schema: object({ n: { type: 'integer' } }) }) });
    assert.deepEqual(r.output, { n: 4 });
  },

  async 'on by id, and in a conversation'() {
    const first = await ask('plain', { prompt: 'One.' });
    const id = first.providerMetadata.openai.responseId;
    const second = await ask('plain', { prompt: 'Two.', providerOptions: { openai: { previousResponseId: id } } });
    assert.match(second.text, /Two\./);
    const made = await (await fetch(`${process.argv[2]}/conversations`, { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json' } })).json();
    for (const prompt of ['One.', 'Two.']) {
      const r = await ask('plain', { prompt, providerOptions: { openai: { conversation: made.id } } });
      assert.match(r.text, new RegExp(prompt));
    }
  },

  async 'tools of its own beside those of the agent, an approval, and on'() {
    for (const approved of [true, false]) {
      const options = { tools: { look }, stopWhen: isStepCount(5), messages: [{ role: 'user', content: 'Go.' }] };
      const first = await ask('doors', options);
      const asked = first.steps.at(-1).content.filter((c) => c.type === 'tool-approval-request');
      assert.equal(asked.length, 1);
      options.messages.push(...said(first), { role: 'tool', content: asked.map(({ approvalId }) => ({ type: 'tool-approval-response', approvalId, approved, providerExecuted: true })) });
      const second = await ask('doors', options);
      assert.match(second.text, /^Looked: a red door\./);
      assert.equal(second.text.includes('opened'), approved);
      options.messages.push(...said(second), { role: 'user', content: 'Sure?' });
      const third = await ask('doors', options);
      assert.match(third.text, /^Then Sure\?: a red door/);
    }
  },

  async 'without anything stored'() {
    const providerOptions = { openai: { store: false } };
    const messages = [{ role: 'user', content: 'One.' }];
    const first = await ask('plain', { messages, providerOptions });
    const second = await ask('plain', { messages: [...messages, ...said(first), { role: 'user', content: 'Two.' }], providerOptions });
    assert.match(second.text, /Two\./);
  },

  async 'errors'() {
    await assert.rejects(ask('nobody', { prompt: 'x' }), (e) => APICallError.isInstance(e) && e.statusCode === 404);
    await assert.rejects(ask('plain', { prompt: 'x', providerOptions: { openai: { previousResponseId: 'resp_none' } } }), (e) => APICallError.isInstance(e) && e.statusCode === 400);
  },

  async 'a client that goes away'() {
    await assert.rejects(ask('slow', { prompt: 'x', abortSignal: AbortSignal.timeout(100) }));
  },
});
