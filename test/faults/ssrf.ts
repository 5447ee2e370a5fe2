/**
 * Tests from outside which hosts pages are fetched from: `bun test/faults/ssrf.ts`, as root on Linux. A complete
 * gateway runs in its own network in which every IPv4 and IPv6 address is this machine, so that everything it dials is
 * visible: pages behind the public addresses of this file's names, a canary behind all others. Input is a client's
 * prompt, and a lying DNS server resolves the names.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isPublicAddress } from '../../src/core/validation/public-address.ts'
import { newAccount } from '../harness/account.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { jsonAnswer, startUpstream, type Upstream, type UpstreamAnswer } from '../harness/upstream.ts'
import { insideV4, insideV6, payloads } from '../web/payloads.ts'
import { type Answer, getPath, page, redirectTo, startDns } from '../web/rig.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)
const fail = (line: string) => {
  process.exitCode = 1
  say(`FAILED: ${line}`)
}

/** Runs this file again in its own network and name service. */
async function enter(): Promise<void> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    say('did not run: it needs root on Linux, to make a network of its own')
    process.exitCode = 2
    return
  }
  const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-ssrf-'))
  const names = join(folder, 'resolv.conf')
  writeFileSync(names, 'nameserver 127.0.0.1\noptions timeout:1\n')
  const everyAddressIsHere =
    'mount --bind "$0" /etc/resolv.conf && ip link set lo up && ip route add local default dev lo && ' +
    'ip -6 route add local default dev lo && exec "$@"'
  const child = Bun.spawn(
    [
      'unshare',
      '--net',
      '--mount',
      'sh',
      '-c',
      everyAddressIsHere,
      names,
      process.execPath,
      import.meta.path,
      'inside',
    ],
    { stdio: ['ignore', 'inherit', 'inherit'], env: { PATH: process.env.PATH ?? '' } },
  )
  process.exitCode = await child.exited
  rmSync(folder, { recursive: true })
}

// ─── The network of this file
// ─────────────────────────────────────────────────────────────────────────────────────────

type Way = 'direct' | 'redirect' | 'chain' | 'refresh' | 'a' | 'aaaa' | 'cname' | 'flip'
const perWay = 1_500
/** Each has at least two DNS answers, of which the later ones are internal. */
const flipping = 8_000
const honestPages = 200
const pageAddress = '93.184.216.34'
const secret = 'INSIDE-7f3d9b'
const redirects = [300, 301, 302, 303, 304, 305, 307, 308]
/** Besides the two ports that may be dialed: stores, consoles, and services of clouds. */
const ports = [80, 443, 22, 25, 2375, 3000, 3306, 5432, 6379, 8000, 8080, 8443, 9200, 11_211, 27_017]

/** Deterministic, and different for every number. */
function random(number: number): number {
  const mixed = Math.imul(number ^ (number >>> 15), 0x2c1b3c6d)
  return (Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39) >>> 0) ^ (mixed >>> 15)
}

const prefixesV4 =
  '0 10 127 100.64 100.127 169.254 172.16 172.31 192.0.0 192.0.2 192.168 198.18 198.19 198.51.100 203.0.113 224 239 240 255'
const prefixesV6 =
  'fc00 fd00:ec2 fe80 febf fec0 ff02 64:ff9b 2002:a9fe:a9fe 2001:db8 100 3fff:0 5f00 ::ffff:7f00 ::ffff:a9fe'

/** Returns an internal address, the known ones first. */
function insideFour(index: number): string {
  const known = insideV4[index]
  if (known !== undefined) return known
  const prefixes = prefixesV4.split(' ')
  const start = prefixes[index % prefixes.length]?.split('.') ?? []
  return [...start, ...[0, 8, 16, 24].map(shift => (random(index) >>> shift) & 255)].slice(0, 4).join('.')
}

function insideSix(index: number): string {
  const known = insideV6[index]
  if (known !== undefined) return known
  const prefixes = prefixesV6.split(' ')
  return `${prefixes[index % prefixes.length] ?? ''}:${(random(index) & 0xffff).toString(16)}`
}

function outside(index: number): string {
  for (let turn = index; ; turn += honestPages) {
    const bits = random(turn + 1)
    const address =
      index % 2 === 0
        ? [1 + ((bits >>> 24) % 222), bits >>> 16, bits >>> 8, bits]
            .map((part, at) => (at === 0 ? part : part & 255))
            .join('.')
        : `2a00:${(bits >>> 16).toString(16)}::${(bits & 0xffff).toString(16)}`
    if (isPublicAddress(address)) return address
  }
}

