/** Cut texts that another attempt continues: the text of both parts, their bill, and what is not continued. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { firstText, type ResponseSummary } from '../../src/core/chat/chat-events.ts'
import { webPrices } from '../../src/core/chat/web-sources.ts'
import type { Limits } from '../../src/core/limits/plans.ts'
import { fullName } from '../../src/core/models/models.ts'
import { ratesAt } from '../../src/core/models/pricing.ts'
import { getCost, getHighestCost } from '../../src/core/usage/money.ts'
import { servingModel } from '../../src/core/usage/usage-record.ts'
import { readNative } from '../../src/dialects/native/request.ts'
import { catalog } from '../../src/models/catalog.ts'
import { type AnswerDeps, answer } from '../../src/request/answer.ts'
import { type Cut, repeated, Seam } from '../../src/request/continuation.ts'
import type { Moderation } from '../../src/text/moderation/layers/moderation.ts'
import { estimateInputTokens, estimateTokens } from '../../src/text/tokens/tokens.ts'
import { errorFrame, type Format, formats, getFrames, models as named } from '../faults/support.ts'
import { type ChatEvent, EventLog, tell } from '../harness/events.ts'
import { isLongVariant } from '../harness/variants.ts'
import { moderationFor } from '../text/moderation/layers/support.ts'
import { getProvider } from './support.ts'
import { caller, createWorld, plenty, startedAt } from './world.ts'

/** How a stream is cut: in good order, by its connection, or by an error of the provider. */
const cutsBy = ['end', 'reset', 'error'] as const
const errorOutcomes = { openai: 'generation_failed', anthropic: 'unavailable', google: 'unavailable' } as const

/** What the upstream says to a call; `cut`: its stream breaks after that. */
type Part = {
  readonly say: (before: string, words: string) => string
  readonly cut: (typeof cutsBy)[number] | null
  readonly finish?: 'length'
  /** Frames before the text. */
  readonly first?: readonly string[]
  /** Token counts that the provider reports after the text, also of one that is cut; absent = the usual ones at its end. */
  readonly counts?: Counts
}

type Counts = { readonly input: number; readonly cached: number; readonly output: number }

/** A report of counts so far, in the form of the provider. */
function usageFrame(format: Format, { input, cached, output }: Counts): string {
  switch (format) {
    case 'openai': {
      const usage = {
        prompt_tokens: input,
        completion_tokens: output,
        prompt_tokens_details: { cached_tokens: cached },
      }
      return `data: ${JSON.stringify({ id: 'c', choices: [], usage })}\n\n`
    }
    case 'anthropic': {
      const usage = { input_tokens: input - cached, cache_read_input_tokens: cached, output_tokens: output }
      return `event: message_delta\ndata: ${JSON.stringify({ type: 'message_delta', delta: {}, usage })}\n\n`
    }
    case 'google': {
      const usageMetadata = { promptTokenCount: input, cachedContentTokenCount: cached, candidatesTokenCount: output }
      return `data: ${JSON.stringify({ candidates: [], usageMetadata })}\r\n\r\n`
    }
  }
}

/** Works out a bill from the published prices: each part is rounded up once. */
function billed(name: string, { input, cached, output }: Counts): number {
  const model = catalog.find(item => fullName(item) === name)
  if (model === undefined) throw new Error(`no model ${name}`)
  const { input: fresh, output: written, cachedInput } = model.pricing
  const perToken = [fresh, cachedInput ?? fresh, written].map(usd => BigInt(Math.round(usd * 1e8)))
  const total = [input - cached, cached, output].reduce(
    (sum, count, at) => sum + BigInt(count) * (perToken[at] ?? 0n),
    0n,
  )
  return Number((total + 999_999n) / 1_000_000n)
}

