import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { StreamMode } from '../../../src/core/chat/chat.ts'
import { OutputModerator } from '../../../src/text/moderation/output-moderator.ts'
import { judgeOutput, OutputText } from '../../../src/text/moderation/output-text.ts'
import type { OutputLayers } from '../../../src/text/moderation/verdict.ts'
import { compileRules } from '../../../src/text/rules/pattern-rules.ts'
import { type ChatEvent, EventLog, tell } from '../../harness/events.ts'

const byWords = [
  { id: 'titan', category: 'internal', reason: 'A secret project.', patterns: ['project titan'] },
  { id: 'recipe', category: 'weapons', reason: 'How it is made.', patterns: ['mix ~3 red ~2 blue powder'] },
]
const rules: OutputLayers = {
  rules: compileRules([
    ...byWords,
    { id: 'number', category: 'internal', reason: 'A number.', patterns: ['unusedword'], expressions: ['zx-\\d{4}'] },
  ]),
  hosts: { isBlocked: host => host === 'evil.example' || host.endsWith('.evil.example') },
  answer: text => ({ category: text.includes('vile words') ? 'hate' : null, score: 0.9 }),
  isHarmless: text => !text.includes('vile words'),
}

/** Returns a moderator whose `take` returns what it passes on. */
function createScreen(mode: StreamMode | null) {
  const log = new EventLog()
  const screen = new OutputModerator(rules, mode, log)
  return {
    take(events: readonly ChatEvent[]) {
      tell(screen, events)
      return log.taken()
    },
  }
}

function screened(pieces: readonly string[], mode: StreamMode | null, type: 'text' | 'tool_arguments' = 'text') {
  const screen = createScreen(mode)
  const event = (text: string): ChatEvent =>
    type === 'text' ? { type, choice: 0, text } : { type, choice: 0, index: 0, text }
  const out = [...pieces.map(event), { type: 'finish', choice: 0, reason: 'stop' } as const].flatMap(chatEvent =>
    screen.take([chatEvent]),
  )
  return {
    text: out.map(chatEvent => ('text' in chatEvent ? chatEvent.text : '')).join(''),
    reasons: out.flatMap(chatEvent => (chatEvent.type === 'finish' ? [chatEvent.reason] : [])),
    filtered: out.flatMap(chatEvent => (chatEvent.type === 'filtered' ? [[chatEvent.layer, chatEvent.category]] : [])),
  }
}

const modes = ['realtime', 'buffered', null] as const

