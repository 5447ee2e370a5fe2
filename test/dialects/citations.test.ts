/**
 * Citations of every upstream family, streamed and whole, in every API form, streamed and whole, as the official clients read them: the
 * page, and the passage of the received text that it supports.
 */
import { describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { ResponseCollector } from '../../src/core/chat/response-collector.ts'
import { ChunkWriter, completionBody } from '../../src/dialects/chat-completions/reply.ts'
import { MessageFrames, messageBody } from '../../src/dialects/messages/writers.ts'
import { DeltaWriter, nativeBody } from '../../src/dialects/native/reply.ts'
import { createReasoningSeal } from '../../src/dialects/reasoning-seal.ts'
import { responseBody } from '../../src/dialects/responses/reply.ts'
import { readResponses } from '../../src/dialects/responses/request.ts'
import { ResponseStream } from '../../src/dialects/responses/stream.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { google } from '../../src/providers/google.ts'
import { openai } from '../../src/providers/openai.ts'
import { openaiResponses } from '../../src/providers/openai-responses.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { SseSplitter } from '../../src/providers/sse.ts'
import { type AnswerPart, partsIn, recordedAnswer } from '../harness/answer-parts.ts'
import { type ChatEvent, type ContentEvent, tell, writeBody, writeFrames } from '../harness/events.ts'
import { startWith, summaryWith } from '../harness/reply.ts'

/** A page and the passage that cites it; '' = no passage. */
type Cited = readonly [url: string, title: string, passage: string]
type Made = {
  readonly provider: Provider
  /** Bodies of the same response: server-sent events, and one object. */
  readonly stream: readonly object[]
  readonly whole?: object
  readonly text: string
  readonly cited: readonly Cited[]
}

const [a, b] = ['https://a.example/x', 'https://b.example/y']
const said = 'Grüße 🙂, Oslo is cold. Bergen is wet.'
const place = (passage: string) => {
  const from = [...said.slice(0, said.indexOf(passage))].length
  return { start_index: from, end_index: from + [...passage].length }
}
const bytes = (passage: string) => {
  const startIndex = Buffer.byteLength(said.slice(0, said.indexOf(passage)))
  return { startIndex, endIndex: startIndex + Buffer.byteLength(passage) }
}

const chunk = (delta: object, finish_reason: string | null = null, more: object = {}) => ({
  ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' },
  choices: [{ index: 0, delta, finish_reason }],
  ...more,
})
const completion = (message: object, more: object = {}) => ({
  id: 'c',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
  ...more,
})
const note = (url: string, title: string, passage: string) => ({
  type: 'url_citation',
  url_citation: { url, title, ...place(passage) },
})
const message = (annotations: readonly object[], text = said) => ({
  type: 'message',
  id: 'msg_1',
  content: [{ type: 'output_text', text, annotations }],
})
const flat = (url: string, title: string, passage: string) => ({ type: 'url_citation', url, title, ...place(passage) })
const block = (index: number, text: string, citations: readonly object[]) => [
  { type: 'content_block_start', index, content_block: { type: 'text', text: '', citations: [] } },
  // Anthropic cites before the text, a relay may do it behind it.
  ...citations.slice(0, 1).map(citation => ({
    ...{ type: 'content_block_delta', index, delta: { type: 'citations_delta', citation } },
  })),
  { type: 'content_block_delta', index, delta: { type: 'text_delta', text } },
  ...citations.slice(1).map(citation => ({
    ...{ type: 'content_block_delta', index, delta: { type: 'citations_delta', citation } },
  })),
  { type: 'content_block_stop', index },
]
const location = (url: string, title: string) => ({
  ...{ type: 'web_search_result_location', url, title, cited_text: 'Cold, they say.', encrypted_index: 'Eo8' },
})
const claude: readonly { type: string; text: string; citations?: readonly object[] }[] = [
  { type: 'text', text: 'Grüße 🙂, ' },
  { type: 'text', text: 'Oslo is cold.', citations: [location(a, 'A'), location(b, 'B')] },
  { type: 'text', text: ' Bergen is wet.', citations: [location(b, 'B')] },
]
/** A client links to an address: a script is no page. */
const claudeWithScript: typeof claude = claude.map(({ citations, ...item }) =>
  citations === undefined ? item : { ...item, citations: [...citations, location('javascript:alert(1)', 'x')] },
)
const grounding = {
  groundingMetadata: {
    groundingChunks: [{ web: { uri: a, title: 'A' } }, { web: { uri: b, title: 'B' } }, { web: { uri: 'about:c' } }],
    groundingSupports: [
      { segment: { ...bytes('Oslo is cold.'), text: 'Oslo is cold.' }, groundingChunkIndices: [0, 1, 2, 9] },
      // Counted from another part.
      { segment: { startIndex: 1, endIndex: 16, text: 'Bergen is wet.' }, groundingChunkIndices: [1] },
    ],
  },
}
const candidate = (parts: readonly object[], more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
  responseId: 'g',
})
const two: readonly Cited[] = [
  [a, 'A', 'Oslo is cold.'],
  [b, 'B', 'Bergen is wet.'],
]
const three: readonly Cited[] = [
  [a, 'A', 'Oslo is cold.'],
  [b, 'B', 'Oslo is cold.'],
  [b, 'B', 'Bergen is wet.'],
]
const numbered = 'Grüße 🙂, Oslo is cold[2][3].'
const notes = [note(a, 'A', 'Oslo is cold.'), note(b, 'B', 'Bergen is wet.')]
const thought = '<think>Hm 🙂.</think>\n\n'
const shifted = notes.map(({ type, url_citation: { start_index, end_index, ...page } }) => ({
  type,
  url_citation: {
    ...page,
    start_index: start_index + [...thought].length,
    end_index: end_index + [...thought].length,
  },
}))

