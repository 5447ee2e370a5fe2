/** The gateway as a process: how it starts, fails to start, drains, and returns after a kill. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, statSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { shellCommand } from '../../src/core/validation/errors.ts'
import { eventually } from '../harness/eventually.ts'
import { testNeeding } from '../harness/needs.ts'
import {
  dataFolder,
  freshFolder,
  type GatewayProcess,
  getLedger,
  run,
  startProcess,
  stopProcesses,
} from '../harness/processes.ts'

// Every test is processes that start and end.
setDefaultTimeout(240_000)

const original = await freshFolder()
/** Gateways that stop and return, one after another. */
const folder = await freshFolder()
let first: GatewayProcess
let key = ''

beforeAll(async () => {
  const [started, before] = await Promise.all([
    startProcess(original, { DRAIN_NOTICE_MS: '60000' }),
    startProcess(folder),
  ])
  first = started
  // Its first account is that of all later gateways on this folder.
  key = /API key +(gw_live_\w+)/.exec(before.output())?.[1] ?? ''
  before.kill('SIGTERM')
  await before.exited
})

afterAll(stopProcesses)

describe('startup', () => {
  testNeeding(
    'curl',
    'the first start prints, once, an account, its key and a curl line that works as printed',
    async () => {
      const banner = first.output()
      expect(statSync(original).mode & 0o777).toBe(0o700)
      expect(banner).toMatch(/email +owner@gateway\.local\n +password +\w{20}\n +API key +gw_live_\w{62}\n/)
      expect(banner).toContain('simulated')
      expect(banner).toContain(
        '600 requests per minute, 50 concurrent requests, 20,000,000 tokens and $20.00 per day\n' +
          `  Change:     page Settings of the dashboard, or ${shellCommand('accounts limits owner@gateway.local --rpm 600 --concurrent 50 --daily-tokens 20000000 --daily-cost-usd 20')}\n`,
      )
      const { headers } = await fetch(`${first.url}/v1/models`, {
        headers: { authorization: `Bearer ${/gw_live_\w{62}/.exec(banner)?.[0]}` },
      })
      const quota = ['requests', 'tokens'].map(name => headers.get(`x-ratelimit-limit-${name}`))
      expect(quota).toEqual(['600', '20000000'])
      const curl = banner.slice(banner.indexOf('curl'), banner.indexOf("'\n\n") + 1)
      expect(curl).toContain(`${first.url}/v1/chat/completions`)
      const child = Bun.spawn(['sh', '-c', curl], { stdout: 'pipe', stderr: 'pipe' })
      const [answer, complaints, code] = [await child.stdout.json(), await child.stderr.text(), await child.exited]
      expect({ code, complaints: code === 0 ? '' : complaints }).toEqual({ code: 0, complaints: '' })
      expect(answer.choices[0].message.content).toContain('simulated')
    },
  )

  test('begins its log with a line for machines, without secrets', () => {
    const lines = first
      .output()
      .split('\n')
      .filter(line => line.startsWith('{'))
    const events = lines.map(line => JSON.parse(line))
    expect(events[0]).toMatchObject({ level: 'info', event: 'starting' })
    expect(events[1]).toMatchObject({ event: 'port_bound', host: '127.0.0.1' })
    expect(events).toContainEqual(expect.objectContaining({ event: 'ready', port: events[1].port }))
    expect(lines.join('\n')).not.toContain('gw_live_')
  })

  test('rejects a second gateway on the same folder and names the process that holds it', async () => {
    const { code, stderr } = await run('main.ts', [], { PORT: '0', GATEWAY_DATA_DIR: original })
    expect(code).toBe(1)
    expect(stderr).toBe(
      `gateway-ai cannot start: The data folder ${original} is in use by process ${first.pid}. Stop it, or set GATEWAY_DATA_DIR to another folder.\n`,
    )
  })

  test('reports a port in use in one line before it opens the folder', async () => {
    const port = new URL(first.url).port
    const unopened = dataFolder()
    const { code, stderr } = await run('main.ts', [], { PORT: port, GATEWAY_DATA_DIR: unopened })
    expect({ code, isOpened: existsSync(unopened) }).toEqual({ code: 1, isOpened: false })
    expect(stderr).toBe(
      `gateway-ai cannot start: 127.0.0.1:${port} is in use. Stop what listens there, or set PORT to another.\n`,
    )
  })

  test('prints help for --help, and rejects another argument', async () => {
    expect(await run('main.ts', ['--help'], {})).toMatchObject({ code: 0, stderr: '' })
    expect((await run('main.ts', ['--help'], {})).stdout).toStartWith(shellCommand('<command>;'))
    expect(await run('main.ts', ['now'], {})).toMatchObject({ code: 2, stdout: '' })
  })

  test('reports a data folder that cannot be created in one line with its variable', async () => {
    const folder = join(import.meta.path, 'data')
    const { code, stderr } = await run('main.ts', [], { PORT: '0', GATEWAY_DATA_DIR: folder })
    expect(code).toBe(1)
    expect(stderr).toBe(
      `gateway-ai cannot start: GATEWAY_DATA_DIR: ${folder} cannot be used: a part of the path is not a folder. Set it to a folder that this user may write.\n`,
    )
  })

  test('reports all problems of a wrong configuration together', async () => {
    const { code, stdout, stderr } = await run('main.ts', [], {
      PORT: '70000',
      LOG_LEVEL: 'loud',
      DATABASE_URL: 'mysql://localhost/x',
      OPENAI_BASE_URL: 'http://example.com/v1',
      DRAIN_TIMEOUT_MS: 'soon',
    })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr.split('\n').map(line => line.split(':')[0])).toEqual([
      'gateway-ai cannot start',
      '  - DATABASE_URL',
      '  - OPENAI_BASE_URL',
      '  - PORT',
      '  - DRAIN_TIMEOUT_MS',
      '  - LOG_LEVEL',
      '',
    ])
  })
})

