/**
 * A small internet on this machine: a DNS server on UDP, pages on a real socket, and a canary at every other address.
 * The address check is the real one; only dialing is redirected, after all checks.
 */
import { createSocket } from 'node:dgram'
import { createServer, type Server, type Socket } from 'node:net'
import type { Clock } from '../../src/core/ports.ts'
import { systemClock } from '../../src/database/clock.ts'
import { createResolver } from '../../src/web/hop.ts'
import type { Endpoint } from '../../src/web/page/http-get.ts'
import { createPageReader, type PageFetcher, type PageReaderOptions } from '../../src/web/page-fetcher.ts'
import { patient } from '../harness/patience.ts'

/** Public addresses of this network's pages. */
export const publicAddresses = ['93.184.216.34', '2606:2800:220:1:248:1893:25c8:1946'] as const

export type Answer = { readonly a?: readonly string[]; readonly aaaa?: readonly string[]; readonly cname?: string }

export type Rig = {
  readonly reader: PageFetcher
  /** Every dialed address, in order. */
  readonly dialled: Endpoint[]
  canaryHits(): number
  /** Queried names. */
  readonly asked: string[]
  /** Reads for a separate account, so that no limit is reached by accident. */
  read(url: string): ReturnType<PageFetcher['read']>
  stop(): void
}

export type RigOptions = Partial<Pick<PageReaderOptions, 'isListed' | 'maximumCharacters' | 'deadlines'>> & {
  /** Returns what a name resolves to; default: the pages. Null = the name does not exist. */
  readonly answer?: (name: string, query: number) => Answer | null
  /** Writes the response of a page's server. `request` is its head as text. */
  readonly page: (socket: Socket, request: string) => void
  readonly clock?: PageReaderOptions['clock']
  /** Port of another server for the pages, and its trusted authority. */
  readonly secure?: { readonly port: number; readonly certificateAuthority: string }
}

/** Skips the waits that round the time of failures. */
const hurried: Pick<Clock, 'now' | 'monotonic' | 'sleep'> = { ...systemClock, sleep: async () => {} }

export async function startRig({ answer = () => ({ a: [publicAddresses[0]] }), ...options }: RigOptions): Promise<Rig> {
  const dialled: Endpoint[] = []
  const asked: string[] = []
  let hits = 0
  let accounts = 0
  const canary = await listen(socket => {
    hits += 1
    socket.end('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nINTERNAL')
  })
  const pages = await listen(socket => {
    let head = ''
    socket.on('data', piece => {
      if (head.includes('\r\n\r\n')) return
      head += piece.toString('latin1')
      if (head.includes('\r\n\r\n')) options.page(socket, head)
    })
  })
  const dns = await startDns((name, query) => {
    asked.push(name)
    return answer(name, query)
  })
  const isPage = (address: string) => publicAddresses.some(publicAddress => publicAddress === address)
  const reader = createPageReader({
    clock: options.clock ?? hurried,
    resolve: createResolver(patient.nameResolutionMs, [`127.0.0.1:${dns.port}`]),
    isListed: options.isListed ?? (() => false),
    maximumCharacters: options.maximumCharacters ?? 8_000,
    deadlines: options.deadlines ?? patient,
    dial(endpoint) {
      dialled.push(endpoint)
      if (!isPage(endpoint.address)) return { address: '127.0.0.1', port: canary.port }
      if (endpoint.port === 443 && options.secure !== undefined) return { address: '127.0.0.1', ...options.secure }
      return { address: '127.0.0.1', port: pages.port }
    },
  })
  return {
    reader,
    dialled,
    asked,
    canaryHits: () => hits,
    read: url => reader.read(url, { accountId: `acc_${++accounts}`, signal: new AbortController().signal }),
    stop() {
      reader.close()
      canary.stop()
      pages.stop()
      dns.stop()
    },
  }
}

/** Returns an HTTP response that ends with the connection. */
export function page(body: string | Uint8Array, contentType = 'text/html; charset=utf-8', headers = ''): Buffer {
  return Buffer.concat([
    Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: ${contentType}\r\nconnection: close\r\n${headers}\r\n`),
    Buffer.from(body),
  ])
}

export function redirectTo(location: string, status = 302): Buffer {
  return Buffer.from(
    `HTTP/1.1 ${status} Found\r\nlocation: ${location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`,
    'latin1',
  )
}

export const getPath = (request: string) => request.split(' ')[1] ?? ''

async function listen(serve: (socket: Socket) => void): Promise<{ readonly port: number; stop(): void }> {
  const sockets = new Set<Socket>()
  const server: Server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    serve(socket)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

const types = { a: 1, cname: 5, aaaa: 28 } as const

/** Starts a DNS server for A and AAAA queries; a name without answers does not exist. Default: any free port. */
export async function startDns(answer: (name: string, query: number) => Answer | null, port = 0) {
  const socket = createSocket('udp4')
  let queries = 0
  socket.on('message', (message, peer) => {
    const { name, type, end } = getQuestion(message)
    const given = answer(name, queries++)
    const records: Buffer[] = []
    if (given?.cname !== undefined)
      records.push(record(message.subarray(12, end - 4), types.cname, encodeName(given.cname)))
    // The addresses of an alias belong to its target.
    const owner = given?.cname === undefined ? message.subarray(12, end - 4) : encodeName(given.cname)
    if (type === types.a)
      for (const ip of given?.a ?? []) records.push(record(owner, types.a, Buffer.from(ip.split('.').map(Number))))
    if (type === types.aaaa)
      for (const ip of given?.aaaa ?? []) records.push(record(owner, types.aaaa, sixteenBytes(ip)))
    const header = Buffer.alloc(12)
    message.copy(header, 0, 0, 2)
    header.writeUInt16BE(given === null ? 0x8183 : 0x8180, 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(records.length, 6)
    socket.send(Buffer.concat([header, message.subarray(12, end), ...records]), peer.port, peer.address)
  })
  await new Promise<void>(resolve => socket.bind(port, '127.0.0.1', resolve))
  return { port: socket.address().port, stop: () => socket.close() }
}

function getQuestion(message: Buffer): { readonly name: string; readonly type: number; readonly end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += length + 1
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 }
}

function record(owner: Uint8Array, type: number, data: Uint8Array): Buffer {
  const middle = Buffer.alloc(10)
  middle.writeUInt16BE(type, 0)
  middle.writeUInt16BE(1, 2)
  middle.writeUInt16BE(data.length, 8)
  return Buffer.concat([owner, middle, data])
}

function encodeName(name: string): Buffer {
  const labels = name.split('.').map(label => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]))
  return Buffer.concat([...labels, Buffer.from([0])])
}

function sixteenBytes(ip: string): Buffer {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(ip)
  const text =
    dotted === null
      ? ip
      : `${dotted[1]}${hex(Number(dotted[2]), Number(dotted[3]))}:${hex(Number(dotted[4]), Number(dotted[5]))}`
  const [head = '', tail] = text.split('::')
  const left = head.split(':').filter(group => group !== '')
  const right = (tail ?? '').split(':').filter(group => group !== '')
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0')
  const bytes = Buffer.alloc(16)
  for (const [index, group] of [...left, ...zeros, ...right].entries())
    bytes.writeUInt16BE(Number.parseInt(group, 16), index * 2)
  return bytes
}

const hex = (high: number, low: number) => (high * 256 + low).toString(16)