const upstreams: Readonly<Record<string, Made>> = {
  'OpenAI chat, annotations in two chunks': {
    provider: openai({ official: true }),
    stream: [
      chunk({ role: 'assistant', content: said.slice(0, 12) }),
      chunk({ content: said.slice(12) }),
      chunk({ annotations: notes.slice(0, 1) }),
      chunk({ annotations: notes.slice(1) }),
      chunk({}, 'stop'),
    ],
    whole: completion({ content: said, annotations: notes }),
    text: said,
    cited: two,
  },
  'OpenRouter, annotations repeated, before the text, and beside files and scripts': {
    provider: openai({ official: false }),
    stream: [
      chunk({ annotations: [...notes, { type: 'file', file: { hash: 'h' } }] }),
      chunk({ content: said, annotations: notes }),
      chunk({ annotations: [{ type: 'url_citation', url_citation: { url: 'javascript:alert(1)', title: 'x' } }] }),
      chunk({}, 'stop'),
    ],
    whole: completion({ content: said, annotations: [...notes, ...notes] }),
    text: said,
    cited: two,
  },
  'compatible server, positions behind reasoning in the text': {
    provider: openai({ official: false }),
    stream: [
      chunk({ content: thought.slice(0, 9) }),
      chunk({ content: thought.slice(9) + said.slice(0, 3) }),
      chunk({ content: said.slice(3), annotations: shifted }),
      chunk({}, 'stop'),
    ],
    whole: completion({ content: thought + said, annotations: shifted }),
    text: said,
    cited: two,
  },
  'Perplexity, numbers in the text': {
    provider: openai({ official: false }),
    stream: [
      chunk({ content: numbered.slice(0, 22) }, null, { citations: [a] }),
      chunk({ content: numbered.slice(22) }, 'stop', {
        citations: [a, b],
        search_results: [{ url: b, title: 'B', snippet: 's' }],
      }),
    ],
    whole: completion({ content: numbered }, { citations: [a, b], search_results: [{ url: b, title: 'B' }] }),
    text: numbered,
    cited: [
      [a, a, ''],
      [b, 'B', '[2]'],
    ],
  },
  'xAI, a list at the end': {
    provider: openai({ official: false }),
    stream: [chunk({ content: said }), chunk({}, 'stop'), { id: 'c', choices: [], citations: [a] }],
    whole: completion({ content: said }, { citations: [a] }),
    text: said,
    cited: [[a, a, '']],
  },
  'OpenAI Responses, positions within the second message': {
    provider: openaiResponses,
    stream: [
      { type: 'response.created', response: { id: 'resp', model: 'm' } },
      { type: 'response.output_item.added', output_index: 0, item: { type: 'message', phase: 'commentary' } },
      { type: 'response.content_part.added', output_index: 0, content_index: 0 },
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'I look 🙂. ' },
      { type: 'response.output_item.added', output_index: 1, item: { type: 'message', phase: 'final_answer' } },
      { type: 'response.content_part.added', output_index: 1, content_index: 0 },
      { type: 'response.output_text.delta', output_index: 1, content_index: 0, delta: said },
      { type: 'response.output_text.annotation.added', annotation: flat(a, 'A', 'Oslo is cold.') },
      { type: 'response.output_text.annotation.added', annotation: flat(b, 'B', 'Bergen is wet.') },
      { type: 'response.output_item.done', output_index: 1, item: message([]) },
      { type: 'response.completed', response: { id: 'resp', status: 'completed', usage: { input_tokens: 1 } } },
    ],
    whole: {
      id: 'resp',
      status: 'completed',
      output: [
        { ...message([], 'I look 🙂. '), phase: 'commentary' },
        {
          ...message([flat(a, 'A', 'Oslo is cold.'), flat(b, 'B', 'Bergen is wet.')]),
          phase: 'final_answer',
        },
      ],
    },
    text: `I look 🙂. ${said}`,
    cited: two,
  },
  'Claude, blocks of text': {
    provider: anthropic,
    stream: [
      { type: 'message_start', message: { id: 'm', model: 'c', content: [], usage: { input_tokens: 1 } } },
      ...claudeWithScript.flatMap(({ text, citations = [] }, index) => block(index, text, citations)),
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } },
      { type: 'message_stop' },
    ],
    whole: { id: 'm', type: 'message', model: 'c', content: claudeWithScript, stop_reason: 'end_turn', usage: {} },
    text: said,
    cited: [three[0] ?? [a, '', ''], three[1] ?? [a, '', ''], [b, 'B', ' Bergen is wet.']],
  },
  'Gemini, positions in bytes, and behind a thought': {
    provider: google,
    stream: [
      candidate([{ text: 'Hm 🙂', thought: true }]),
      candidate([{ text: said.slice(0, 9) }], { groundingMetadata: {} }),
      candidate([{ text: said.slice(9) }], { finishReason: 'STOP', ...grounding }),
    ],
    whole: candidate([{ text: 'Hm 🙂', thought: true }, { text: said }], { finishReason: 'STOP', ...grounding }),
    text: said,
    cited: three,
  },
}

