/** The gateway as a process: how it starts, refuses to start, drains, and comes back after a kill. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { statSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import {
  dataFolder,
  freshFolder,
  type GatewayProcess,
  ledgerOf,
  run,
  startProcess,
  stopProcesses,
} from '../harness/processes.ts'

// Every test is processes that start and end.
setDefaultTimeout(120_000)

const original = dataFolder()
let first: GatewayProcess
let key = ''

beforeAll(async () => {
  first = await startProcess(original)
  key = /API key +(gw_live_\w+)/.exec(first.output())?.[1] ?? ''
})

afterAll(stopProcesses)

describe('starting', () => {
  test('the first start prints, once, an account, its key and a curl line that works as printed', async () => {
    const banner = first.output()
    expect(statSync(original).mode & 0o777).toBe(0o700)
    expect(banner).toMatch(/e-mail +owner@gateway\.local\n +password +\w{20}\n +API key +gw_live_\w{62}\n/)
    expect(banner).toContain('simulated')
    const curl = banner.slice(banner.indexOf('curl'), banner.indexOf("'\n\n") + 1)
    expect(curl).toContain(`${first.url}/v1/chat/completions`)
    if (Bun.which('curl') === null) {
      process.stdout.write('the curl line of the banner did not run: there is no curl here\n')
      return
    }
    const child = Bun.spawn(['sh', '-c', curl], { stdout: 'pipe', stderr: 'pipe' })
    const [answer, complaints, code] = [await child.stdout.json(), await child.stderr.text(), await child.exited]
    expect({ code, complaints: code === 0 ? '' : complaints }).toEqual({ code: 0, complaints: '' })
    expect(answer.choices[0].message.content).toContain('simulated')
  })

  test('its log begins with a line for machines and holds no secret', () => {
    const lines = first
      .output()
      .split('\n')
      .filter(line => line.startsWith('{'))
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'info', event: 'ready', host: '127.0.0.1' })
    expect(lines.join('\n')).not.toContain('gw_live_')
  })

  test('a second gateway on the same folder refuses to start and names the process that has it', async () => {
    const { code, stdout, stderr } = await run('main.ts', [], { PORT: '0', GATEWAY_DATA_DIR: original })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toBe(
      `gateway-ai cannot start: The data folder ${original} is in use by process ${first.pid}. Stop it, or set GATEWAY_DATA_DIR to another folder.\n`,
    )
  })

  test('a port in use is said in one line, the folder is free again, and the first key is not lost', async () => {
    const folder = await freshFolder()
    const port = new URL(first.url).port
    const { code, stdout, stderr } = await run('main.ts', [], { PORT: port, GATEWAY_DATA_DIR: folder })
    expect(code).toBe(1)
    expect(stderr).toBe(
      `gateway-ai cannot start: 127.0.0.1:${port} is in use. Stop what listens there, or set PORT to another.\n`,
    )
    const saved = /API key +(gw_live_\w+)/.exec(stdout)?.[1] ?? ''
    const again = await startProcess(folder)
    expect((await again.chat(saved, 'hello')).status).toBe(200)
    again.kill('SIGKILL')
  })

  test('a data folder that cannot be made is said in one line that names its variable', async () => {
    const folder = join(import.meta.path, 'data')
    const { code, stdout, stderr } = await run('main.ts', [], { PORT: '0', GATEWAY_DATA_DIR: folder })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toBe(
      `gateway-ai cannot start: GATEWAY_DATA_DIR: ${folder} cannot be used: a part of the path is no folder. Set it to a folder that this user may write.\n`,
    )
  })

  test('a wrong configuration is answered with every problem at once', async () => {
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

describe('stopping and coming back', () => {
  test('a later start keeps the data, and says how to make another key', async () => {
    first.kill('SIGTERM')
    expect(await first.exited).toBe(0)
    const second = await startProcess(original)
    // Promised are 10 s and 2 s to whoever runs nothing beside it, as the other tests do.
    process.stdout.write(`ready in ${first.startedInMs} ms the first time, in ${second.startedInMs} ms later\n`)
    expect(second.output()).toContain('run gateway keys create owner@gateway.local')
    expect(second.output()).not.toContain('gw_live_')
    expect((await second.chat(key, 'hello')).status).toBe(200)
    second.kill('SIGTERM')
    expect(await second.exited).toBe(0)
  })

  test('on SIGTERM readiness goes at once, new work is taken a little longer, a running stream ends whole, and its usage is in the ledger', async () => {
    const folder = dataFolder(original)
    const gateway = await startProcess(folder, { DRAIN_NOTICE_MS: '500' })
    const stream = await openStream(gateway, '[[sim:tokens=60, chunk=8, pace_ms=50]] tell me')
    gateway.kill('SIGTERM')
    await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 503, 300)
    expect((await gateway.chat(key, 'hello')).status).toBe(200)
    await until(
      () =>
        fetch(`${gateway.url}/readyz`).then(
          () => false,
          () => true,
        ),
      1_000,
    )
    expect(stream.isOver()).toBe(false)
    const done = await stream.lastEvent()
    expect(done).toMatchObject({ type: 'done', request_id: stream.id })
    const { usage } = done as { usage: { output_tokens: number } }
    expect(await gateway.exited).toBe(0)
    expect(gateway.output()).toContain('"event":"stopped"')
    const row = (await ledgerOf(folder)).find(({ requestId }) => requestId === stream.id)
    expect(row).toMatchObject({ status: 'completed', outputTokens: usage.output_tokens })
  })

  test('while it still accepts, every answer asks for its connection to be closed; who heeds that is never cut', async () => {
    const gateway = await startProcess(dataFolder(original), { DRAIN_NOTICE_MS: '800' })
    const callers = Array.from({ length: 4 }, () => keepAsking(gateway))
    await Bun.sleep(300)
    gateway.kill('SIGTERM')
    const said = await Promise.all(callers)
    expect(said.map(({ last }) => last)).toEqual(said.map(() => 'connection: close'))
    const { head } = await exchange(gateway, null)
    expect(head).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*connection: close/i)
    process.stdout.write(
      `${said.reduce((sum, { answers }) => sum + answers, 0)} answers on 4 kept connections, none cut\n`,
    )
    expect(await gateway.exited).toBe(0)
  })

  test('a stream that outlasts the drain ends with an error event, never with done, and what arrived is in the ledger', async () => {
    const folder = dataFolder(original)
    const gateway = await startProcess(folder, { DRAIN_TIMEOUT_MS: '300' })
    const stream = await openStream(gateway, '[[sim:tokens=400, chunk=8, pace_ms=50]] tell me')
    gateway.kill('SIGTERM')
    expect(await stream.lastEvent()).toMatchObject({ type: 'error', error: { code: 'service_unavailable' } })
    expect(stream.text()).not.toContain('"type":"done"')
    expect(await gateway.exited).toBe(0)
    const row = (await ledgerOf(folder)).find(({ requestId }) => requestId === stream.id)
    expect(row).toMatchObject({ status: 'failed', errorCode: 'service_unavailable' })
    expect(row?.outputTokens).toBeGreaterThan(0)
  })

  test('a second SIGTERM does not wait for the streams', async () => {
    const gateway = await startProcess(dataFolder(original), { DRAIN_NOTICE_MS: '60000' })
    const stream = await openStream(gateway, '[[sim:tokens=400, chunk=8, pace_ms=50]] tell me')
    gateway.kill('SIGTERM')
    await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 503, 300)
    gateway.kill('SIGTERM')
    expect(await stream.lastEvent()).toMatchObject({ type: 'error', error: { code: 'service_unavailable' } })
    expect(await gateway.exited).toBe(0)
  })

  test('after kill -9 with streams open it starts again, and every finished request is in the ledger once', async () => {
    const folder = dataFolder(original)
    const gateway = await startProcess(folder)
    const open = [1, 2, 3].map(() => openStream(gateway, '[[sim:tokens=400, chunk=8, pace_ms=50]] tell me'))
    await Promise.all(open)
    const finished: string[] = []
    for (let count = 0; count < 8; count++) {
      const answer = await gateway.chat(key, 'hello')
      expect(await answer.json()).toMatchObject({ finish_reason: 'stop' })
      finished.push(answer.headers.get('x-request-id') ?? '')
    }
    gateway.kill('SIGKILL')
    await gateway.exited
    const again = await startProcess(folder)
    expect((await again.chat(key, 'hello')).status).toBe(200)
    const times = async () => {
      const rows = await ledgerOf(folder)
      return finished.map(id => rows.filter(({ requestId }) => requestId === id).length)
    }
    await until(async () => !(await times()).includes(0), 3_000)
    again.kill('SIGTERM')
    expect(await again.exited).toBe(0)
    expect(await times()).toEqual(finished.map(() => 1))
  })
})

/** A native stream of which the first content has come. */
async function openStream(gateway: GatewayProcess, prompt: string) {
  const response = await gateway.chat(key, prompt, { stream: true })
  expect(response.status).toBe(200)
  const decoder = new TextDecoder()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  let text = ''
  let over = false
  const reading = (async () => {
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
      await reading
      const lines = text.split('\n').filter(line => line.startsWith('data: '))
      return JSON.parse(lines.at(-1)?.slice(6) ?? 'null')
    },
  }
}

/** Asks over one kept connection, probes and a few chats, until an answer says that it will be closed, or it is. */
async function keepAsking(gateway: GatewayProcess) {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  try {
    for (let answers = 1; ; answers++) {
      const { head } = await exchange(gateway, socket, answers % 4 === 0 && answers < 24 ? 'chat' : 'probe')
      if (!head.startsWith('HTTP/1.1 200')) return { answers, last: head }
      if (/\r\nconnection: close/i.test(head)) return { answers, last: 'connection: close' }
      await Bun.sleep(Math.random() * 40)
    }
  } catch (cause) {
    return { answers: 0, last: `cut: ${cause}` }
  } finally {
    socket.destroy()
  }
}

/** One whole answer's head. Rejects where the connection ends before that. */
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

/** Rejects where `isSo` is not so within `withinMs`. */
async function until(isSo: () => Promise<boolean>, withinMs: number): Promise<void> {
  for (const deadline = performance.now() + withinMs; !(await isSo()); await Bun.sleep(10))
    if (performance.now() > deadline) throw new Error(`not so within ${withinMs} ms: ${isSo}`)
}