describe('stop and restart', () => {
  test('ends at a second SIGTERM without waiting for streams', async () => {
    const firstKey = /API key +(gw_live_\w+)/.exec(first.output())?.[1] ?? ''
    const stream = await openStream(first, '[[sim:tokens=400, chunk=8, pace_ms=50]] tell me', firstKey)
    first.kill('SIGTERM')
    await eventually(async () => (await fetch(`${first.url}/readyz`)).status === 503, 20_000)
    first.kill('SIGTERM')
    expect(await stream.lastEvent()).toMatchObject({ type: 'error', error: { code: 'service_unavailable' } })
    expect(await first.exited).toBe(0)
  })

  test('keeps data and explains further keys; after SIGTERM readiness ends first, kept connections are never cut, and a stream ends complete', async () => {
    const gateway = await startProcess(folder, { DRAIN_NOTICE_MS: '2000' })
    // The limits of 10 s and 2 s apply to a machine without other load; the other tests run beside this one.
    process.stdout.write(`ready in ${first.startedInMs} ms the first time, in ${gateway.startedInMs} ms later\n`)
    expect(gateway.output()).toContain('run gateway keys create owner@gateway.local')
    expect(gateway.output()).not.toContain('gw_live_')
    const stream = await openStream(gateway, '[[sim:tokens=300, chunk=8, pace_ms=50]] tell me')
    const answered = [0, 0, 0, 0]
    const callers = answered.map((_, index) => keepAsking(gateway, count => (answered[index] = count)))
    await eventually(() => answered.every(count => count > 2))
    gateway.kill('SIGTERM')
    await eventually(async () => (await fetch(`${gateway.url}/readyz`)).status === 503, 20_000)
    expect((await gateway.chat(key, 'hello')).status).toBe(200)
    const { head } = await exchange(gateway, null)
    expect(head).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*connection: close/i)
    const said = await Promise.all(callers)
    expect(said.map(({ last }) => last)).toEqual(said.map(() => 'connection: close'))
    await eventually(
      () =>
        fetch(`${gateway.url}/readyz`).then(
          () => false,
          () => true,
        ),
      240_000,
    )
    expect(stream.isOver()).toBe(false)
    const done = await stream.lastEvent()
    expect(done).toMatchObject({ type: 'done', request_id: stream.id })
    const { usage } = done as { usage: { output_tokens: number } }
    finished.set(stream.id, usage.output_tokens)
    expect(await gateway.exited).toBe(0)
    expect(gateway.output()).toContain('"event":"stopped"')
  })

  test('has every finished request in the ledger once after kill -9; a stream over the drain ends with an error event', async () => {
    const gateway = await startProcess(folder)
    const open = [1, 2, 3].map(() => openStream(gateway, '[[sim:tokens=400, chunk=8, pace_ms=50]] tell me'))
    await Promise.all(open)
    for (let count = 0; count < 8; count++) {
      const answer = await gateway.chat(key, 'hello')
      const body = (await answer.json()) as { finish_reason: string; usage: { output_tokens: number } }
      expect(body.finish_reason).toBe('stop')
      finished.set(answer.headers.get('x-request-id') ?? '', body.usage.output_tokens)
    }
    gateway.kill('SIGKILL')
    await gateway.exited
    const again = await startProcess(folder, { DRAIN_TIMEOUT_MS: '300' })
    expect((await again.chat(key, 'hello')).status).toBe(200)
    const stream = await openStream(again, '[[sim:tokens=400, chunk=8, pace_ms=50]] tell me')
    again.kill('SIGTERM')
    expect(await stream.lastEvent()).toMatchObject({ type: 'error', error: { code: 'service_unavailable' } })
    expect(stream.text()).not.toContain('"type":"done"')
    expect(await again.exited).toBe(0)
    const rows = await getLedger(folder)
    const row = rows.find(({ requestId }) => requestId === stream.id)
    expect(row).toMatchObject({ status: 'failed', errorCode: 'service_unavailable' })
    expect(row?.outputTokens).toBeGreaterThan(0)
    for (const [id, outputTokens] of finished)
      expect(rows.filter(({ requestId }) => requestId === id)).toMatchObject([{ status: 'completed', outputTokens }])
  })
})

