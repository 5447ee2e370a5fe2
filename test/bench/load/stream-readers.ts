/**
 * Readers of many event streams in a separate process. Takes one argument, `StreamReaders` as JSON, and prints one
 * line, `StreamsResult` as JSON. Every stream's tokens are numbered, so that lost, repeated or reordered ones are
 * detected.
 */
import { getTimes, type Times } from './open-load.ts'

export type StreamReaders = {
  readonly port: number
  readonly path: string
  readonly key: string
  readonly body: string
  readonly streams: number
  /** Requests are sent evenly over this time. */
  readonly rampMs: number
  /** Tokens per stream. */
  readonly tokens: number
  readonly deadlineMs: number
}

export type StreamsResult = {
  readonly admitted: number
  /** Responses of other statuses with their counts. */
  readonly refused: Readonly<Record<string, number>>
  /** Streams with every token in order and their terminal event. */
  readonly complete: number
  readonly tokens: number
  /** Missing or repeated tokens. */
  readonly outOfOrder: number
  /** Milliseconds until the first token. */
  readonly firstToken: Times
  /** Milliseconds between two tokens of one stream; `count` = gaps over 50 ms. */
  readonly stalls: Times
  /** 99th percentile of all gaps; 50 if no more than 1 in 100 is over 50 ms. */
  readonly gapP99: number
  /** Streams with a gap over 250 ms. */
  readonly stalledStreams: number
  /** Maximum delay of this process's own timer, which may cause the measured stalls. */
  readonly ownLagMs: number
}

/** Returns the text of a stream's token. */
export const tokenText = (index: number): string => `t${String(index).padStart(6, '0')} `

const mark = 't0'

type Reader = {
  status: number
  rest: string
  next: number
  last: number
  sentAt: number
  longest: number
  isDone: boolean
}

async function readAll(options: StreamReaders): Promise<StreamsResult> {
  const { port, path, key, body, streams, rampMs, tokens, deadlineMs } = options
  const request = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nauthorization: Bearer ${key}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  const firstTokens: number[] = []
  const gaps: number[] = []
  const refused: Record<string, number> = {}
  let [ended, complete, total, outOfOrder, admitted, stalledStreams, ownLagMs] = [0, 0, 0, 0, 0, 0, 0]
  const { promise: over, resolve } = Promise.withResolvers<void>()
  const end = (reader: Reader) => {
    if (reader.isDone) return
    reader.isDone = true
    if (reader.longest > 250) stalledStreams++
    if (++ended === streams) resolve()
  }
  const take = (reader: Reader, now: number) => {
    const { rest } = reader
    let at = rest.indexOf(mark)
    let scanned = 0
    while (at >= 0 && at + 8 <= rest.length) {
      const index = Number(rest.slice(at + 1, at + 7))
      if (index !== reader.next) outOfOrder++
      reader.next = index + 1
      total++
      if (reader.last === 0) firstTokens.push(now - reader.sentAt)
      else {
        const gap = now - reader.last
        if (gap > 50) gaps.push(gap)
        if (gap > reader.longest) reader.longest = gap
      }
      reader.last = now
      scanned = at + 8
      at = rest.indexOf(mark, scanned)
    }
    const isEnd = rest.includes('[DONE]')
    reader.rest = rest.slice(Math.max(scanned, rest.length - 16))
    return isEnd
  }
  const open = () => {
    const reader: Reader = {
      status: 0,
      rest: '',
      next: 0,
      last: 0,
      sentAt: performance.now(),
      longest: 0,
      isDone: false,
    }
    const broken = () => {
      if (!reader.isDone) refused['0'] = (refused['0'] ?? 0) + 1
      end(reader)
    }
    void Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: {
        open: socket => void socket.write(request),
        data(socket, bytes) {
          reader.rest += bytes.toString('latin1')
          if (reader.status === 0) {
            const at = reader.rest.indexOf('\r\n\r\n')
            if (at < 0) return
            reader.status = Number(reader.rest.slice(9, 12))
            reader.rest = reader.rest.slice(at)
            if (reader.status !== 200) {
              refused[reader.status] = (refused[reader.status] ?? 0) + 1
              end(reader)
              socket.end()
              return
            }
            admitted++
          }
          if (!take(reader, performance.now())) return
          if (reader.next === tokens) complete++
          end(reader)
          socket.end()
        },
        close: broken,
        error: broken,
      },
    }).catch(broken)
  }
  let tickedAt = performance.now()
  const lag = setInterval(() => {
    const now = performance.now()
    ownLagMs = Math.max(ownLagMs, now - tickedAt - 10)
    tickedAt = now
  }, 10)
  const startedAt = performance.now()
  for (let opened = 0; opened < streams; ) {
    const due =
      rampMs === 0 ? streams : Math.min(streams, Math.ceil(((performance.now() - startedAt) / rampMs) * streams))
    for (; opened < due; opened++) open()
    await Bun.sleep(1)
  }
  await Promise.race([over, Bun.sleep(deadlineMs)])
  clearInterval(lag)
  const stalls = getTimes(gaps)
  const allGaps = total - firstTokens.length
  return {
    admitted,
    refused,
    complete,
    tokens: total,
    outOfOrder,
    firstToken: getTimes(firstTokens),
    stalls,
    gapP99: Math.round(gaps.at(-Math.ceil(allGaps / 100)) ?? 50),
    stalledStreams,
    ownLagMs: Math.round(ownLagMs),
  }
}

if (import.meta.main) {
  const options = JSON.parse(process.argv[2] ?? '{}') as StreamReaders
  process.stdout.write(`${JSON.stringify(await readAll(options))}\n`)
  process.exit(0)
}