describe.each(modes)('output moderator (%s)', mode => {
  test.each([
    ['a rule', 'All is well. We call it Project Titan here, and more.', ['patterns', 'internal'], 'Titan'],
    ['a rule with gaps', 'Fine. Now mix the dry red and blue powder slowly.', ['patterns', 'weapons'], 'powder'],
    ['an expression', 'Your code is ZX-1234. Keep it.', ['patterns', 'internal'], 'ZX-1234'],
    ['a blocked address', 'Read on at https://www.evil.example/path today.', ['urls', 'malicious_url'], 'evil.example'],
    ['a blocked name at the end', 'Read on at evil[.]example.', ['urls', 'malicious_url'], 'evil[.]example'],
    ['a blocked name in brackets', 'Read on at evil(dot)example. It is new.', ['urls', 'malicious_url'], 'evil(dot)'],
    ['a bare blocked name', 'Read on at evil.example today.', ['urls', 'malicious_url'], 'evil.example'],
    [
      'a blocked name in quotation marks',
      'Read on at “evil.example” today.',
      ['urls', 'malicious_url'],
      'evil.example',
    ],
    ['a blocked name among Chinese', '请访问evil.example。谢谢', ['urls', 'malicious_url'], 'evil.example'],
    ['a blocked name with a wide dot', 'Read on at evil。example today.', ['urls', 'malicious_url'], 'evil。example'],
    ['a blocked name in JSON', '{"u":"https:\\/\\/evil.example\\/"} it is.', ['urls', 'malicious_url'], 'evil.example'],
    ['a blocked name in escapes', 'Read on at evil\\u002eexample today.', ['urls', 'malicious_url'], 'u002eexample'],
    ['a blocked name in references', 'Read on at evil&#46;example today.', ['urls', 'malicious_url'], '#46;example'],
    [
      'a rule before a blocked name',
      'All of Project Titan is at evil dot example now.',
      ['patterns', 'internal'],
      'Titan',
    ],
    ['a vile sentence', 'Good morning. These are vile words indeed. And on.', ['classifier', 'hate'], ' And on'],
  ])('stops before %s and finishes with content_filter', (_what, text, filtered, forbidden) => {
    const whole = screened([text], mode)
    expect(whole.filtered).toEqual([filtered])
    expect(whole.reasons).toEqual(['content_filter'])
    expect(whole.text).not.toContain(forbidden)
    expect(text.startsWith(whole.text)).toBe(true)
  })

  test.each([
    'I cannot help with Project Titan.',
    'The phrase "Project Titan" is only a name.',
    'See https://example.org/?u=evil.example and https://evil.example.org/ for that.',
    'Nothing to see. 3.14 is pi, e.g. in math... Really? Yes!\nA list:\n- one\n- two',
    '没有问题。一切都好。',
  ])('allows text that reports, refuses or only resembles: %j', text => {
    expect(screened([text], mode)).toEqual({ text, reasons: ['stop'], filtered: [] })
  })

  test('blocks the same and loses nothing clean for any split into deltas', () => {
    const words = fc.constantFrom(
      'project',
      'titan',
      'mix',
      'red',
      'blue',
      'powder',
      'evil.example',
      'vile words',
      'a',
      'b.',
      'c\n',
      'zx-1234',
      'https://x.evil.example/',
      'evil dot example',
      'evil[.]example',
      '[.]',
      '"q"',
      '代码',
    )
    fc.assert(
      fc.property(
        fc.array(words, { maxLength: 14 }),
        fc.array(fc.nat({ max: 9 }), { minLength: 1, maxLength: 40 }),
        (parts, sizes) => {
          const text = parts.join(' ')
          const pieces = cutBy(text, sizes)
          const [whole, cut] = [screened([text], mode), screened(pieces, mode)]
          expect(cut.filtered).toEqual(whole.filtered)
          expect(cut.reasons).toEqual(whole.reasons)
          expect(text.startsWith(cut.text)).toBe(true)
          if (whole.filtered.length === 0) expect(cut.text).toBe(text)
          else {
            // Quoted text is allowed and may precede blocked text.
            if (!text.includes('"')) expect(cut.text).not.toContain('project titan')
            expect(cut.text).not.toContain('evil.example')
          }
        },
      ),
      { numRuns: 300 },
    )
  })
})

test('judgeOutput: finds in a whole text what its pieces have', () => {
  // Without expressions, which are read by the sentence, most texts are read as a whole.
  const layers = { ...rules, rules: compileRules(byWords) }
  const words = ['evil', 'example', 'evil[.]example', 'evil%2eexample/', '[.]', '(dot)', 'dot', 'a.b', 'so', '。', '. ']
  const blanks = ['', ' ', '\n']
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom(...words), fc.constantFrom(...blanks)), { maxLength: 8 }), parts => {
      const text = parts.flat().join('')
      const output = new OutputText(layers)
      for (const piece of text) output.push(piece, true)
      output.finish(true)
      expect([text, judgeOutput(layers, text)]).toEqual([text, output.hit])
    }),
    {
      numRuns: 2_000,
      examples: [
        [
          [
            ['evil[.]example[.]', ' '],
            ['so', ''],
          ],
        ],
      ],
    },
  )
})

