/** Ordinary pages of every kind are read; hostile ones cost bounded time and one code. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { usualDeadlines } from '../../src/core/request/deadlines.ts'
import { systemClock } from '../../src/database/clock.ts'
import { cpuMs } from '../harness/cpu.ts'
import { eventually } from '../harness/eventually.ts'
import { patient } from '../harness/patience.ts'
import { getPdf, minimalPdf } from './pdfs.ts'
import { getPath, page, publicAddresses, type Rig, redirectTo, startRig } from './rig.ts'

setDefaultTimeout(240_000)

const certificate = (name: string) => readFileSync(join(import.meta.dir, 'certificates', name), 'utf8')

/** Socket behavior by path. */
const behaviours: Record<string, Parameters<typeof startRig>[0]['page']> = {}
let rig: Rig
let secure: Server
beforeAll(async () => {
  secure = createServer({ key: certificate('server.key'), cert: certificate('server.pem') }, (_, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).end('Read over TLS.')
  })
  await new Promise<void>(resolve => secure.listen(0, '127.0.0.1', resolve))
  const address = secure.address()
  rig = await startRig({
    page: (socket, request) => (behaviours[getPath(request)] ?? (() => socket.end(page('<p>x</p>'))))(socket, request),
    secure: {
      port: typeof address === 'object' && address !== null ? address.port : 0,
      certificateAuthority: certificate('authority.pem'),
    },
  })
})
afterAll(() => {
  rig.stop()
  secure.close()
})

let hosts = 0

/** Reads what `behave` serves, from a separate host. */
function served(behave: Parameters<typeof startRig>[0]['page']) {
  hosts += 1
  const path = `/page-${hosts}`
  behaviours[path] = behave
  return rig.read(`http://p${hosts}.example.com${path}`)
}

const servedBytes = (...given: Parameters<typeof page>) => served(socket => socket.end(page(...given)))