const opening = startWith({ model: 'p/m', provider: 'p' })
const receipt = summaryWith({
  record: { provider: 'p', model: 'm' },
  usage: { inputTokens: 9, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 5, reasoningTokens: 0 },
})

function getEvents(parts: readonly AnswerPart[]): readonly ChatEvent[] {
  const isContent = (part: AnswerPart): part is ContentEvent =>
    !['served', 'finish', 'provider_fields', 'usage', 'end', 'failure'].includes(part.type)
  expect(parts.at(-1)).toEqual({ type: 'end' })
  const finish: ChatEvent = { type: 'finish', choice: 0, reason: 'stop' }
  return [{ type: 'opened', opening }, ...parts.filter(isContent), finish, { type: 'done', receipt }]
}

function streamed({ provider, stream }: Made): readonly ChatEvent[] {
  const splitter = new SseSplitter()
  const reader = provider.streamReader(1)
  const { answer, drain } = recordedAnswer()
  const wire = stream
    .map(event => `${'type' in event ? `event: ${event.type}\n` : ''}data: ${JSON.stringify(event)}\n\n`)
    .join('')
  splitter.push(Buffer.from(wire), reader, answer)
  splitter.finish(reader, answer)
  reader.finish(answer)
  return getEvents(drain())
}

const seal = createReasoningSeal('a secret of the tests', null)
const responsesContext = () => ({
  ...readResponses({ model: 'm', input: 'Hi' }, { headers: new Headers(), text: '' }, { seal, accountId: 'a' }),
  seal: () => 's',
})
const chatStyle = { includeUsage: true, legacyFunctions: false, customTools: new Set<string>() }
const messageStyle = { wantsThinking: true, seal: () => 's' }
const collected = (events: readonly ChatEvent[]) => {
  const collector = new ResponseCollector()
  tell(collector, events)
  return collector.result()
}
const getFetch = (body: string, type: string) =>
  Object.assign(() => Promise.resolve(new Response(body, { headers: { 'content-type': type } })), { preconnect() {} })
