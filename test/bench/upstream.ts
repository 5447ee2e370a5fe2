/**
 * The provider of the benchmark: raw TCP with prepared bytes, without parsing beyond the end of a request, so that it
 * is several times faster than any proxy. Prints its port. Answers `POST …/chat/completions` with JSON, or with a
 * stream of 20 chunks, 2 ms apart. Outputs are unique if the request's body contains `newMark`.
 */
import { newMark } from './prompts.ts'

const words = 'The gateway answers with plain words that could be anyone’s, in the length a short reply has. '
  .repeat(6)
  .slice(0, 480)
const chunkCount = 20
const chunkEveryMs = 2
/** Replaced in an output by a number of the same length. */
const placeholder = '########'

const encode = (text: string) => Buffer.from(text)
const completion = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: 'gpt-4.1',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: `${placeholder} ${words}`, refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 220, completion_tokens: 110, total_tokens: 330, prompt_tokens_details: { cached_tokens: 0 } },
  service_tier: 'default',
  system_fingerprint: 'fp_bench',
})

const event = (choices: readonly object[], usage: object | null = null) =>
  `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'gpt-4.1', choices, usage })}\n\n`
const delta = (content: string) => event([{ index: 0, delta: { content }, logprobs: null, finish_reason: null }])
const httpChunk = (text: string) => `${encode(text).length.toString(16)}\r\n${text}\r\n`

const jsonAnswer = encode(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${encode(completion).length}\r\n\r\n${completion}`,
)
const jsonPlaceholderAt = jsonAnswer.indexOf(placeholder)
const streamHead =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n' +
  httpChunk(event([{ index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }]))
const pieces = Array.from({ length: chunkCount }, (_, at) => words.slice(at * 24, at * 24 + 24))
const middleChunks = pieces.map(piece => encode(httpChunk(delta(piece))))
const lastEvents = [
  event([{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }]),
  event([], { prompt_tokens: 220, completion_tokens: 110, total_tokens: 330 }),
  'data: [DONE]\n\n',
]
const streamEnd = encode(`${httpChunk(lastEvents.join(''))}0\r\n\r\n`)

let answers = 0
const next = () => String(answers++ % 1e8).padStart(placeholder.length, '0')

function answerJson(socket: Bun.Socket<{ rest: string }>, isNew: boolean): void {
  if (isNew) jsonAnswer.write(next(), jsonPlaceholderAt, 'latin1')
  socket.write(jsonAnswer)
}

/** Sends the first chunk at once, the others one by one; the last chunk and the end together. */
function answerStream(socket: Bun.Socket<{ rest: string }>): void {
  socket.write(streamHead + httpChunk(delta(`${next()} `)))
  let at = 1
  const timer = setInterval(() => {
    const chunk = middleChunks[at++]
    if (chunk !== undefined && at < chunkCount) return void socket.write(chunk)
    clearInterval(timer)
    socket.write(chunk === undefined ? streamEnd : Buffer.concat([chunk, streamEnd]))
  }, chunkEveryMs)
}

const server = Bun.listen<{ rest: string }>({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    open(socket) {
      socket.data = { rest: '' }
    },
    data(socket, bytes) {
      let text = socket.data.rest + bytes.toString('latin1')
      for (;;) {
        const head = text.indexOf('\r\n\r\n')
        if (head < 0) break
        const length = Number(/content-length: (\d+)/i.exec(text.slice(0, head))?.[1] ?? 0)
        const end = head + 4 + length
        if (text.length < end) break
        const body = text.slice(head, end)
        if (body.includes('"stream":true')) answerStream(socket)
        else answerJson(socket, body.includes(newMark))
        text = text.slice(end)
      }
      socket.data.rest = text
    },
  },
})
process.stdout.write(`${server.port}\n`)