describe('page fetcher on ordinary pages', () => {
  const words = {
    en: 'The harbour opens at seven.',
    ja: '港は七時に開きます。',
    ru: 'Гавань открывается в семь.',
    de: 'Der Hafen öffnet um sieben.',
  }
  const encoded: readonly (readonly [charset: string, text: string, bytes: Uint8Array])[] = [
    ['utf-8', words.ja, Buffer.from(words.ja)],
    ['utf-16le', words.ja, Buffer.from(words.ja, 'utf16le')],
    ['iso-8859-1', words.de, Buffer.from(words.de, 'latin1')],
    ['windows-1252', words.de, Buffer.from(words.de, 'latin1')],
    ['shift_jis', 'テスト', Uint8Array.from([0x83, 0x65, 0x83, 0x58, 0x83, 0x67])],
    ['euc-jp', 'テスト', Uint8Array.from([0xa5, 0xc6, 0xa5, 0xb9, 0xa5, 0xc8])],
    ['gb18030', '测试', Uint8Array.from([0xb2, 0xe2, 0xca, 0xd4])],
    ['big5', '測試', Uint8Array.from([0xb4, 0xfa, 0xb8, 0xd5])],
    ['euc-kr', '시험', Uint8Array.from([0xbd, 0xc3, 0xc7, 0xe8])],
    ['koi8-r', 'Да', Uint8Array.from([0xe4, 0xc1])],
    ['windows-1251', 'Да', Uint8Array.from([0xc4, 0xe0])],
  ]
  const codings = [
    ['identity', (bytes: Uint8Array) => bytes],
    ['gzip', (bytes: Uint8Array) => gzipSync(bytes)],
    ['deflate', (bytes: Uint8Array) => deflateSync(bytes)],
    ['br', (bytes: Uint8Array) => brotliCompressSync(bytes)],
  ] as const
  const kinds = [
    ['text/plain', (bytes: Uint8Array) => bytes],
    [
      'text/html',
      (bytes: Uint8Array, charset: string) =>
        wrapped(bytes, charset, '<!doctype html><title>T</title><nav>Menu</nav><main><p>', '</p></main>'),
    ],
    [
      'application/xhtml+xml',
      (bytes: Uint8Array, charset: string) => wrapped(bytes, charset, '<html><body><div>', '</div></body></html>'),
    ],
    ['text/markdown', (bytes: Uint8Array) => bytes],
    ['text/html', (bytes: Uint8Array, charset: string) => wrapped(bytes, charset, '<p>', '')],
  ] as const

  function wrapped(bytes: Uint8Array, charset: string, before: string, after: string): Uint8Array {
    const encoding = charset === 'utf-16le' ? 'utf16le' : 'latin1'
    return Buffer.concat([Buffer.from(before, encoding), bytes, Buffer.from(after, encoding)])
  }

  test('reads 200 of 200 in every charset, encoding and type', async () => {
    const all = encoded.flatMap(text => codings.flatMap(coding => kinds.map(kind => ({ text, coding, kind }))))
    expect(all.length).toBeGreaterThanOrEqual(200)
    const wrong: unknown[] = []
    const work = async () => {
      for (let item = all.pop(); item !== undefined; item = all.pop()) {
        const [charset, expected, bytes] = item.text
        const [coding, compress] = item.coding
        const [type, dress] = item.kind
        const read = await servedBytes(
          compress(dress(bytes, charset)),
          `${type}; charset=${charset}`,
          `content-encoding: ${coding}\r\n`,
        )
        if (!('text' in read) || read.text !== expected) wrong.push([charset, coding, type, read])
      }
    }
    await Promise.all(Array.from({ length: 20 }, work))
    expect(wrong).toEqual([])
  })

  test('finds the charset in the page, a byte order mark, or by default', async () => {
    const [sjis, latin] = [encoded[4]?.[2] ?? new Uint8Array(), Buffer.from(words.de, 'latin1')]
    const meta = Buffer.concat([Buffer.from('<meta charset="Shift_JIS"><p>'), sjis])
    const equiv = Buffer.concat([
      Buffer.from('<meta http-equiv=content-type content="text/html; charset=shift_jis"><p>'),
      sjis,
    ])
    const marked = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(`<p>${words.ja}`, 'utf16le')])
    for (const [bytes, expected] of [
      [meta, 'テスト'],
      [equiv, 'テスト'],
      [marked, words.ja],
      [latin, words.de],
      [Buffer.from(words.ru), words.ru],
    ] as const)
      expect(await servedBytes(bytes, 'text/html')).toMatchObject({ text: expected })
  })

  test('loses only characters when the charset is wrong or unknown', async () => {
    expect(await servedBytes(Buffer.from(`<p>Price: ${words.de}`), 'text/html; charset=ascii')).toMatchObject({
      text: expect.stringContaining('Price: Der Hafen'),
    })
    expect(await servedBytes(Buffer.from(words.ja), 'text/plain; charset=no-such-thing')).toMatchObject({
      text: words.ja,
    })
    expect(await servedBytes(Buffer.from([0x61, 0xff, 0xfe, 0x62]), 'text/plain; charset=utf-8')).toMatchObject({
      text: 'a\ufffd\ufffdb',
    })
  })

  test('returns JSON unchanged and the text of a PDF', async () => {
    expect(await servedBytes('{"a": [1, 2]}', 'application/json')).toMatchObject({ text: '{"a": [1, 2]}' })
    expect(await servedBytes('{"a":1}', 'application/ld+json; charset=utf-8')).toMatchObject({ text: '{"a":1}' })
    expect(await servedBytes(minimalPdf, 'application/pdf')).toMatchObject({ text: 'The tide table of May' })
  })

  test('follows three redirects and reports the final URL', async () => {
    behaviours['/one'] = socket => socket.end(redirectTo('/two', 301))
    behaviours['/two'] = socket => socket.end(redirectTo('http://other.example.com/three', 307))
    behaviours['/three'] = socket => socket.end(redirectTo('four', 308))
    behaviours['/four'] = socket => socket.end(page('<title>Here</title><p>At last.'))
    behaviours['/zero'] = socket => socket.end(redirectTo('/one'))
    expect(await rig.read('http://start.example.com/one')).toEqual({
      url: 'http://other.example.com/four',
      title: 'Here',
      text: 'At last.',
    })
    expect(await rig.read('http://start.example.com/zero')).toMatchObject({ code: 'unreachable' })
  })

  test('reads a page of exact length, with 1xx responses before and bytes after it', async () => {
    const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: keep-alive\r\ncontent-length: 7\r\n\r\n'
    const hint = 'HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n'
    expect(await served(socket => socket.write(`${hint}${head}<p>Kept`))).toMatchObject({ text: 'Kept' })
    expect(await served(socket => flood(socket, `${head}<p>Kept`, 'x'))).toMatchObject({ text: 'Kept' })
  })

  test('checks the TLS certificate against the host [B2]', async () => {
    expect(await rig.read('https://secure.example.com/')).toMatchObject({ text: 'Read over TLS.' })
    expect(await rig.read('https://other.example.com/')).toMatchObject({ code: 'unreachable' })
  })

  test('sends the user agent and nothing of the client [S6]', async () => {
    let head = ''
    await served((socket, request) => {
      head = request
      socket.end(page('x', 'text/plain', 'set-cookie: a=b\r\n'))
    })
    const names = head
      .split('\r\n')
      .slice(1)
      .flatMap(line => line.split(':')[0] || [])
    expect(names.map(name => name.toLowerCase()).sort()).toEqual([
      'accept',
      'accept-encoding',
      'connection',
      'host',
      'user-agent',
    ])
    expect(head).toContain('gateway-ai')
    expect(head).toStartWith(`GET /page-${hosts} HTTP/1.1\r\n`)
  })
})