const noUsage = { cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
const usage = { input: 1_000, output: 50 }

/** The text and the last words that a request asks to continue; null = it continues nothing. */
function readContinued(body: string): { readonly before: string; readonly words: string } | null {
  const { messages, contents } = JSON.parse(body)
  const turns: { role: string; content?: unknown; parts?: { text: string }[] }[] = messages ?? contents
  const say = ({ content, parts }: (typeof turns)[number]) => {
    const all = parts ?? content
    return typeof all === 'string' ? all : (all as { text: string }[]).map(({ text }) => text).join('')
  }
  const last = turns.at(-1)
  const partial = turns.at(-2)
  if (last === undefined || partial === undefined || !['assistant', 'model'].includes(partial.role)) return null
  return { before: say(partial), words: /"(.*)"/s.exec(say(last))?.[1] ?? '' }
}

type Setting = {
  /** What each call gets; none is left, or `fails`: status 500. */
  readonly parts: readonly (Part | 'fails')[]
  readonly fields?: Record<string, unknown>
  readonly pieces?: number
  /** The provider of an own key of the account. */
  readonly own?: Format
  readonly limits?: Partial<Limits>
  readonly moderation?: Moderation
  readonly endpoints?: AnswerDeps['endpoints']
  /** The gateway's own web search. */
  readonly search?: AnswerDeps['web']['search']
}

async function askFor({ parts, fields = {}, pieces = 7, own, limits, search, ...given }: Setting) {
  const calls: { readonly format: Format; readonly body: string; readonly isOwn: boolean }[] = []
  const play = async (format: Format, init: RequestInit) => {
    const body = String(init.body)
    const part = parts[calls.length]
    const headers = JSON.stringify([...new Headers(init.headers)])
    calls.push({ format, body, isOwn: headers.includes('own-key') })
    if (part === undefined || part === 'fails') return Response.json({}, { status: 500 })
    const continued = readContinued(body)
    const text = part.say(continued?.before ?? '', continued?.words ?? '')
    const points = Array.from(text)
    const split = points.flatMap((_, at) => (at % pieces === 0 ? [points.slice(at, at + pieces).join('')] : []))
    const { counts } = part
    const { opening, content, closing } = getFrames(format, split, counts === undefined ? usage : null, part.finish)
    const report = counts === undefined ? [] : [usageFrame(format, counts)]
    const end = part.cut === null ? closing : part.cut === 'error' ? [errorFrame(format)] : []
    const frames = [...opening, ...(part.first ?? []), ...content, ...report, ...end].values()
    return new Response(
      new ReadableStream<Uint8Array>(
        {
          pull(controller) {
            const { value } = frames.next()
            if (value !== undefined) controller.enqueue(Buffer.from(value))
            else if (part.cut === 'reset') controller.error(new Error('reset'))
            else controller.close()
          },
        },
        { highWaterMark: 0 },
      ),
      { headers: { 'content-type': 'text/event-stream' } },
    )
  }
  const allowed: Limits = { ...plenty, ...limits }
  const rig = createWorld(play, catalog, allowed)
  if (own !== undefined) rig.own(own)
  const request = readNative(
    { prompt: 'Say something.', stream: true, model: named.openai, continue: 'any', ...fields },
    new Headers(),
    100,
  )
  const output = new EventLog()
  const { events } = output
  const { signal } = new AbortController()
  const deps = { ...rig.deps, ...given, ...(search && { web: { ...rig.deps.web, search } }) }
  const thrown = await rig.time.run(
    answer(deps, { ...caller, limits: allowed }, request, { id: `req_${Bun.randomUUIDv7()}`, signal, output }).then(
      () => null,
      (cause: unknown) => cause,
    ),
  )
  const text = events.flatMap(event => (event.type === 'text' ? [event.text] : [])).join('')
  const receipt = events.flatMap((event): ResponseSummary[] => (event.type === 'done' ? [event.receipt] : []))[0]
  return { ...rig, calls, events, thrown, text, receipt }
}

const cutAfter = (text: string, cut: Part['cut'] = 'end'): Part => ({ say: () => text, cut })
const goesOn = (rest: string): Part => ({ say: () => rest, cut: null })

const words = fc.constantFrom(
  ...'alpha Beta gamma, delta. epsilon zeta eta: theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon'.split(
    ' ',
  ),
  ...'Straße été über 東京 中文 привет 한국어 😀 naïve — 12.5 % "quoted" `code` https://example.com/a?b=c'.split(' '),
)
const texts = fc
  .array(fc.tuple(words, fc.constantFrom(' ', ' ', ' ', '\n', '\n\n', '  ')), { minLength: 4, maxLength: 60 })
  .map(pairs =>
    pairs
      .map(pair => pair.join(''))
      .join('')
      .trim(),
  )

const lastWord = /\S+(?=\s*$)/u
const firstWord = /(?<=^\s*)\S+/u

/** Counts of one part, of which all, some or no input was cached. */
const counted = fc
  .tuple(fc.integer({ min: 1, max: 9_999 }), fc.constantFrom(0, 0.3, 0.77, 1), fc.integer({ min: 1, max: 400 }))
  .map(([input, part, output]): Counts => ({ input, cached: Math.floor(input * part), output }))

const share = fc.double({ min: 0, max: 1, noNaN: true })

/** How models go on: where the text stops, from its last words, from its last sentence or word, or from its beginning. */
const habits: Readonly<Record<string, (whole: string, before: string, asked: string) => string>> = {
  exact: (whole, before) => whole.slice(before.length),
  asked: (whole, before, asked) => whole.slice(before.trimEnd().length - asked.length),
  afterNewline: (whole, before, asked) => `\n${whole.slice(before.trimEnd().length - asked.length)}`,
  again: whole => whole,
}

test('continuation: joins any text at any two cuts without a doubled or missing character, and bills the sum of the parts', async () => {
  await fc.assert(
    fc.asyncProperty(
      texts,
      fc.tuple(share, share),
      fc.constantFrom(...Object.keys(habits)),
      fc.integer({ min: 1, max: 9 }),
      fc.constantFrom(...cutsBy),
      fc.tuple(fc.constantFrom(...formats), counted, counted, counted),
      async (whole, shares, habit, pieces, cut, [start, ...counts]) => {
        const points = Array.from(whole)
        const cuts = shares
          .map(share => 1 + Math.floor(share * (points.length - 3)))
          .toSorted((first, second) => first - second)
        // A part says at least one character.
        const [least = 1, most = 1] = cuts
        const [first, second] = [least, Math.max(least + 1, most)].map(count => points.slice(0, count).join(''))
        if (first === undefined || second === undefined || first.trim() === '') return
        // No reader can tell a word that occurs twice in a row from one that is repeated.
        const isDoubled = (before: string) =>
          lastWord.exec(before)?.[0] === firstWord.exec(whole.slice(before.length))?.[0]
        if (habit === 'exact' && (isDoubled(first) || isDoubled(second))) return
        const rest = (before: string, asked: string) => habits[habit]?.(whole, before, asked) ?? ''
        const { text, thrown, receipt, records, reservationsTaken, calls } = await askFor({
          pieces,
          fields: { model: named[start], fallback_max_cost_factor: 1_000 },
          parts: [
            { ...cutAfter(first, cut), counts: counts[0] },
            // The end of what it says is at the second cut.
            {
              say: (before, asked) => {
                const said = rest(before, asked)
                return said.slice(0, Math.max(1, said.length - (whole.length - second.length)))
              },
              cut,
              counts: counts[1],
            },
            { say: (before, asked) => rest(before, asked), cut: null, counts: counts[2] },
          ],
        })
        expect([habit, text]).toEqual([habit, whole])
        expect([thrown, calls.length, reservationsTaken(), records.length]).toEqual([null, 3, 0, 1])
        const [record] = records
        const parts = receipt?.progress.continued ?? []
        expect(parts[0]?.at).toBe(Array.from(first).length)
        // An attempt that adds nothing is not billed.
        const sent = parts.length === 2 ? counts : [counts[0], counts[2]]
        // A provider here answers as one model, whichever was called.
        const names = calls.map(({ format }) => named[format]).filter((_, at) => parts.length === 2 || at !== 1)
        const bill = sent.reduce((sum, part, at) => sum + billed(names[at] ?? '', part), 0)
        expect([record?.billed_microcents, receipt?.record.billed_microcents]).toEqual([bill, bill])
        const sum = (of: (part: Counts) => number) => sent.reduce((total, part) => total + of(part), 0)
        expect(receipt?.usage).toMatchObject({
          inputTokens: sum(({ input }) => input),
          cachedInputTokens: sum(({ cached }) => cached),
          outputTokens: sum(({ output }) => output),
        })
        expect(record?.estimated).toBe(parts.length < 2)
        const outcomes = calls.map(({ format }, at) =>
          at === 2 ? 'served' : cut === 'error' ? errorOutcomes[format] : 'truncated',
        )
        expect(record?.tried.map(([, outcome]) => outcome)).toEqual(outcomes)
      },
    ),
    { numRuns: isLongVariant() ? 10_000 : 1_000 },
  )
}, 480_000)

test('continuation: bills each part at the prices of its model', async () => {
  const said = 'The quick brown fox jumps over the lazy dog and'
  // Anthropic reports the input first, and only the first call is to it.
  const { receipt, records, calls } = await askFor({
    parts: [cutAfter(said), 'fails', goesOn(' runs away.')],
    fields: { model: named.anthropic, fallback_max_cost_factor: 1_000 },
  })
  const [first, , last] = calls.map(({ format }) => format)
  expect([first, first === last]).toEqual(['anthropic', false])
  const cost = (name: string, tokens: { readonly inputTokens: number; readonly outputTokens: number }) => {
    const model = catalog.find(item => fullName(item) === name)
    if (model === undefined) throw new Error(`no model ${name}`)
    const terms = { at: startedAt, tier: null }
    return getCost(ratesAt(model.pricing, terms), { ...noUsage, ...tokens })
  }
  const cut = { inputTokens: usage.input, outputTokens: estimateTokens(said, 'anthropic') }
  const rest = { inputTokens: usage.input, outputTokens: usage.output }
  const model = receipt === undefined ? '' : servingModel(receipt.record)
  expect(records[0]?.billed_microcents).toBe(cost(named.anthropic, cut) + cost(model, rest))
  expect(receipt?.usage).toMatchObject({
    inputTokens: cut.inputTokens + rest.inputTokens,
    outputTokens: cut.outputTokens + rest.outputTokens,
  })
  expect(receipt?.progress.continued).toEqual([{ model, at: said.length }])
  expect(records[0]).toMatchObject({ estimated: true, status: 'completed', finish_reason: 'stop' })
})

test('continuation: asks the next model in the language of the conversation, with the text as the assistant turn', async () => {
  const before = 'Der Hund läuft durch den Wald und bellt laut, weil er eine Katze gesehen hat, die auf einen Ba'
  const { calls, text } = await askFor({
    parts: [cutAfter(before), goesOn('um klettert.')],
    fields: { prompt: 'Erzähle mir bitte eine kurze Geschichte über einen Hund und eine Katze im Wald.' },
  })
  const asked = JSON.parse(calls[1]?.body ?? '{}').messages
  expect(asked.at(-2)).toMatchObject({ role: 'assistant', content: before })
  expect(asked.at(-1).content).toStartWith('Deine letzte Nachricht wurde abgeschnitten.')
  expect(text).toBe(`${before}um klettert.`)
})

describe('continuation: bills an own key nothing, and every other part as without one', () => {
  const said = 'The quick brown fox jumps over the lazy dog and'
  const rest = ' runs away.'
  test.each<[string, Setting, readonly boolean[]]>([
    ['the own key goes on', { parts: [cutAfter(said), goesOn(rest)], own: 'openai' }, [true, true]],
    [
      "the operator's key goes on after the own one",
      { parts: [cutAfter(said), 'fails', goesOn(rest)], fields: { continue: 'same_model' }, own: 'openai' },
      [true, true, false],
    ],
    [
      "the own key goes on after the operator's",
      {
        parts: [cutAfter(said), 'fails', goesOn(rest)],
        fields: { model: named.anthropic, fallback_max_cost_factor: 1_000 },
      },
      [false, false, true],
    ],
  ])('%s', async (_, setting, isOwn) => {
    // Without the own key the model has one way: it is called again, as if no call had failed.
    const parts = setting.own === undefined ? setting.parts : setting.parts.filter(part => part !== 'fails')
    const plain = await askFor({ parts, ...(setting.fields && { fields: setting.fields }) })
    const own = setting.own ?? plain.calls.at(-1)?.format
    const { thrown, text, calls, records, reservationsTaken } = await askFor({ ...setting, ...(own && { own }) })
    expect([thrown, text, calls.map(call => call.isOwn)]).toEqual([null, said + rest, isOwn])
    const [{ billed_microcents: billed = -1, own_key_microcents: ofOwn = 0 } = {}] = records
    expect(plain.text).toBe(text)
    expect([billed + ofOwn, reservationsTaken()]).toEqual([plain.records[0]?.billed_microcents ?? 0, 0])
    expect([billed > 0, ofOwn > 0]).toEqual([isOwn.includes(false), true])
  })
})

describe('continuation: ends with an error', () => {
  const parts = [cutAfter('Some words'), goesOn(' and more.')]
  test.each<[string, Setting, number]>([
    ['when the client forbids it', { parts, fields: { continue: 'off' } }, 1],
    ['when the request allows one call', { parts, fields: { fallback: 'none' } }, 1],
    ['when structured output was asked for', { parts, fields: { response_format: { type: 'json_object' } } }, 1],
    ['when the text ends within a stop sequence', { parts, fields: { stop: ['words END'] } }, 1],
    ['when all attempts are cut', { parts: Array.from({ length: 4 }, (_, at) => cutAfter(`Part ${at} of it `)) }, 3],
    ['when no attempt goes on', { parts: [cutAfter('Some words')] }, 3],
  ])('%s', async (_, setting, count) => {
    const { thrown, calls, events, records, reservationsTaken } = await askFor(setting)
    expect(thrown).toMatchObject({ code: 'upstream_failed' })
    expect(calls).toHaveLength(count)
    expect(events.some(({ type }) => type === 'finish' || type === 'done')).toBe(false)
    expect([records.length, reservationsTaken()]).toEqual([1, 0])
    expect(records[0]).toMatchObject({ status: 'failed', error_code: 'upstream_failed', finish_reason: null })
    expect(records[0]?.billed_microcents).toBeGreaterThan(0)
  })
})

test('continuation: does not bill attempts that only repeat the text', async () => {
  const parts = Array.from({ length: 3 }, () => cutAfter('Some words of it'))
  const tried = await askFor({ parts })
  const once = await askFor({ parts, fields: { continue: 'off' } })
  expect([tried.calls.length, once.calls.length, tried.text]).toEqual([3, 1, 'Some words of it'])
  expect(tried.records[0]?.billed_microcents).toBe(once.records[0]?.billed_microcents ?? 0)
})

test('continuation: stays with the model unless the client allows others', async () => {
  const { thrown, calls } = await askFor({ parts: [cutAfter('Some words')], fields: { continue: 'same_model' } })
  expect(thrown).toMatchObject({ code: 'upstream_failed' })
  // Three failures in a row would open its circuit.
  expect(calls.map(({ format }) => format)).toEqual(['openai', 'openai'])
})

test('continuation: a client that wants JSON gets the answer of one attempt', async () => {
  const { thrown, text, receipt } = await askFor({
    parts: [cutAfter('Some words'), goesOn('Whole answer.')],
    fields: { stream: false },
  })
  expect([thrown, text, receipt?.progress.continued]).toEqual([null, 'Whole answer.', []])
})

test('continuation: an answer that was whole before its end mark ends where the model repeats its end', async () => {
  const { thrown, text } = await askFor({ parts: [cutAfter('All is said.'), goesOn('All is said.')] })
  expect([thrown, text]).toEqual([null, 'All is said.'])
})

test.each(['', 'All of this is'])(
  'continuation: a text is not whole because the next model says only %j',
  async said => {
    const parts = [cutAfter('All of this is said. And'), ...Array.from({ length: 2 }, () => goesOn(said))]
    const { thrown, text, calls, records } = await askFor({ parts })
    expect(thrown).toMatchObject({ code: 'upstream_failed' })
    expect([text, calls.length, records[0]?.finish_reason]).toEqual(['All of this is said. And', 3, null])
  },
)

test.each([...cutsBy])('continuation: leaves out a repetition that is cut itself, by %s', async cut => {
  const parts = [cutAfter('All of this is said. And'), cutAfter('All of this', cut), goesOn(' so on.')]
  const { thrown, text } = await askFor({ parts })
  expect([thrown, text]).toEqual([null, 'All of this is said. And so on.'])
})

test('continuation: an output cap that ends within what the model repeats ends the text as cut', async () => {
  const parts: Part[] = [
    cutAfter('All of this is said. And'),
    { say: () => 'All of this is', cut: null, finish: 'length' },
  ]
  const { thrown, text, records } = await askFor({ parts })
  expect([thrown, text, records[0]?.finish_reason]).toEqual([null, 'All of this is said. And', 'length'])
})

test('continuation: leaves out reasoning, which would end that of the cut attempt with a signature of another text', async () => {
  const think = (text: string) =>
    `data: ${JSON.stringify({ candidates: [{ index: 0, content: { parts: [{ text, thought: true }] } }] })}\r\n\r\n`
  const { text, events, thrown } = await askFor({
    parts: [
      { ...cutAfter(''), first: [think('First ')] },
      { ...goesOn('It is so.'), first: [think('Second ')] },
    ],
    fields: { model: named.google },
  })
  const thoughts = events.flatMap(event => (event.type === 'reasoning' ? [event.text] : []))
  expect([thrown, thoughts, text]).toEqual([null, ['First '], 'It is so.'])
})

test('continuation: a required call that is missing in the last part is an error', async () => {
  const tool = { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }
  const { thrown, events } = await askFor({
    parts: [cutAfter('I look it up, '), goesOn('or not.')],
    fields: { tools: [tool], tool_choice: 'required' },
  })
  expect(String(thrown)).toContain('requires a tool call')
  expect(events.some(({ type }) => type === 'finish')).toBe(false)
})

describe('continuation: reserves the next part beside the first', () => {
  const said = 'The quick brown fox jumps over the lazy dog and'
  const parts: Part[] = [{ ...cutAfter(said), counts: { input: 900, cached: 0, output: 60 } }, goesOn(' runs away.')]
  const fields = { max_output_tokens: 4_000 }

  test('and ends with an error when the account cannot pay for it, to the micro-cent', async () => {
    const [once, whole] = [
      await askFor({ parts, fields: { ...fields, continue: 'off' } }),
      await askFor({ parts, fields }),
    ]
    const { reserved_microcents: both = 0 } = whole.records[0] ?? {}
    const [{ billed_microcents: billed = 0 } = {}] = whole.records
    expect([whole.thrown, billed > 0 && billed <= both]).toEqual([null, true])
    // What the first part has used, and the second one with the text as a part of its input.
    const model = catalog.find(item => fullName(item) === named.openai)
    if (model === undefined) throw new Error('the catalog has changed: choose another model')
    const asked = readNative({ prompt: 'Say something.' }, new Headers(), 100)
    const second = { inputTokens: estimateInputTokens(asked) + 60, outputTokens: 4_000 - 60 }
    const used = once.records[0]?.billed_microcents ?? 0
    expect(both).toBeGreaterThanOrEqual(used + getHighestCost(model.pricing, second, { at: startedAt, tier: null }))
    for (const [dailyCostMicrocents, count] of [
      [both, 2],
      [both - 1, 1],
    ] as const) {
      const { thrown, calls, events, records, reservationsTaken } = await askFor({
        parts,
        fields: { ...fields, continue: 'same_model' },
        limits: { dailyCostMicrocents },
      })
      const isEnded = events.some(({ type }) => type === 'finish' || type === 'done')
      expect([calls.length, isEnded, reservationsTaken(), records.length]).toEqual([count, count === 2, 0, 1])
      const [record] = records
      expect(record?.status).toBe(count === 2 ? 'completed' : 'failed')
      expect(record?.billed_microcents).toBe(count === 2 ? billed : used)
      expect(record?.billed_microcents).toBeLessThanOrEqual(dailyCostMicrocents)
      if (count === 1) expect(thrown).toMatchObject({ code: 'upstream_failed' })
    }
  })

  test('and lowers the output cap when its tokens are nearly used up', async () => {
    const cap = ({ calls }: Awaited<ReturnType<typeof askFor>>, at: number) => {
      const { max_completion_tokens, max_tokens } = JSON.parse(calls[at]?.body ?? '{}')
      return max_completion_tokens ?? max_tokens
    }
    const usual = await askFor({ parts, fields })
    expect([cap(usual, 0), cap(usual, 1)]).toEqual([4_000, 3_940])
    // The first part has used 960 of them.
    const least = await askFor({ parts, fields, limits: { dailyTokens: 4_500 } })
    expect([least.thrown, least.calls.length, cap(least, 1) > 0, cap(least, 1) < 4_500 - 960]).toEqual([
      null,
      2,
      true,
      true,
    ])
    // The client's own cap is for both parts.
    const none = await askFor({ parts, fields: { ...fields, max_output_tokens: 60 } })
    expect([none.thrown !== null, none.calls.length]).toEqual([true, 1])
  })
})

describe('continuation: moderates both parts', () => {
  const rule = { id: 'titan', category: 'internal', reason: 'A secret project.', patterns: ['project titan'] }
  const moderation = moderationFor({ rules: [{ ...rule, expressions: [] }] })
  const before = 'All of it is well. We call it '
  const blocked = 'Project Titan'

  test.each(['realtime', 'buffered'])('as one text when the seam splits words that a rule blocks (%s)', async mode => {
    const fields = { stream_mode: mode }
    for (let at = 1; at < blocked.length; at++)
      for (const isAsked of [true, false]) {
        const rest = `${blocked.slice(at)} here, and that is all of it.`
        const next: Part = isAsked ? { say: (_, asked) => asked + rest, cut: null } : goesOn(rest)
        const parts = [cutAfter(before + blocked.slice(0, at)), next]
        const { text, calls, records, reservationsTaken } = await askFor({ parts, fields, moderation })
        expect([at, text.includes('Titan'), text.includes('all of it.')]).toEqual([at, false, false])
        expect([calls.length, records[0]?.finish_reason, reservationsTaken()]).toEqual([2, 'content_filter', 0])
      }
  })

  test('with the prompt, whose secrets neither has when they are masked', async () => {
    const secret = `sk-proj-${'Ab3dEf6hIj'.repeat(5)}`
    const { calls, text, thrown } = await askFor({
      parts: [cutAfter(`Your key is ${secret.slice(0, 20)}`), goesOn(' and no more.')],
      fields: { prompt: `My key is ${secret}. Say it.` },
      moderation: moderationFor({ secrets: 'mask' }),
    })
    expect([thrown, calls.length, text]).toEqual([null, 2, `Your key is ${secret.slice(0, 20)} and no more.`])
    for (const { body } of calls) expect([body.includes(secret), body.includes(' removed]')]).toEqual([false, true])
  })
})

test.each([
  ['within its first mark', '<thi', '<think>Let me see.</think>The answer is four.'],
  ['within the reasoning', '<think>Let me s', '<think>Let me see.</think>The answer is four.'],
  ['within its end mark', '<think>Let me see.</thi', '<think>Let me see.</think>The answer is four.'],
  ['after its end mark', '<think>Let me see.</think>', '<think>I see.</think>The answer is four.'],
  ['within the answer', '<think>Let me see.</think>The answer is fo', '<think>I go on.</think>ur.'],
  ['within the answer, which the next begins without', '<think>Let me see.</think>The answer is fo', 'ur.'],
])('continuation: a text with reasoning in tags is cut %s', async (_, first, second) => {
  for (const pieces of [1, 3, 50]) {
    const { thrown, text, events, records } = await askFor({
      parts: [cutAfter(first), goesOn(second)],
      fields: { continue: 'same_model' },
      endpoints: new Map([
        ['openai', { ...getProvider('openai'), access: { baseUrl: 'http://openai', apiKey: 'key' } }],
      ]),
      pieces,
    })
    const thoughts = events.flatMap(event => (event.type === 'reasoning' ? [event.text] : [])).join('')
    expect([thrown, text, records[0]?.finish_reason]).toEqual([null, 'The answer is four.', 'stop'])
    expect('Let me see.').toStartWith(thoughts)
  }
})

test('continuation: keeps what the gateway found on the web, which is searched, billed and cited once', async () => {
  const url = 'https://found.example.com/gold'
  let searches = 0
  const find = async () => {
    searches++
    return [{ url, title: 'Gold', text: 'Gold costs much today.' }]
  }
  const said = `Gold 😀 costs much today, says ${url}, and so do`
  const { thrown, text, calls, events, records, receipt } = await askFor({
    fields: { prompt: 'What does gold cost today?' },
    search: { isThere: () => true, find },
    parts: [cutAfter(said.slice(0, 40)), { say: (_, asked) => asked + said.slice(40), cut: null }],
  })
  expect([thrown, text, searches, calls.length]).toEqual([null, said, 1, 2])
  for (const { body } of calls) expect(body).toMatch(/Gold.costs.much.today/)
  const start = Array.from(said.slice(0, said.indexOf(url))).length
  const citations = events.flatMap(event => (event.type === 'citation' ? [event.source] : []))
  expect(citations).toEqual([{ url, title: 'Gold', start, end: start + url.length }])
  expect([records[0]?.search_microcents, receipt?.record.search_microcents]).toEqual([
    webPrices.search,
    webPrices.search,
  ])
})

test('seam: places a citation by characters, after what was removed', () => {
  const text = 'It is said 😀 often'
  const cut = { text, channel: firstText } as Cut
  const seam = new Seam(cut)
  const said = `${text} by 😀 sources`
  const source = {
    url: 'https://example.com',
    title: null,
    start: Array.from(text).length + 4,
    end: Array.from(said).length,
  }
  const continuation: readonly ChatEvent[] = [
    { type: 'text', choice: 0, text: said },
    { type: 'citation', choice: 0, source },
  ]
  const log = new EventLog()
  seam.join({ release: sink => void tell(sink, continuation) }, log, true)
  expect(log.events).toEqual([
    { type: 'text', choice: 0, text: ' by 😀 sources' },
    { type: 'citation', choice: 0, source },
  ])
})

test('continuation: asks for whole characters', async () => {
  const { calls } = await askFor({ parts: [cutAfter(`${'漢'.repeat(20)}😀${'字'.repeat(59)}`), goesOn('。')] })
  expect(readContinued(calls[1]?.body ?? '{}')?.words).toBe('字'.repeat(59))
})

test.each([
  ['The quick bro', 'wn fox', 0],
  ['The quick brown', 'brown fox', 5],
  ['The quick brown', ' brown fox', 0],
  ['He said that ', 'that man', 0],
  ['The quick brown fox', 'quick brown fox jumps', 15],
  ['The quick brown fox ', 'quick brown fox jumps', 16],
  ['The quick brown fox ', '\nquick brown fox  jumps', 17],
  ['On and on: la la la la la la la la ', 'la la la la la la', 0],
  ['On and on: la la la la la la la la ', 'On and on: la la la la la la la la oh', 35],
  ['A', 'A', 1],
])('seam: after %j, %j repeats %i characters', (text, beginning, count) => {
  expect(repeated(text, beginning)).toBe(count)
})