/** Output tokens of each complete request. */
const finished = new Map<string, number>()

/** A native stream after its first content. */
async function openStream(gateway: GatewayProcess, prompt: string, ownKey = key) {
  const response = await gateway.chat(ownKey, prompt, { stream: true })
  expect(response.status).toBe(200)
  const decoder = new TextDecoder()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  let text = ''
  let over = false
  const scan = (async () => {
    for await (const piece of response.body ?? []) {
      text += decoder.decode(piece, { stream: true })
      begin()
    }
  })()
    .catch(() => {})
    .finally(() => {
      over = true
      begin()
    })
  await begun
  return {
    id: response.headers.get('x-request-id') ?? '',
    text: () => text,
    isOver: () => over,
    async lastEvent(): Promise<unknown> {
      await scan
      const lines = text.split('\n').filter(line => line.startsWith('data: '))
      return JSON.parse(lines.at(-1)?.slice(6) ?? 'null')
    },
  }
}

/** Sends probes and a few chats over one kept connection until a response announces its end, or it is closed. */
async function keepAsking(gateway: GatewayProcess, onAnswer: (count: number) => void) {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  try {
    for (let answers = 1; ; answers++) {
      const { head } = await exchange(gateway, socket, answers % 4 === 0 && answers < 24 ? 'chat' : 'probe')
      if (!head.startsWith('HTTP/1.1 200')) return { answers, last: head }
      if (/\r\nconnection: close/i.test(head)) return { answers, last: 'connection: close' }
      onAnswer(answers)
      await Bun.sleep(Math.random() * 40)
    }
  } catch (cause) {
    return { answers: 0, last: `cut: ${cause}` }
  } finally {
    socket.destroy()
  }
}

/** Returns the head of one complete response. Rejects if the connection ends before that. */
function exchange(gateway: GatewayProcess, kept: Socket | null, kind: 'chat' | 'probe' = 'probe') {
  const socket = kept ?? connect(Number(new URL(gateway.url).port), '127.0.0.1')
  const body = JSON.stringify({ model: 'gateway-ai', prompt: 'hello', max_output_tokens: 16 })
  const json = `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
  socket.write(
    kind === 'probe'
      ? 'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
      : `POST /api/v1/chat HTTP/1.1\r\nHost: 127.0.0.1\r\n${json}\r\n\r\n${body}`,
  )
  return new Promise<{ head: string }>((done, fail) => {
    let text = ''
    const cut = () => fail(new Error(`the connection ended after "${text.slice(0, 80)}"`))
    const read = (piece: Buffer) => {
      text += piece
      const [head = '', rest] = text.split('\r\n\r\n')
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1])
      if (rest === undefined || Buffer.byteLength(rest) < length) return
      socket.off('data', read).off('error', cut).off('close', cut)
      done({ head })
    }
    socket.on('data', read).on('error', cut).on('close', cut)
  })
}