/** Writes `unit` until the peer disconnects. */
function flood(socket: Socket, head: string, unit: string): void {
  const piece = unit.repeat(60_000 / unit.length)
  socket.write(head)
  const timer = setInterval(() => socket.write(piece), 1)
  socket.on('close', () => clearInterval(timer))
}

describe('page fetcher on invalid pages', () => {
  const cases: Record<string, readonly [code: string, behave: Parameters<typeof startRig>[0]['page']]> = {
    'an error': ['unreachable', socket => socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n')],
    'nothing but a hang-up': ['unreachable', socket => socket.end()],
    'a reset': ['unreachable', socket => socket.resetAndDestroy()],
    'no HTTP at all': ['unreachable', socket => socket.end('220 mail.example.com ESMTP\r\n')],
    'hints without end': [
      'unreachable',
      socket => {
        const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(500)
        const timer = setInterval(() => socket.write(hints), 1)
        socket.on('close', () => clearInterval(timer))
      },
    ],
    'headers without end': ['unreachable', socket => flood(socket, 'HTTP/1.1 200 OK\r\n', 'x-a: aaaaaaaaaaaaaaaa\r\n')],
    'a chunk’s extension without end': [
      'unreachable',
      socket =>
        flood(socket, 'HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n1;', 'a'),
    ],
    'trailers without end': [
      'unreachable',
      socket =>
        flood(
          socket,
          'HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n',
          'x-a: aaaaaaaaaaaaaaaa\r\n',
        ),
    ],
    'a deflate bomb': [
      'unreadable',
      socket => socket.end(page(deflateSync(Buffer.alloc(64 << 20)), 'text/html', 'content-encoding: deflate\r\n')),
    ],
    'a bomb in a bomb': [
      'unreadable',
      socket =>
        socket.end(page(gzipSync(gzipSync(Buffer.alloc(64 << 20))), 'text/html', 'content-encoding: gzip, gzip\r\n')),
    ],
    'zstd, which was not asked for': [
      'unreadable',
      socket => socket.end(page(zstdCompressSync(Buffer.from('<p>x')), 'text/html', 'content-encoding: zstd\r\n')),
    ],
    'a body that is cut off': [
      'unreachable',
      socket => {
        socket.end('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 5000\r\n\r\n<p>half')
      },
    ],
    'a body that announces too much': [
      'unreadable',
      socket => socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2000000\r\n\r\n'),
    ],
    'an endless body': [
      'unreadable',
      socket => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n')
        const timer = setInterval(() => socket.write(Buffer.alloc(1 << 16, 'x')), 1)
        socket.on('close', () => clearInterval(timer))
      },
    ],
    'a gzip bomb': [
      'unreadable',
      socket => socket.end(page(gzipSync(Buffer.alloc(64 << 20)), 'text/html', 'content-encoding: gzip\r\n')),
    ],
    'a brotli bomb': [
      'unreadable',
      socket => socket.end(page(brotliCompressSync(Buffer.alloc(4 << 20)), 'text/html', 'content-encoding: br\r\n')),
    ],
    'gzip that is none': ['unreadable', socket => socket.end(page('plain', 'text/html', 'content-encoding: gzip\r\n'))],
    'a coding nobody knows': [
      'unreadable',
      socket => socket.end(page('x', 'text/html', 'content-encoding: zstd, gzip\r\n')),
    ],
    'a picture': ['unreadable', socket => socket.end(page('x', 'image/png'))],
    'a program': ['unreadable', socket => socket.end(page('x', 'application/octet-stream'))],
    'a picture called a page': [
      'unreadable',
      socket => socket.end(page(Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0, 0, 13]), 'text/html')),
    ],
    'a page called a PDF': ['unreadable', socket => socket.end(page('<p>no PDF', 'application/pdf'))],
    'a PDF that is broken': ['unreadable', socket => socket.end(page('%PDF-1.7\ngarbage', 'application/pdf'))],
    'a PDF of which nothing can be read': ['unreadable', socket => socket.end(page(getPdf(''), 'application/pdf'))],
    'an empty page': ['unreadable', socket => socket.end(page('<script>render()</script>'))],
    'a page without end of nesting': ['unreadable', socket => socket.end(page(`${'<div>'.repeat(150_000)}x`))],
    'a redirect to itself': ['unreachable', (socket, request) => socket.end(redirectTo(getPath(request)))],
    'a redirect to nowhere': ['unreachable', socket => socket.end('HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n')],
    'a redirect to a file': ['refused', socket => socket.end(redirectTo('file:///etc/passwd'))],
  }
  for (const [name, [code, behave]] of Object.entries(cases))
    test(`${name}: omits the page as ${code}`, async () => {
      expect(await served(behave)).toMatchObject({ code })
    })

  test('reads pages and PDFs with wrong content types', async () => {
    expect(await servedBytes('<!doctype html><p>Really <b>a page</b>', 'text/plain')).toMatchObject({
      text: 'Really a page',
    })
    expect(await servedBytes(minimalPdf, 'text/html')).toMatchObject({ text: 'The tide table of May' })
  })

  test('stops at its deadline on a silent or slow page and closes its socket [S7]', async () => {
    expect(usualDeadlines.pageMs).toBeLessThan(6_000)
    const closed = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
    const late = async (deadlines: Partial<typeof patient>, behave: Parameters<typeof startRig>[0]['page']) => {
      const hasty = await startRig({ page: behave, deadlines: { ...patient, ...deadlines } })
      return hasty.read('http://late.example.com/').finally(hasty.stop)
    }
    const silent = late({ pageFirstByteMs: 100 }, socket => socket.on('close', closed[0].resolve))
    const dripping = late({ pageMs: 500 }, socket => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n')
      const timer = setInterval(() => socket.write('<p>'), 20)
      socket.on('close', () => {
        clearInterval(timer)
        closed[1].resolve()
      })
    })
    expect(await Promise.all([silent, dripping])).toMatchObject([{ code: 'too_slow' }, { code: 'too_slow' }])
    await Promise.all(closed.map(({ promise }) => promise))
  })

  test('keeps the event loop free while a hostile page is parsed', async () => {
    let longest = 0
    let last = cpuMs()
    const timer = setInterval(() => {
      // Time of this thread: neighbors on the machine delay a tick too.
      const now = cpuMs()
      longest = Math.max(longest, now - last)
      last = now
    }, 1)
    // Every closing tag searches its opening among all open ones: five hundred of them.
    const hostile = `<p>${'<i>'.repeat(500)}${'</x>'.repeat(200_000)}`
    const read = await Promise.all([servedBytes(hostile), servedBytes(`${'<p>word '.repeat(120_000)}`)])
    clearInterval(timer)
    process.stdout.write(`longest stall while two pages of 1 MB were read: ${longest.toFixed(0)} ms\n`)
    expect(read.map(item => 'code' in item || item.text.length > 0)).toEqual([true, true])
    // Far above the actual time, far below the time of parsing here.
    expect(longest).toBeLessThan(250)
  })

  test('leaves no work behind when many clients disconnect', async () => {
    let asked = 0
    behaviours['/half'] = socket => {
      asked++
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<p>half')
    }
    let rounds = 0
    const startAndLeave = async () => {
      const round = rounds++
      const abort = new AbortController()
      const analyses = Array.from({ length: 50 }, (_, index) =>
        rig.reader.read(`http://half${round}-${index}.example.com/half`, {
          accountId: `half${round}-${index}`,
          signal: abort.signal,
        }),
      )
      await eventually(() => asked > 0)
      asked = 0
      abort.abort()
      const ends = await Promise.allSettled(analyses)
      return ends.every(({ status }) => status === 'rejected')
    }
    expect(await startAndLeave()).toBe(true)
    // A place is free when its connection is closed, which takes slightly longer on a busy machine.
    await eventually(startAndLeave, 10_000)
    expect(await servedBytes('<p>Whole')).toMatchObject({ text: 'Whole' })
  })

  test('stops at once when the client disconnects and closes the connection', async () => {
    const abort = new AbortController()
    const { promise, resolve } = Promise.withResolvers<void>()
    behaviours['/left'] = socket => {
      socket.on('close', resolve)
      abort.abort()
    }
    const scan = rig.reader.read('http://left.example.com/left', { accountId: 'acc', signal: abort.signal })
    expect(scan).rejects.toThrow()
    await promise
  })
})

test('page fetcher: uses an address of the other family when one is unreachable', async () => {
  const dialled: string[] = []
  const both = await startRig({
    answer: () => ({ a: [publicAddresses[0]], aaaa: [publicAddresses[1]] }),
    page: socket => socket.end(page('<p>Here.')),
    clock: systemClock,
  })
  const { reader } = both
  expect(
    await reader.read('http://both.example.com/', { accountId: 'a', signal: new AbortController().signal }),
  ).toMatchObject({ text: 'Here.' })
  dialled.push(...both.dialled.map(({ address }) => address))
  expect(dialled).toEqual([publicAddresses[0]])
  both.stop()
})
