/**
 * The provider of the benchmark: raw TCP, canned bytes, no parsing beyond where a request ends, so that it is several times
 * faster than anything in front of it. Prints its port. Answers `POST …/chat/completions`, streamed where asked.
 */
const words = 'The gateway answers with plain words that could be anyone’s, in the length a short reply has. '
  .repeat(6)
  .slice(0, 480)

const completion = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: 'gpt-4.1',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: words, refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 220, completion_tokens: 110, total_tokens: 330, prompt_tokens_details: { cached_tokens: 0 } },
  service_tier: 'default',
  system_fingerprint: 'fp_bench',
})

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'gpt-4.1', choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], usage: null })}\n\n`
const pieces = words.match(/.{1,12}/g) ?? []
const events = [
  chunk({ role: 'assistant', content: '', refusal: null }),
  ...pieces.map(content => chunk({ content })),
  chunk({}, 'stop'),
  `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'gpt-4.1', choices: [], usage: { prompt_tokens: 220, completion_tokens: 110, total_tokens: 330 } })}\n\n`,
  'data: [DONE]\n\n',
].join('')

const encode = (text: string) => new TextEncoder().encode(text)
const jsonAnswer = encode(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${encode(completion).length}\r\n\r\n${completion}`,
)
const eventAnswer = encode(
  `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${encode(events).length.toString(16)}\r\n${events}\r\n0\r\n\r\n`,
)

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
        socket.write(text.slice(head, end).includes('"stream":true') ? eventAnswer : jsonAnswer)
        text = text.slice(end)
      }
      socket.data.rest = text
    },
  },
})
process.stdout.write(`${server.port}\n`)