const honest = new Map(Array.from({ length: honestPages }, (_, index) => [outside(index), index]))
const flips = new Map<string, number>()
let answersFlipped = 0

/** Returns the lying DNS server's answer for a name: `way-index` and `.example.com`. */
function findAnswer(name: string): Answer | null {
  const [, way = '', digits = ''] = /^([a-z]+)-(\d+)\./.exec(name) ?? []
  const index = Number(digits)
  const inside = { a: [insideFour(index)], aaaa: [insideSix(index)] }
  switch (way) {
    case 'a':
      return index % 3 === 0 ? { a: [pageAddress, insideFour(index)] } : { a: inside.a }
    case 'aaaa':
      return index % 3 === 0 ? { a: [pageAddress], aaaa: inside.aaaa } : { aaaa: inside.aaaa }
    case 'cname':
      return {
        cname:
          ['localhost', 'redis.default.svc', 'metadata.google.internal', `in-${index}.example.net`][index % 4] ?? '',
        ...inside,
      }
    case 'flip': {
      const turn = flips.get(name) ?? 0
      flips.set(name, turn + 1)
      answersFlipped += turn > 1 || index % 4 === 3 ? 1 : 0
      // One name is queried for two families at once. Some names change between the two, others from the next query on.
      return (index % 4 === 3 ? turn % 2 === 0 : turn <= 1) ? { a: [pageAddress] } : inside
    }
    case 'honest':
      return index % 2 === 0 ? { a: [outside(index)] } : { aaaa: [outside(index)] }
    default:
      return { a: [pageAddress] }
  }
}

const all = [...payloads()]

/** Serves the public address of redirecting names. */
function servePage(socket: Socket, path: string): void {
  const [, way = '', digits = ''] = /^\/(\w+)\/(\d+)/.exec(path) ?? []
  const index = Number(digits)
  const target = all[index % all.length] ?? ''
  switch (way) {
    case 'redirect':
      return void socket.end(redirectTo(target, redirects[index % redirects.length]))
    case 'chain':
      return void socket.end(redirectTo(`http://redirect-${index}.example.com/redirect/${index}`, 307))
    case 'flip':
      return void socket.end(index % 4 !== 3 ? redirectTo(`/flip/${index}`) : page('<p>A page.</p>'))
    case 'refresh':
      return void socket.end(
        page(
          `<meta http-equiv="refresh" content="0; url=${target}"><p>Moved.</p>`,
          'text/html',
          `refresh: 0; url=${target.replace(/\s/g, '')}\r\n`,
        ),
      )
    default:
      return void socket.end(page('<p>A page.</p>'))
  }
}

function getUrl(way: Way, index: number): string {
  // Neighbors are spellings of one address, of which a request tries one.
  if (way === 'direct') return all[(index * 499) % all.length] ?? ''
  return `http://${way}-${index}.example.com/${way}/${index}`
}

// ─── The attack ───────────────────────────────────────────────────────────────────────────────────────────────────────

