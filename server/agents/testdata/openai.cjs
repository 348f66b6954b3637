// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Talks to agents with OpenAI's own client: plain only speaks, and doors has tools of its
// own, one of which asks, and calls a tool of the client. It ends with an error where the
// client, or what it returns, is not as with the real endpoint.
'use strict';
const assert = require('node:assert/strict');
const { default: OpenAI, BadRequestError, NotFoundError, toFile } = require('openai');

const client = new OpenAI({ baseURL: process.argv[2], apiKey: 'none', maxRetries: 0 });
const model = 'plain';
const look = {
  type: 'function', name: 'look', strict: false,
  parameters: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
};
const png = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const steps = {
  async 'models'() {
    const names = [];
    for await (const m of await client.models.list()) names.push(m.id);
    assert.deepEqual(names.sort(), ['doors', 'json', 'plain', 'slow']);
  },

  async 'text, in one piece and streamed'() {
    const r = await client.responses.create({ model, input: 'Hello.' });
    assert.match(r.output_text, /You said: "Hello\."/);
    assert.equal(r.usage.total_tokens, r.usage.input_tokens + r.usage.output_tokens);
    const types = [];
    let text = '', number = 0;
    for await (const e of await client.responses.create({ model, input: 'Hello.', stream: true })) {
      assert.equal(e.sequence_number, number++);
      types.push(e.type);
      if (e.type === 'response.output_text.delta') text += e.delta;
    }
    assert.equal(text, r.output_text);
    assert.equal(types.at(-1), 'response.completed');
    const final = await client.responses.stream({ model, input: 'Hello.' }).finalResponse();
    assert.equal(final.output_text, text);
    assert.deepEqual((await client.responses.retrieve(r.id)).output, r.output);
  },

  async 'tools of the client beside those of the agent, and an approval'() {
    for (const stream of [false, true]) {
      for (const approve of [true, false]) {
        const ask = (params) => stream ? client.responses.stream(params).finalResponse() : client.responses.create(params);
        const first = await ask({ model: 'doors', input: 'Go.', tools: [look] });
        assert.deepEqual(first.output.map((o) => o.type), ['mcp_call', 'function_call', 'mcp_approval_request']);
        assert.equal(first.output[0].output, 'Rain.');
        const [, call, request] = first.output;
        const second = await ask({
          model: 'doors', previous_response_id: first.id, tools: [look],
          input: [
            { type: 'mcp_approval_response', approval_request_id: request.id, approve },
            { type: 'function_call_output', call_id: call.call_id, output: 'red' },
          ],
        });
        assert.equal(second.output[0].approval_request_id, request.id);
        assert.equal(second.output[0].status, approve ? 'completed' : 'failed');
        assert.match(second.output_text, /^Looked: red\./);
        assert.equal(second.output_text.includes('opened'), approve);
      }
    }
  },

  async 'an image and a file'() {
    const r = await client.responses.create({ model, input: [{ role: 'user', content: [
      { type: 'input_text', text: 'What is it?' },
      { type: 'input_image', image_url: png, detail: 'auto' },
      { type: 'input_file', filename: 'a.txt', file_data: 'data:text/plain;base64,SGVsbG8=' },
    ] }] });
    assert.match(r.output_text, /image\/png/);
    const items = [];
    for await (const it of await client.responses.inputItems.list(r.id)) items.push(it);
    assert.equal(items[0].content[1].image_url, png);
  },

  async 'files that were uploaded'() {
    const made = await client.files.create({ file: await toFile(Buffer.from(png.split(',')[1], 'base64'), 'dot.png'), purpose: 'vision' });
    assert.equal(made.filename, 'dot.png');
    assert.equal((await client.files.retrieve(made.id)).bytes, made.bytes);
    const ids = [];
    for await (const f of await client.files.list({ purpose: 'vision' })) ids.push(f.id);
    assert.deepEqual(ids, [made.id]);
    const content = Buffer.from(await (await client.files.content(made.id)).arrayBuffer());
    assert.equal('data:image/png;base64,' + content.toString('base64'), png);
    const input = [{ role: 'user', content: [{ type: 'input_image', file_id: made.id, detail: 'auto' }] }];
    const r = await client.responses.create({ model, input });
    assert.match(r.output_text, /image\/png/);
    assert.equal((await client.files.delete(made.id)).deleted, true);
    await assert.rejects(client.files.retrieve(made.id), NotFoundError);
    await assert.rejects(client.responses.create({ model, input }), BadRequestError);
    await assert.rejects(client.vectorStores.list(), NotFoundError);
  },

  async 'structured output'() {
    const r = await client.responses.create({ model, input: 'Answer.', text: { format: {
      type: 'json_schema', name: 'answer', strict: true,
      schema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false },
    } } });
    assert.equal(r.text.format.name, 'answer');
    assert.equal(r.status, 'completed');
  },

  async 'on by id, and in a conversation'() {
    const first = await client.responses.create({ model, input: 'One.' });
    const second = await client.responses.create({ model, input: 'Two.', previous_response_id: first.id });
    assert.equal(second.previous_response_id, first.id);
    const talk = await client.conversations.create({ items: [{ type: 'message', role: 'user', content: 'Before.' }] });
    const r = await client.responses.create({ model, conversation: talk.id, input: 'And now.' });
    assert.equal(r.conversation.id, talk.id);
    let n = 0;
    for await (const _ of await client.conversations.items.list(talk.id)) n++;
    assert.equal(n, 3);
    await client.conversations.delete(talk.id);
    await client.responses.delete(second.id);
    await assert.rejects(client.responses.retrieve(second.id), NotFoundError);
    assert.equal((await client.responses.retrieve(first.id)).id, first.id);
    const gone = await client.responses.create({ model, input: 'Not this.', store: false });
    await assert.rejects(client.responses.retrieve(gone.id), NotFoundError);
  },

  async 'in the background, left and taken up again, and cancelled'() {
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
    assert.match(events.at(-1).response.output.at(-1).content[0].text, /Later still\./);
    assert.equal((await client.responses.cancel(id)).status, 'completed'); // it has ended
  },

  async 'a request that is sent again'() {
    const again = { headers: { 'Idempotency-Key': 'key-1' } };
    const first = await client.responses.create({ model, input: 'Once.' }, again);
    assert.equal((await client.responses.create({ model, input: 'Once.' }, again)).id, first.id);
    await assert.rejects(client.responses.create({ model, input: 'Twice.' }, again), BadRequestError);
  },

  async 'errors'() {
    await assert.rejects(client.responses.create({ model: 'nobody', input: 'x' }), NotFoundError);
    await assert.rejects(client.responses.create({ model, input: 'x', prompt: { id: 'pmpt_1' } }), (e) => e instanceof BadRequestError && e.param === 'prompt');
    await assert.rejects(client.responses.create({ model, input: 'x', previous_response_id: 'resp_none' }), BadRequestError);
  },

  async 'chat completions'() {
    const c = await client.chat.completions.create({ model, messages: [{ role: 'user', content: 'Hello.' }] });
    assert.match(c.choices[0].message.content, /Hello\./);
  },
};

(async () => {
  for (const [name, step] of Object.entries(steps)) {
    try {
      await step();
      console.log('ok', name);
    } catch (e) {
      console.error('failed:', name, e);
      process.exitCode = 1;
    }
  }
})();