const sse = 'text/event-stream'
const json = 'application/json'
const getOpenai = (body: string, type: string) =>
  new OpenAI({ apiKey: 'k', baseURL: 'http://localhost/v1', fetch: getFetch(body, type), maxRetries: 0 })
const slice = (text: string, start: number, end: number) => [...text].slice(start, end).join('')
const input = { model: 'm', max_tokens: 9, messages: [{ role: 'user' as const, content: 'Hi' }] }

type Read = { readonly text: string; readonly cited: readonly (readonly [string, string, string?])[] }

const citedInChat = (text: string, annotations: readonly OpenAI.ChatCompletionMessage.Annotation[]): Read => ({
  text,
  cited: annotations.map(({ url_citation: { url, title, start_index, end_index } }) => [
    url,
    title,
    slice(text, start_index, end_index),
  ]),
})
const citedInResponse = ({ output, output_text }: OpenAI.Responses.Response): Read => ({
  text: output_text,
  cited: output
    .flatMap(item => (item.type === 'message' ? item.content : []))
    .flatMap(part =>
      part.type === 'output_text' ? part.annotations.map(annotation => ({ one: annotation, part })) : [],
    )
    .flatMap(({ one: item, part }) =>
      item.type === 'url_citation'
        ? [[item.url, item.title, slice(part.text, item.start_index, item.end_index)] as const]
        : [],
    ),
})
const citedInMessage = ({ content }: Anthropic.Message): Read => ({
  text: content.map(item => (item.type === 'text' ? item.text : '')).join(''),
  cited: content.flatMap(item =>
    item.type !== 'text'
      ? []
      : (item.citations ?? []).flatMap(cited =>
          cited.type === 'web_search_result_location'
            ? [[cited.url, cited.title ?? cited.url, item.text] as const]
            : [],
        ),
  ),
})

/** Reads a response by the client of its API form. `hasPlaces`: the form says which passage a source supports. */
const forms: Readonly<
  Record<string, { readonly hasPlaces: boolean; read(events: readonly ChatEvent[]): Promise<Read> }>
> = {
  'chat, JSON': {
    hasPlaces: true,
    async read(events) {
      const body = JSON.stringify(completionBody(collected(events), receipt, opening, chatStyle))
      const { choices } = await getOpenai(body, json).chat.completions.create({ model: 'm', messages: [] })
      return citedInChat(choices[0]?.message.content ?? '', choices[0]?.message.annotations ?? [])
    },
  },
  'chat, stream': {
    hasPlaces: true,
    async read(events) {
      const body = writeFrames(new ChunkWriter(chatStyle, 'req_1'), events)
      let text = ''
      const annotations: OpenAI.ChatCompletionMessage.Annotation[] = []
      const chunks = await getOpenai(body, sse).chat.completions.create({ model: 'm', messages: [], stream: true })
      for await (const { choices } of chunks)
        for (const { delta } of choices) {
          text += delta.content ?? ''
          if ('annotations' in delta && Array.isArray(delta.annotations)) annotations.push(...delta.annotations)
        }
      return citedInChat(text, annotations)
    },
  },
  'Responses, JSON': {
    hasPlaces: true,
    async read(events) {
      const body = JSON.stringify(writeBody(responseBody(responsesContext(), 'req_1'), events))
      return citedInResponse(await getOpenai(body, json).responses.create({ model: 'm', input: 'Hi' }))
    },
  },
  'Responses, stream': {
    hasPlaces: true,
    async read(events) {
      const body = writeFrames(new ResponseStream(responsesContext(), 'req_1', () => 1), events)
      const stream = getOpenai(body, sse).responses.stream({ model: 'm', input: 'Hi' })
      const read = citedInResponse(await stream.finalResponse())
      expect(body.split('event: response.output_text.annotation.added')).toHaveLength(read.cited.length + 1)
      return read
    },
  },
  'Messages, JSON': {
    hasPlaces: false,
    async read(events) {
      const body = JSON.stringify(writeBody(messageBody(messageStyle), events))
      return citedInMessage(await new Anthropic({ apiKey: 'k', fetch: getFetch(body, json) }).messages.create(input))
    },
  },
  'Messages, stream': {
    hasPlaces: false,
    async read(events) {
      const body = writeFrames(new MessageFrames(messageStyle, 'req_1'), events)
      const client = new Anthropic({ apiKey: 'k', fetch: getFetch(body, sse) })
      return citedInMessage(await client.messages.stream(input).finalMessage())
    },
  },
}

