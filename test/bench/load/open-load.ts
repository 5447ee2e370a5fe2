/**
 * Open-loop load in a separate process: requests are sent on schedule whether or not earlier ones are answered, and
 * times count from the schedule. Takes one argument, `OpenLoad` as JSON, and prints one line, `OpenLoadResult` as JSON.
 * Raw sockets and one buffer per request text keep it several times cheaper than any gateway.
 */

export type OpenLoad = {
  readonly port: number
  readonly path: string
  /** Requests use the keys in turn. */
  readonly keys: readonly string[]
  /** `placeholder` in it is replaced by a unique number. */
  readonly body: string
  readonly rate: number
  readonly seconds: number
  /** Requests scheduled before this many seconds are sent but not counted. */
  readonly warmingSeconds: number
  readonly connections: number
}

export type Times = { readonly count: number; readonly p50: number; readonly p99: number; readonly max: number }

export type OpenLoadResult = {
  readonly seconds: number
  /** By status; 0 = the connection broke or no response arrived. */
  readonly statuses: Readonly<Record<string, Times>>
  /** Responses of status 200 during the load, per second. */
  readonly goodput: number
  /** 99th percentile of the sending delay: above a few milliseconds this process was the bottleneck. */
  readonly sendLagP99: number
}

/** Position of the number in `body`. */
export const placeholder = '#########'

const graceMs = 10_000

export function getTimes(values: number[]): Times {
  values.sort((value, other) => value - other)
  const at = (share: number) => values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN
  const round = (value: number) => Math.round(value * 100) / 100
  return { count: values.length, p50: round(at(0.5)), p99: round(at(0.99)), max: round(at(1)) }
}

type Connection = { dueAt: number; head: string; missing: number; status: number; isBusy: boolean }

function getRequests({ path, keys, body }: OpenLoad): { readonly bytes: Buffer; readonly numberAt: number }[] {
  return keys.map(key => {
    const bytes = Buffer.from(
      `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nauthorization: Bearer ${key}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    )
    return { bytes, numberAt: bytes.indexOf(placeholder) }
  })
}

async function sendAll(options: OpenLoad): Promise<OpenLoadResult> {
  const { port, rate, seconds, warmingSeconds, connections } = options
  const requests = getRequests(options)
  const idle: Bun.Socket<Connection>[] = []
  const due: number[] = []
  const times = new Map<number, number[]>()
  const lags: number[] = []
  const total = Math.round(rate * seconds)
  const from = Date.now() % 1_000_000
  const startedAt = performance.now()
  const endsAt = startedAt + seconds * 1000
  const countedFrom = startedAt + warmingSeconds * 1000
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  let opened = 0
  let index = 0
  let answered = 0
  let goodOnes = 0

  const note = (dueAt: number, status: number) => {
    answered++
    const now = performance.now()
    if (status === 200 && now >= countedFrom && now < endsAt) goodOnes++
    if (dueAt >= countedFrom) {
      const list = times.get(status)
      if (list === undefined) times.set(status, [now - dueAt])
      else list.push(now - dueAt)
    }
    if (answered === total) end()
  }
  const send = (socket: Bun.Socket<Connection>, dueAt: number) => {
    const request = requests[index % requests.length]
    if (request === undefined) throw new Error('there is no key')
    if (request.numberAt >= 0)
      request.bytes.write(
        String(from * 1000 + index)
          .padStart(9, '0')
          .slice(-9),
        request.numberAt,
      )
    index++
    socket.data = { dueAt, head: '', missing: -1, status: 0, isBusy: true }
    socket.write(request.bytes)
    if (dueAt >= countedFrom) lags.push(performance.now() - dueAt)
  }
  const next = (socket: Bun.Socket<Connection>) => {
    socket.data.isBusy = false
    const dueAt = due.shift()
    if (dueAt === undefined) idle.push(socket)
    else send(socket, dueAt)
  }
  const open = () => {
    opened++
    void Bun.connect<Connection>({
      hostname: '127.0.0.1',
      port,
      data: { dueAt: 0, head: '', missing: -1, status: 0, isBusy: false },
      socket: {
        open: next,
        data(socket, bytes) {
          const { data } = socket
          if (data.missing < 0) {
            data.head += bytes.toString('latin1')
            const at = data.head.indexOf('\r\n\r\n')
            if (at < 0) return
            data.status = Number(data.head.slice(9, 12))
            data.missing = Number(/content-length: (\d+)/i.exec(data.head)?.[1] ?? 0) - (data.head.length - at - 4)
          } else data.missing -= bytes.length
          if (data.missing > 0) return
          note(data.dueAt, data.status)
          next(socket)
        },
        close(socket) {
          opened--
          const at = idle.indexOf(socket)
          if (at >= 0) idle.splice(at, 1)
          if (socket.data.isBusy) note(socket.data.dueAt, 0)
        },
      },
    }).catch(() => {
      opened--
      const dueAt = due.shift()
      if (dueAt !== undefined) note(dueAt, 0)
    })
  }

  let sent = 0
  while (sent < total) {
    const now = performance.now()
    for (; sent < total && startedAt + (sent * 1000) / rate <= now; sent++) {
      const dueAt = startedAt + (sent * 1000) / rate
      const socket = idle.pop()
      if (socket !== undefined) send(socket, dueAt)
      else {
        due.push(dueAt)
        if (opened < connections) open()
      }
    }
    await Bun.sleep(1)
  }
  await Promise.race([over, Bun.sleep(graceMs)])
  for (let missing = total - answered; missing > 0; missing--) note(endsAt, 0)
  return {
    seconds: seconds - warmingSeconds,
    statuses: Object.fromEntries([...times].map(([status, values]) => [status, getTimes(values)])),
    goodput: Math.round(goodOnes / (seconds - warmingSeconds)),
    sendLagP99: getTimes(lags).p99,
  }
}

if (import.meta.main) {
  const options = JSON.parse(process.argv[2] ?? '{}') as OpenLoad
  process.stdout.write(`${JSON.stringify(await sendAll(options))}\n`)
  process.exit(0)
}