async function attack(): Promise<void> {
  const hits: string[] = []
  const canary = ports.map(port =>
    createServer(socket => {
      socket.on('error', () => {})
      const address = (socket.localAddress ?? '').replace('::ffff:', '')
      const index = honest.get(address)
      if (port === 80 && index !== undefined) return void socket.end(page(`<p>Honest words ${index}.</p>`))
      if (port === 80 && address === pageAddress)
        return void socket.once('data', head => servePage(socket, getPath(head.toString('latin1'))))
      hits.push(`${address}:${port}`)
      socket.end(page(secret, 'text/plain'))
    }).listen(port, '::'),
  )
  const dns = await startDns(findAnswer, 53)
  let bodies = ''
  const model = startUpstream(({ body }) => {
    bodies += body.includes(secret) ? body : ''
    return jsonAnswer(completion)
  })
  let found = (): UpstreamAnswer =>
    jsonAnswer({ web: { results: all.slice(0, 6).map(url => ({ url, title: 'T', description: 'Text.' })) } })
  const search = startUpstream(() => found())
  const environment = {
    OPENAI_API_KEY: 'sk-test',
    OPENAI_BASE_URL: `${model.url}/v1`,
    BRAVE_API_KEY: 'brave-key',
    BRAVE_BASE_URL: search.url,
    LOG_LEVEL: 'error',
  }
  const gateway = await patiently(() => startGateway(environment))

  await (await fetch('http://169.254.169.254/')).text()
  await (await fetch('http://[fd00:ec2::254]:6379/')).text()
  if (hits.splice(0).length !== 2) fail('the canary does not see who comes')

  all.push(
    `http://127.0.0.1:${gateway.port}/healthz`,
    `http://[::1]:${gateway.port}/`,
    `${model.url}/v1`,
    `${search.url}/`,
  )
  const ways: readonly Way[] = ['direct', 'redirect', 'chain', 'refresh', 'a', 'aaaa', 'cname', 'flip']
  for (const way of ways) {
    const count = way === 'direct' ? all.length : way === 'flip' ? flipping : perWay
    const { tried, read } = await readAll(
      gateway,
      Array.from({ length: count }, (_, index) => getUrl(way, index)),
    )
    say(
      `${way.padEnd(8)} ${count} addresses, ${tried} tried, ${read} pages of public addresses read, ${hits.length} canary hits`,
    )
    // A name with changing addresses is public at first, and a page that requests a refresh is an ordinary page.
    if (read > 0 && way !== 'flip' && way !== 'refresh') fail(`${read} pages were read where none may be`)
    if (tried < perWay) fail('too few were tried for this to say anything')
  }
  say(`         ${answersFlipped} answers that led elsewhere than those before them`)

  const urls = Array.from({ length: honestPages }, (_, index) => `http://honest-${index}.example.com/`)
  const { read } = await readAll(gateway, urls, 4)
  say(`honest   ${read} of ${honestPages} read`)
  if (read !== honestPages) fail('an honest page was not read')

  await searchFor(gateway)
  const before = search.ledger().length
  found = () => ({ status: 302, headers: { location: 'http://169.254.169.254/latest' } })
  await searchFor(gateway)
  if (before === 0 || search.ledger().length === before) fail('no search was made')
  say(`search   results that lead inside, and a back end that redirects there: ${hits.length} canary hits`)

  if (hits.length > 0) fail(`the canary was reached: ${hits.slice(0, 20).join(' ')}`)
  if (bodies !== '') fail('what stands inside was put before a model')
  await stop(gateway, [model, search])
  for (const server of canary) server.close()
  dns.stop()
  say(process.exitCode === 1 ? 'FAILED' : 'nothing but the public web was ever dialled')
  process.exit()
}

const completion = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-5.5',
  choices: [{ index: 0, message: { role: 'assistant', content: 'So it is.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 },
}

type WebPart = {
  readonly web?: { readonly sources: readonly { readonly url: string }[]; readonly left_out: readonly unknown[] }
}

/** Requests all URLs, three per request, with the given number of concurrent requests. */
async function readAll(
  gateway: Gateway,
  urls: readonly string[],
  atATime = 10,
): Promise<{ tried: number; read: number }> {
  const waiting = Array.from({ length: Math.ceil(urls.length / 3) }, (_, at) => urls.slice(3 * at, 3 * at + 3))
  let tried = 0
  let read = 0
  const work = async () => {
    let headers: Record<string, string> = {}
    for (let turn = 0, three = waiting.pop(); three !== undefined; turn++, three = waiting.pop()) {
      // An account may fetch thirty pages per minute.
      if (turn % 8 === 0) headers = (await patiently(() => newAccount(gateway, unlimited))).headers
      const prompt = `Please read ${three.join('\nand ')}\nand say what it is about.`
      const { web } = await patiently(() => answerTo(gateway, prompt, headers))
      tried += (web?.sources.length ?? 0) + (web?.left_out.length ?? 0)
      read += web?.sources.length ?? 0
    }
  }
  await Promise.all(Array.from({ length: atATime }, work))
  return { tried, read }
}

async function answerTo(gateway: Gateway, prompt: string, headers: Record<string, string>): Promise<WebPart> {
  const response = await gateway.post('/api/v1/chat', { model: 'gpt-5.5', prompt, max_output_tokens: 16 }, headers)
  if (response.status !== 200) throw new Error(`${response.status} for ${prompt}`)
  return (await response.json()) as WebPart
}

const unlimited = { requestsPerMinute: 1_000, dailyTokens: 1e9, dailyCostMicrocents: 1e12 }

/** On a busy machine the embedded database may miss its deadline. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let turn = 1; ; turn++) {
    try {
      return await work()
    } catch (cause) {
      if (turn === 20) throw cause
      await Bun.sleep(1_000)
    }
  }
}

async function searchFor(gateway: Gateway): Promise<void> {
  const body = { model: 'gpt-5.5', prompt: 'Search the web for the price of gold today', max_output_tokens: 16 }
  await (await gateway.post('/api/v1/chat', body)).text()
}

async function stop(gateway: Gateway, upstreams: readonly Upstream[]): Promise<void> {
  await gateway.stop()
  for (const upstream of upstreams) upstream.stop()
}

if (process.argv[2] === 'inside') await attack()
else await enter()