describe.each(Object.entries(upstreams))('citations of %s', (_name, made) => {
  const bodies = [
    ['a stream', () => streamed(made)],
    ['one object', () => getEvents(partsIn(made.provider, made.whole ?? {}))],
  ] as const

  describe.each(bodies)('as %s', (_kind, events) => {
    test.each(Object.entries(forms))(
      'reach the client of %s with their passages',
      async (_form, { hasPlaces, read }) => {
        const { text, cited } = await read(events())
        expect(text).toBe(made.text)
        const pages = hasPlaces ? cited : cited.map(([url, title]) => [url, title])
        const expected = hasPlaces ? made.cited : made.cited.map(([url, title]) => [url, title])
        expect<unknown>([...pages].toSorted()).toEqual([...expected].toSorted())
      },
    )

    test('reach native clients as sources, each once', () => {
      const pages = new Map(made.cited.map(([url, title]) => [url, { url, title }]))
      const stream = writeFrames(new DeltaWriter('req_1'), events())
      const done: unknown = JSON.parse(stream.slice(stream.lastIndexOf('data: ') + 'data: '.length))
      for (const body of [nativeBody(collected(events()), receipt), done])
        expect(body).toMatchObject({ web: { sources: expect.arrayContaining([...pages.values()]) } })
      expect(nativeBody(collected(events()), receipt).web.sources).toHaveLength(pages.size)
    })
  })
})

test('citations of Claude for its own clients: keep blocks and fields unchanged', async () => {
  const made = upstreams['Claude, blocks of text']
  if (made === undefined) throw new Error('there is no such upstream')
  for (const events of [streamed(made), getEvents(partsIn(made.provider, made.whole))]) {
    expect(writeBody(messageBody(messageStyle), events)).toMatchObject({ content: claude })
    const stream = writeFrames(new MessageFrames(messageStyle, 'req_1'), events)
    const client = new Anthropic({ apiKey: 'k', fetch: getFetch(stream, sse) })
    expect<unknown>((await client.messages.stream(input).finalMessage()).content).toMatchObject(claude)
  }
})

test('citations of documents: reach Messages clients only', async () => {
  const citation = {
    ...{ type: 'char_location', document_index: 0, document_title: 'D', cited_text: 'c' },
    ...{ start_char_index: 0, end_char_index: 1, file_id: null },
  }
  const events = getEvents(
    partsIn(anthropic, {
      ...{ id: 'm', type: 'message', model: 'c', stop_reason: 'end_turn', usage: {} },
      content: [{ type: 'text', text: 'So it is.', citations: [citation] }],
    }),
  )
  expect(writeBody(messageBody(messageStyle), events)).toMatchObject({
    content: [{ text: 'So it is.', citations: [citation] }],
  })
  for (const form of ['chat, JSON', 'chat, stream', 'Responses, JSON', 'Responses, stream'])
    expect(await forms[form]?.read(events)).toEqual({ text: 'So it is.', cited: [] })
})

test('citations before a call: reach streams before the text ends, and a late one only JSON', async () => {
  const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }
  const events = (late: boolean) =>
    streamed({
      provider: openai({ official: false }),
      stream: [
        chunk({ content: said, ...(late ? {} : { annotations: notes }) }),
        chunk({ tool_calls: [call] }),
        chunk(late ? { annotations: notes } : {}, 'tool_calls'),
      ],
      text: said,
      cited: two,
    })
  const getCount = async (form: string, late: boolean) => (await forms[form]?.read(events(late)))?.cited.length
  for (const form of Object.keys(forms)) expect([form, await getCount(form, false)]).toEqual([form, 2])
  for (const form of ['chat, JSON', 'chat, stream', 'Responses, JSON']) expect(await getCount(form, true)).toBe(2)
  // A block that holds only a citation would be rejected as history.
  for (const form of ['Messages, JSON', 'Messages, stream']) expect(await getCount(form, true)).toBe(0)
})
