/**
 * A response that is truncated after its first content: reported once, never completed, and never continued by another
 * model.
 */
import { describe, expect, test } from 'bun:test'
import { type Framing, piece } from '../../src/simulator/reply.ts'
import type { UpstreamAnswer } from '../harness/upstream.ts'
import { isLongVariant } from '../harness/variants.ts'
import { rig } from './shared-rig.ts'
import {
  canary,
  errorFrame,
  eventStream,
  type Format,
  formats,
  getFrames,
  models,
  requestsTo,
  reservationsTaken,
  streamedCode,
  streamedModes,
  streamText,
} from './support.ts'

const broken: { readonly requestId: string; readonly code: string; readonly provider: Format }[] = []

/** The beginning of a stream, and when the gateway or the clients have it: a reset discards what was not read. */
export type Begun = { readonly first: string; readonly delivered: Promise<void> }

/** Sends the beginning, and then `rest`. */
function after(
  { first, delivered }: Begun,
  rest: Partial<UpstreamAnswer> & { readonly frame?: string },
): UpstreamAnswer {
  const { frame, ...how } = rest
  const pieces = async function* () {
    if (first !== '') yield piece(first)
    await delivered
    if (frame !== undefined) yield piece(frame)
  }
  const cut = how.end === undefined ? {} : { cutAt: Buffer.byteLength(first) + (frame === undefined ? 0 : 5) }
  const answer = { headers: eventStream, framing: 'chunked', pieces: pieces(), ...how, ...cut } as const
  if (how.framing !== 'length') return answer
  // The upstream would wait for all pieces to measure them.
  const length = Buffer.byteLength(first + (frame ?? ''))
  return { ...answer, headers: { ...eventStream, 'content-length': String(length) }, framing: 'close' }
}

const unfinished = (format: Format) => getFrames(format, ['and more']).content.join('')

type StreamFault = readonly [
  name: string,
  code: 'upstream_failed' | 'upstream_timeout',
  answer: (format: Format, begun: Begun) => UpstreamAnswer,
]

/** Ways in which a stream can fail anywhere. */
export const streamFaults: readonly StreamFault[] = [
  ['silence', 'upstream_timeout', (_, begun) => after(begun, { end: 'hang' })],
  [
    'silence inside a frame',
    'upstream_timeout',
    (format, begun) => after(begun, { frame: unfinished(format), end: 'hang' }),
  ],
  ...(['chunked', 'close', 'length'] as const).flatMap(framing =>
    (['fin', 'rst'] as const).map(
      (end): StreamFault => [
        `${end.toUpperCase()} inside a frame, ${framing}`,
        'upstream_failed',
        (format, begun) => after(begun, { frame: unfinished(format), framing, end }),
      ],
    ),
  ),
  ['FIN between frames', 'upstream_failed', (_, begun) => after(begun, { frame: ': x\n\n', end: 'fin' })],
  ['RST between frames', 'upstream_failed', (_, begun) => after(begun, { frame: ': x\n\n', end: 'rst' })],
  ['an error frame', 'upstream_failed', (format, begun) => after(begun, { frame: errorFrame(format) })],
  [
    'an error frame, then RST',
    'upstream_failed',
    (format, begun) => after(begun, { frame: `${errorFrame(format)}data: {`, end: 'rst' }),
  ],
  ['a malformed frame', 'upstream_failed', (_, begun) => after(begun, { frame: `data: {"choices":[{"${canary}\n\n` })],
  ['a frame that is text', 'upstream_failed', (_, begun) => after(begun, { frame: `data: ${canary}\n\n` })],
  [
    'a frame without its end',
    'upstream_failed',
    (format, begun) => after(begun, { frame: unfinished(format).slice(0, 30) }),
  ],
  ['a page of HTML', 'upstream_failed', (_, begun) => after(begun, { frame: `<html>${canary}</html>\n\n` })],
  ['an end without the terminal event', 'upstream_failed', (_, begun) => after(begun, {})],
  ['an end without the terminal event, close', 'upstream_failed', (_, begun) => after(begun, { framing: 'close' })],
  ['comments, then the end', 'upstream_failed', (_, begun) => after(begun, { frame: ': wait\n\n: wait\n\n' })],
  [
    'a frame that is too long',
    'upstream_failed',
    (_, begun) => after(begun, { frame: `data: ${'x'.repeat(2_000_000)}\n\n` }),
  ],
]