/** Splits `text` into parts with the sizes of `sizes`, repeated. */
function cutBy(text: string, sizes: readonly number[]): string[] {
  const pieces: string[] = []
  for (let at = 0, turn = 0; at < text.length; turn++) {
    const size = 1 + (sizes[turn % sizes.length] ?? 0)
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return pieces
}
const cuts = fc.array(fc.nat({ max: 40 }), { minLength: 1, maxLength: 30 })

test('output moderator: never sends part of a blocked URL, whatever its length or split', () => {
  const filler = fc.tuple(fc.constantFrom('a', 'ab/', 'x=1&', 'ok,', '%20'), fc.nat({ max: 700 }))
  const long = filler.map(([unit, length]) => unit.repeat(length / unit.length))
  const name = fc.constantFrom(
    'evil.example',
    'www.EVIL.example',
    'evil[.]example',
    '%65vil.example',
    'ev\u200bil.example',
    'evil&#46;example',
    'evil\\.example',
    'evil(dot)example',
    'evil。example',
  )
  const address = fc.tuple(
    fc.constantFrom('', 'https://', '{"url":"https://', 'https://u:p@'),
    name,
    fc.constantFrom('/', '?q=', '#'),
  )
  fc.assert(
    fc.property(fc.constantFrom(...modes), cuts, address, long, (mode, sizes, [before, host, after], rest) => {
      const { text, reasons } = screened(cutBy(`Read on at ${before}${host}${after}${rest} today.`, sizes), mode)
      expect(reasons).toEqual(['content_filter'])
      expect(text.toLowerCase()).not.toContain(host.toLowerCase())
    }),
    { numRuns: 300 },
  )
  const spared = `See https://example.org/${'a/'.repeat(300)}?u=https://evil.example/${'b/'.repeat(300)} for that.`
  for (const mode of modes) expect(screened(cutBy(spared, [2, 9]), mode).text).toBe(spared)
})

test.each(['Read on at evil (dot) example today.', 'Read on at evil dot example today', 'At evil [.] example'])(
  'output moderator: never sends the end of a spelled-out blocked host for any split: %j',
  text => {
    for (const mode of modes)
      for (const size of [0, 1, 2, 6, 60]) {
        const { text: shown, reasons } = screened(cutBy(text, [size]), mode)
        expect([mode, size, reasons, shown.includes('example')]).toEqual([mode, size, ['content_filter'], false])
      }
  },
)

test('output moderator: sends nothing of a blocked sentence before its verdict, except in the first text of a stream', () => {
  const clean = fc.array(
    fc.constantFrom('All is well. ', 'It is (so.) ', '一切都好。', 'Really?! ', 'Line\n', `${'word '.repeat(60)}. `),
    {
      minLength: 1,
      maxLength: 6,
    },
  )
  const refused = fc.constantFrom(
    'These are vile words, said aloud. ',
    '这是vile words。',
    `${'so '.repeat(70)}vile words. `,
    'Now mix the dry red and blue powder slowly. ',
    'The code is zx-1234, keep it. ',
    'Go to evil (dot) example at once. ',
    'He said: these are vile words.) ',
  )
  fc.assert(
    fc.property(fc.constantFrom('buffered', null), cuts, clean, refused, (mode, sizes, sentences, bad) => {
      const before = sentences.join('')
      const pieces = [before.slice(0, 1), ...cutBy(`${before.slice(1)}${bad}And on.`, sizes)]
      const { text, reasons } = screened(pieces, mode)
      expect(reasons).toEqual(['content_filter'])
      expect(before.startsWith(text)).toBe(true)
    }),
    { numRuns: 300 },
  )
})

test('output moderator: moderates arguments of tool calls', () => {
  expect(screened(['{"url":"https://', 'evil.exam', 'ple/a"}'], 'realtime', 'tool_arguments').filtered).toEqual([
    ['urls', 'malicious_url'],
  ])
})

test.each(modes)('output moderator: judges a text as one that a tool call interrupts (%s)', mode => {
  const text = (piece: string): ChatEvent => ({ type: 'text', choice: 0, text: piece })
  const call: ChatEvent = { type: 'tool_call', choice: 0, index: 0, id: 'call_1', name: 'look', signature: null }
  const screen = createScreen(mode)
  const out = [text('We call it Project '), call, call, text('Titan here.'), call].flatMap(event =>
    screen.take([event]),
  )
  expect(out.map(event => ('text' in event ? event.text : event.type)).join('')).toBe(
    'We call it Project tool_calltool_callfilteredfinish',
  )
})

test('output moderator: sends an ordinary delta at once and complete in realtime mode', () => {
  const screen = createScreen('realtime')
  const pieces = ['Hello', ' there', ', how', ' are you', '? Fine', '.', ' Good']
  for (const text of pieces)
    expect(screen.take([{ type: 'text', choice: 0, text }])).toEqual([{ type: 'text', choice: 0, text }])
})

test('output moderator: sends whole sentences in buffered mode, the first text at once', () => {
  const screen = createScreen('buffered')
  const shown = ['Well', ' then. This is', ' one sentence', '. And an', 'other'].map(text =>
    screen
      .take([{ type: 'text', choice: 0, text }])
      .map(event => ('text' in event ? event.text : ''))
      .join(''),
  )
  expect(shown).toEqual(['Well', ' then. ', '', 'This is one sentence. ', ''])
})

test.each(modes)('output moderator: sends reasoning before the text that follows it in %s mode', mode => {
  const screen = createScreen(mode)
  const events: ChatEvent[] = [
    { type: 'reasoning', choice: 0, text: 'One thought. And half of ano' },
    { type: 'text', choice: 0, text: 'The answer. It goes' },
    { type: 'text', choice: 0, text: ' on' },
    { type: 'finish', choice: 0, reason: 'stop' },
  ]
  const out = events.flatMap(event => screen.take([event]))
  const types = out.map(({ type }) => type)
  expect(types.lastIndexOf('reasoning')).toBeLessThan(types.indexOf('text'))
  const said = (type: string) =>
    out.map(chatEvent => (chatEvent.type === type && 'text' in chatEvent ? chatEvent.text : '')).join('')
  expect([said('reasoning'), said('text')]).toEqual(['One thought. And half of ano', 'The answer. It goes on'])
})

describe.each(modes)('output moderator of citations (%s)', mode => {
  const text = (piece: string, block?: number): ChatEvent => ({
    type: 'text',
    choice: 0,
    text: piece,
    ...(block === undefined ? {} : { block }),
  })
  const cites = (fields: { url?: string; title?: string; quote?: string }): ChatEvent => ({
    type: 'citation',
    choice: 0,
    source: { url: 'https://fine.example/', title: null, start: 0, end: 2, ...fields },
  })
  const finish: ChatEvent = { type: 'finish', choice: 0, reason: 'stop' }
  const shown = (events: readonly ChatEvent[]) => {
    const screen = createScreen(mode)
    return events.flatMap(event => screen.take([event]))
  }

  test('sends them after their text, which may be held back', () => {
    const out = shown([text('So it'), cites({}), text(' may be'), finish])
    expect(out.map(event => ('text' in event ? event.text : '')).join('')).toBe('So it may be')
    expect(out.findIndex(({ type }) => type === 'citation')).toBe(out.length - 2)
  })

  test.each([
    ['address', { url: 'https://www.evil.example/a' }],
    ['title', { title: 'Project Titan, page 1' }],
    ['passage', { quote: 'Here we mix red and blue powder.' }],
  ])('leaves out one with a blocked %s, and keeps the text and the others', (_what, fields) => {
    const out = shown([text('So it is.'), cites(fields), cites({}), finish])
    expect(out.filter(({ type }) => type === 'citation')).toEqual([cites({})])
    expect(out.at(-1)).toEqual(finish)
  })

  test('keeps blocks of text apart, and judges them together', () => {
    const out = shown([text('So it is,'), cites({}), text(' they say', 1), cites({}), finish])
    const order = out.map(event => (event.type === 'text' ? `block ${event.block ?? 0}` : event.type))
    expect(order.filter((name, index) => name !== order[index - 1])).toEqual([
      'block 0',
      'citation',
      'block 1',
      'citation',
      'finish',
    ])
    const blocked = shown([text('We call it Project '), text('Titan here. And on.', 1), finish])
    expect(blocked.at(-1)).toEqual({ type: 'finish', choice: 0, reason: 'content_filter' })
  })
})
