/**
 * Large bodies at a real gateway process: 12 concurrent ones of 31 MB from each of ten keys. Each request is answered, and small requests are served meanwhile.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { plans } from '../../src/core/limits/plans.ts'
import { type Database, migrate, openDatabase } from '../../src/database/database.ts'
import { newAccountOn, type TestAccount } from '../harness/account.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { type PrivatePostgres, startPostgres } from '../harness/postgres.ts'
import { dataFolder, type GatewayProcess, startProcess, stopProcesses } from '../harness/processes.ts'
import { rawText } from '../harness/raw.ts'

setDefaultTimeout(240_000)

const megabyte = 1_048_576
const [keys, each, piecesOfBody] = [10, 12, 31]

let postgres: PrivatePostgres | null = null
let database: Database | null = null
let upstream: ReturnType<typeof Bun.serve> | null = null

beforeAll(async () => {
  postgres = await startPostgres()
  if (postgres === null) return
  database = openDatabase(postgres.url, patientStore)
  await migrate(database)
  upstream = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    maxRequestBodySize: 512 * megabyte,
    async fetch({ body }) {
      let bytes = 0
      for await (const piece of body ?? []) bytes += piece.byteLength
      return Response.json({
        id: 'x',
        object: 'chat.completion',
        created: 1,
        model: 'gpt-5.5',
        choices: [{ index: 0, message: { role: 'assistant', content: String(bytes) }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
      })
    },
  })
}, 240_000)
afterAll(async () => {
  await stopProcesses()
  await upstream?.stop(true)
  await database?.close()
  await postgres?.stop()
}, 240_000)

/** Returns the peak memory of the process in bytes: usually 190 to 340 MB, of which 140 MB are used at rest. */
function peakBytes({ pid }: GatewayProcess): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

const piece = Buffer.alloc(megabyte, 'A')
/** A chat with an image. One character of two bytes makes the gateway's text of it twice as large. */
const start = (word: string) =>
  `{"model":"openai/gpt-5.5","fallback":false,"max_tokens":20,"messages":[{"role":"user","content":[{"type":"text","text":"${word}"},{"type":"image_url","image_url":{"url":"data:image/png;base64,`
const end = '"}}]}]}'

type Framing = 'length' | 'chunked'

/** Sends the body as fast as possible and returns the status of the response; `cut` = the connection broke first. */
function sendLarge({ url }: GatewayProcess, { headers }: TestAccount, word: string, framing: Framing): Promise<string> {
  const length = Buffer.byteLength(start(word)) + piecesOfBody * megabyte + end.length
  const framed = framing === 'length' ? { 'content-length': String(length) } : { 'transfer-encoding': 'chunked' }
  return new Promise(resolve => {
    let received = ''
    let sent = 0
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    const write = (bytes: string | Buffer): boolean => {
      if (framing === 'length') return socket.write(bytes)
      socket.write(`${Buffer.byteLength(bytes).toString(16)}\r\n`)
      socket.write(bytes)
      return socket.write('\r\n')
    }
    const pump = () => {
      while (sent < piecesOfBody) {
        sent++
        if (!write(piece)) return void socket.once('drain', pump)
      }
      if (sent++ > piecesOfBody) return
      write(end)
      if (framing === 'chunked') socket.write('0\r\n\r\n')
    }
    socket.on('connect', () => {
      socket.write(
        rawText('POST /v1/chat/completions', {
          host: 'localhost',
          'content-type': 'application/json',
          ...headers,
          ...framed,
        }),
      )
      write(start(word))
      pump()
    })
    socket.on('data', bytes => {
      received += bytes.toString('latin1')
      if (/\r\n\r\n[\s\S]+\}$/.test(received)) socket.destroy()
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(/^HTTP\/1\.1 (\d{3})/.exec(received)?.[1] ?? 'cut'))
  })
}

const attacks = [
  ['with a length', 'look', 'length'],
  ['with a length, and a text of two bytes per character', '中', 'length'],
  ['without a length', 'look', 'chunked'],
] as const

for (const [name, word, framing] of attacks)
  testNeeding(
    ['postgres', 'linux'],
    `request bodies: leave room for small ones beside ten keys of 12 bodies of 31 MB ${name}`,
    () => leavesRoom(name, word, framing),
  )

async function leavesRoom(name: string, word: string, framing: Framing): Promise<void> {
  const on = needed(database)
  const gateway = await startProcess(dataFolder(), {
    DATABASE_URL: needed(postgres).url,
    JWT_SECRET: 'a secret of the tests, long enough to be taken',
    OPENAI_API_KEY: 'x',
    OPENAI_BASE_URL: `http://127.0.0.1:${needed(upstream).port}/v1`,
  })
  const attackers = await Promise.all(Array.from({ length: keys }, () => newAccountOn(on, plans.evaluation)))
  const [customer, patient] = [
    await newAccountOn(on),
    await newAccountOn(on, { dailyTokens: 1e12, dailyCostMicrocents: 1e15 }),
  ]
  const statuses = new Map<string, number>()
  const small = async () => {
    const answer = await gateway.chat(customer.key, 'Hi', { model: 'openai/gpt-5.5', max_output_tokens: 5 })
    return `${answer.status} ${answer.status === 200 ? '' : await answer.text()}`
  }
  // Sent before, so that the key is known: this tests whether a small body finds room.
  expect(await small()).toBe('200 ')
  const attack = Promise.all(
    attackers.flatMap(account =>
      Array.from({ length: each }, async () => {
        const status = await sendLarge(gateway, account, word, framing)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }),
    ),
  )
  const meanwhile = await small()
  await attack
  const peak = peakBytes(gateway)
  process.stdout.write(
    `${keys * each} bodies of ${piecesOfBody} MB ${name}: peak RSS ${(peak / megabyte).toFixed(0)} MB, answers ${JSON.stringify([...statuses].sort())}\n`,
  )
  expect(meanwhile).toBe('200 ')
  for (const status of statuses.keys()) expect(['200', '429', '503']).toContain(status)
  // The reserved bytes are free again: the same body is served.
  let last = ''
  await eventually(async () => {
    last = await sendLarge(gateway, patient, word, framing)
    return last !== '503'
  }, 240_000)
  expect(last).toBe('200')
  gateway.kill('SIGKILL')
}