describe.each([...formats])('truncated stream of %s', failing => {
  test.each([...streamFaults])(
    '%s: sends one error event, no end and no second response',
    async (_name, code, answer) => {
      rig.waitBriefly(code === 'upstream_timeout')
      const { promise: delivered, resolve } = Promise.withResolvers<void>()
      const hearing = new Set<string>()
      const { opening, content } = getFrames(failing, ['The first words. '])
      const first = [...opening, ...content].join('')
      rig.play(failing, () => answer(failing, { first, delivered }))
      const others = () => formats.filter(format => format !== failing).map(format => requestsTo(rig, format))
      const before = others()
      const askIn = async (mode: (typeof streamedModes)[number]) => {
        const heard = () => {
          hearing.add(mode)
          if (hearing.size === streamedModes.length) resolve()
        }
        const reply = await rig.send(mode, { model: models[failing], heard })
        expect([reply.httpStatus, reply.errors.map(error => error.code), reply.endings]).toEqual([
          200,
          [streamedCode(mode, code)],
          0,
        ])
        expect([reply.text, reply.finishReason]).toEqual(['The first words. ', null])
        expect(reply.raw).not.toContain(canary)
        broken.push({ requestId: reply.requestId, code, provider: failing })
      }
      await Promise.all(streamedModes.map(askIn))
      expect(others()).toEqual(before)
    },
  )
})

test('truncated stream: leaves a usage record with its received output, estimated, within the reservation', async () => {
  for (const { requestId, code, provider } of broken) {
    const row = await rig.row(requestId)
    expect(row).toMatchObject({ status: 'failed', error_code: code, finish_reason: null, provider, estimated: true })
    expect(row.output_tokens).toBeGreaterThan(0)
    // Of up to three attempts, which all count against the daily tokens.
    expect(row.output_tokens).toBeLessThan(30)
    expect(row.billed_microcents).toBeGreaterThan(0)
    expect(row.billed_microcents).toBeLessThanOrEqual(row.reserved_microcents)
  }
  expect(broken.length).toBe(formats.length * streamFaults.length * streamedModes.length)
})

/** At how many places each stream is cut, at equal distances. */
const positions = isLongVariant() ? 250 : 60

test('truncated stream: ends only after its terminal event', async () => {
  const framings: readonly Framing[] = ['chunked', 'close', 'length']
  const text = 'Grüße, 世界! A short answer. 🙂'
  const jobs: (() => Promise<void>)[] = []
  const tally = { cuts: 0, finished: 0, broken: 0, refused: 0 }
  const scripts = new Map<string, UpstreamAnswer>()
  for (const format of formats) {
    rig.play(format, request => scripts.get(/cut-\d+/.exec(request.body)?.[0] ?? '') ?? { status: 500 })
    const frames = getFrames(format, text.match(/.{1,6}/gu) ?? [])
    const bytes = Buffer.from(streamText(frames))
    // Before this byte the end of the response is unknown.
    const told = format === 'anthropic' ? frames.closing.join('').length : frames.closing.slice(0, 1).join('').length
    const endsAt = Buffer.byteLength(streamText({ ...frames, closing: [] })) + told - (format === 'google' ? 4 : 2)
    for (const framing of framings) {
      const step = Math.max(1, Math.floor(bytes.length / positions))
      const cuts = Array.from({ length: Math.ceil(bytes.length / step) }, (_, at) => at * step)
      for (const cutAt of [...cuts, bytes.length]) {
        const name = `cut-${tally.cuts++}`
        const end = tally.cuts % 2 === 0 ? 'fin' : 'rst'
        // A pause before the break, since a reset would discard sent bytes.
        const pieces = [
          piece(bytes.subarray(0, Math.max(0, cutAt - 1))),
          piece(bytes.subarray(Math.max(0, cutAt - 1)), 8),
        ]
        const cut: Partial<UpstreamAnswer> = cutAt < bytes.length ? { cutAt, end } : {}
        scripts.set(name, { headers: eventStream, framing, pieces, ...cut })
        const mode = streamedModes[tally.cuts % streamedModes.length] ?? 'native'
        jobs.push(async () => {
          const reply = await rig.send(mode, { model: models[format], fallback: false, prompt: name })
          const isFinished = reply.endings > 0 || reply.finishReason !== null
          if (cutAt < endsAt)
            expect([name, format, framing, cutAt, isFinished]).toEqual([name, format, framing, cutAt, false])
          if (cutAt >= bytes.length) expect(reply.text).toBe(text)
          expect(reply.errors.length).toBe(isFinished ? 0 : 1)
          expect(text).toStartWith(reply.text)
          if (isFinished) tally.finished += 1
          else if (reply.httpStatus === 200) tally.broken += 1
          else tally.refused += 1
        })
      }
    }
  }
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (let job = jobs.pop(); job !== undefined; job = jobs.pop()) await job()
    }),
  )
  expect(tally.cuts).toBeGreaterThan(8 * positions)
  process.stdout.write(
    `${tally.cuts} cuts: ${tally.refused} refused, ${tally.broken} told as broken off, ${tally.finished} whole\n`,
  )
}, 240_000)

test('truncated stream: releases all reservations and upstream calls', async () => {
  expect(reservationsTaken(rig)).toBe(0)
  for (const format of formats)
    await rig.upstreams[format].until(ledger => ledger.every(({ outcome }) => outcome !== 'open'))
})
