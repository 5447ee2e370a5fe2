/**
 * A provider that streams numbered tokens at a fixed rate, in a separate process on raw TCP: every token's bytes are
 * created once and written to all streams that are due. A request without `"stream":true` gets one response at once.
 * Arguments: tokens per second, tokens per stream. Prints its port; `GET /` returns the maximum delay of a tick in
 * milliseconds.
 */
import { tokenText } from './stream-readers.ts'

const [rate, tokens] = [Number(process.argv[2]), Number(process.argv[3])]
/** Streams are spread over the ticks of one interval, so that they do not all write at once. */
const ticksPerToken = 4
const tickMs = 1000 / rate / ticksPerToken

const chunk = (delta: object, finish: string | null = null, usage: object | null = null) => {
  const choices = usage === null ? [{ index: 0, delta, logprobs: null, finish_reason: finish }] : []
  return `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'gpt-4.1', choices, usage })}\n\n`
}
const framed = (text: string) => Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
const opening = Buffer.concat([
  Buffer.from('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'),
  framed(chunk({ role: 'assistant', content: '' })),
])
const pieces = Array.from({ length: tokens }, (_, index) => framed(chunk({ content: tokenText(index) })))
const usage = { prompt_tokens: 20, completion_tokens: tokens, total_tokens: tokens + 20 }
const closing = Buffer.concat([
  framed(`${chunk({}, 'stop')}${chunk({}, null, usage)}data: [DONE]\n\n`),
  Buffer.from('0\r\n\r\n'),
])

const completion = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: 'gpt-4.1',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: tokenText(0).repeat(60) },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 220, completion_tokens: 110, total_tokens: 330 },
})
const whole = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(completion)}\r\n\r\n${completion}`,
)

type Stream = { head: string; sent: number; slot: number; rest: Buffer | null }

const streams = new Set<Bun.Socket<Stream>>()
let opened = 0
let tick = 0
let latestMs = 0

const write = (socket: Bun.Socket<Stream>, bytes: Buffer) => {
  const { data } = socket
  // A slow reader receives what it missed first.
  if (data.rest !== null) data.rest = Buffer.concat([data.rest, bytes])
  else {
    const written = socket.write(bytes)
    if (written < bytes.length) data.rest = bytes.subarray(Math.max(0, written))
  }
}

const server = Bun.listen<Stream>({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    open(socket) {
      socket.data = { head: '', sent: 0, slot: 0, rest: null }
    },
    data(socket, bytes) {
      const { data } = socket
      data.head += bytes.toString('latin1')
      const at = data.head.indexOf('\r\n\r\n')
      if (at < 0) return
      if (data.head.startsWith('GET')) {
        const text = latestMs.toFixed(0)
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`)
        data.head = ''
        return
      }
      const length = Number(/content-length: (\d+)/i.exec(data.head)?.[1] ?? 0)
      if (data.head.length < at + 4 + length) return
      const isStreamed = data.head.includes('"stream":true')
      data.head = ''
      if (!isStreamed) return write(socket, whole)
      data.sent = 0
      data.slot = opened++ % ticksPerToken
      write(socket, opening)
      streams.add(socket)
    },
    drain(socket) {
      const { rest } = socket.data
      socket.data.rest = null
      if (rest !== null) write(socket, rest)
    },
    close: socket => void streams.delete(socket),
  },
})

const startedAt = performance.now()
const advance = () => {
  const now = performance.now()
  latestMs = Math.max(latestMs, now - startedAt - (tick + 1) * tickMs)
  for (; startedAt + (tick + 1) * tickMs <= now; tick++)
    for (const socket of streams) {
      const { data } = socket
      if (data.slot !== tick % ticksPerToken) continue
      const piece = pieces[data.sent++]
      write(socket, piece ?? closing)
      if (piece === undefined) streams.delete(socket)
    }
  setTimeout(advance, Math.max(1, startedAt + (tick + 1) * tickMs - performance.now()))
}
advance()
process.stdout.write(`${server.port}\n`)
