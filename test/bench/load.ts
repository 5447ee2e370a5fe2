/**
 * Load generator of the benchmark: keep-alive raw sockets with one request each, without an HTTP library. Responses end
 * by content-length or the last chunk.
 */

export type LoadResult = {
  readonly requests: number
  readonly failures: number
  /** The first failure as received. */
  readonly failure: string | null
  readonly seconds: number
  /** Milliseconds over all requests. */
  readonly p50: number
  readonly p99: number
  /** Milliseconds to the first byte of the body. */
  readonly firstByteP50: number
}

/** Sends `total` requests over `connections` sockets to a loopback port and times each. */
export async function load(options: {
  readonly port: number
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: () => string
  readonly connections: number
  readonly total: number
}): Promise<LoadResult> {
  const head = Object.entries({ host: '127.0.0.1', 'content-type': 'application/json', ...options.headers })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
  const request = () => {
    const body = options.body()
    return `POST ${options.path} HTTP/1.1\r\n${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  }
  const times: number[] = []
  const firstBytes: number[] = []
  let left = options.total
  let failures = 0
  let failure: string | null = null
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: options.connections }, () => connection()))
  const seconds = (performance.now() - startedAt) / 1000
  times.sort((a, b) => a - b)
  firstBytes.sort((a, b) => a - b)
  const at = (sorted: readonly number[], share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN
  return {
    requests: times.length,
    failures,
    failure,
    seconds,
    p50: at(times, 0.5),
    p99: at(times, 0.99),
    firstByteP50: at(firstBytes, 0.5),
  }

  function connection(): Promise<void> {
    return new Promise((resolve, reject) => {
      let answer = ''
      let sentAt = 0
      let firstByteAt = 0
      const next = (socket: Bun.Socket) => {
        if (left <= 0) {
          socket.end()
          return resolve()
        }
        left -= 1
        answer = ''
        firstByteAt = 0
        const bytes = request()
        sentAt = performance.now()
        socket.write(bytes)
      }
      void Bun.connect({
        hostname: '127.0.0.1',
        port: options.port,
        socket: {
          open: next,
          data(socket, bytes) {
            answer += bytes.toString('latin1')
            const bodyAt = answer.indexOf('\r\n\r\n')
            if (bodyAt < 0) return
            if (firstByteAt === 0) firstByteAt = performance.now()
            if (!isWhole(answer, bodyAt + 4)) return
            times.push(performance.now() - sentAt)
            firstBytes.push(firstByteAt - sentAt)
            if (!answer.startsWith('HTTP/1.1 200')) {
              failures += 1
              failure ??= answer
            }
            next(socket)
          },
          error: (_socket, cause) => reject(cause),
          close: () => resolve(),
        },
      }).catch(reject)
    })
  }
}

function isWhole(answer: string, bodyAt: number): boolean {
  const head = answer.slice(0, bodyAt)
  const length = /content-length: (\d+)/i.exec(head)?.[1]
  return length === undefined ? answer.endsWith('0\r\n\r\n') : answer.length >= bodyAt + Number(length)
}
