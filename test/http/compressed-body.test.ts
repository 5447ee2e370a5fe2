import { describe, expect, test } from 'bun:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { bodyLimits, receiveBody } from '../../src/http/body.ts'

const text = JSON.stringify({ prompt: 'Grüße, 世界 👋'.repeat(500) })

function holding() {
  let bytes = 0
  return {
    bytes: () => bytes,
    scan: {
      hold: {
        assign() {},
        add(more: number) {
          bytes += more
        },
        release() {},
      },
      clock: { after: () => () => {} },
    },
  }
}

function sent(body: Uint8Array, encoding: string, limit: number = bodyLimits.chat) {
  const { scan, bytes } = holding()
  const headers = { 'content-encoding': encoding }
  const request = new Request('http://gateway/', { method: 'POST', headers, body: new Uint8Array(body) })
  return { read: async () => receiveBody(request, limit, scan)(), bytes }
}

describe.each([
  ['gzip', gzipSync],
  ['zstd', zstdCompressSync],
] as const)('%s', (encoding, compress) => {
  test('body: decodes it and reserves its decoded bytes', async () => {
    const { read, bytes } = sent(compress(text), encoding)
    expect(await read()).toBe(text)
    expect(bytes()).toBe(Buffer.byteLength(text))
  })

  test('body: answers 413 when a small body decodes to 200 MB, and reserves at most the limit', async () => {
    const { read, bytes } = sent(compress(Buffer.alloc(200 * 1_048_576, 32)), encoding)
    await expect(read()).rejects.toMatchObject({ code: 'body_too_large' })
    expect(bytes()).toBeLessThanOrEqual(bodyLimits.chatWithImages)
  })

  test('body: applies the limit of small endpoints to the decoded bytes', async () => {
    const { read } = sent(compress('x'.repeat(bodyLimits.other + 1)), encoding, bodyLimits.other)
    await expect(read()).rejects.toMatchObject({ code: 'body_too_large' })
  })

  test.each([
    ['cut', compress(text).subarray(0, -3)],
    ['with bytes behind its end', Buffer.concat([compress(text), Buffer.from('more')])],
    ['that is not compressed', Buffer.from(text)],
  ])('body: answers 400 when the body %s', async (_name, body) => {
    const { read } = sent(body, encoding)
    await expect(read()).rejects.toMatchObject({ code: 'invalid_request', param: 'content-encoding' })
  })
})

test.each(['br', 'deflate', 'gzip, gzip', 'compress'])(
  '`content-encoding: %s`: answers 400 with the supported encodings',
  async encoding => {
    const { read } = sent(Buffer.from(text), encoding)
    await expect(read()).rejects.toMatchObject({ code: 'invalid_request', param: 'content-encoding' })
  },
)

test.each(['', 'identity', 'GZIP ', 'x-gzip'])('`content-encoding: %s`: reads the body', async encoding => {
  const { read } = sent(
    encoding.includes('zip') || encoding.includes('ZIP') ? gzipSync(text) : Buffer.from(text),
    encoding,
  )
  expect(await read()).toBe(text)
})
