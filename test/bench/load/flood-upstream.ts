/**
 * A provider that writes stream tokens as fast as the gateway reads them, and answers other requests at once. Argument:
 * tokens per stream. Prints its port; `GET /` returns the stream bytes written.
 */
const tokens = Number(process.argv[2])

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'gpt-4.1', choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], usage: null })}\n\n`
const framed = (text: string) => Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
const tokensPerBlock = 200
const block = framed(chunk({ content: 'abc ' }).repeat(tokensPerBlock))
const opening = Buffer.from('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n')
const closing = Buffer.concat([framed(`${chunk({}, 'stop')}data: [DONE]\n\n`), Buffer.from('0\r\n\r\n')])
const whole = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-4.1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
})
const answer = (text: string) =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`

type Peer = { head: string; blocksLeft: number; rest: Buffer | null }

let written = 0

/** Writes until the socket is full; `drain` continues. */
const pump = (socket: Bun.Socket<Peer>) => {
  const { data } = socket
  while (data.rest !== null) {
    const { rest } = data
    const count = socket.write(rest)
    if (count > 0) written += count
    if (count < rest.length) {
      data.rest = rest.subarray(Math.max(0, count))
      return
    }
    data.blocksLeft--
    data.rest = data.blocksLeft > 0 ? block : data.blocksLeft === 0 ? closing : null
  }
}

const server = Bun.listen<Peer>({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    open(socket) {
      socket.data = { head: '', blocksLeft: 0, rest: null }
    },
    data(socket, bytes) {
      const { data } = socket
      data.head += bytes.toString('latin1')
      const at = data.head.indexOf('\r\n\r\n')
      if (at < 0) return
      const length = Number(/content-length: (\d+)/i.exec(data.head)?.[1] ?? 0)
      if (data.head.length < at + 4 + length) return
      const { head } = data
      data.head = ''
      if (head.startsWith('GET')) return void socket.write(answer(String(written)))
      if (!head.includes('"stream":true')) return void socket.write(answer(whole))
      data.blocksLeft = tokens / tokensPerBlock + 1
      data.rest = opening
      pump(socket)
    },
    drain: pump,
  },
})
process.stdout.write(`${server.port}\n`)
