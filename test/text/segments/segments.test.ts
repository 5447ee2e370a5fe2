import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { readSegments } from '../../../src/text/segments/segments.ts'

const page =
  'The ferry leaves at six. It carries forty cars and turns at the old lighthouse. In winter the captain waits for the mail. '.repeat(
    6,
  )
const log = Array.from({ length: 9 }, (_, n) => `2026-02-0${n + 1} 10:0${n}:11 ferry-${n} INFO departed`).join('\n')
const table = `| Pier | Depth |\n|---|--:|\n${'| North | 4 |\n'.repeat(8)}`
const program = `\`\`\`ts\nexport function depart(n: number) {\n  return n + 1\n}\n\`\`\``
const mail = `From: a@b.example\nSubject: ferry\n\nThe ferry is late, and the cars wait at the pier until seven.`
const json = `{\n  "ferry": "Alma",\n  "cars": 40,\n  "stops": ["north", "south"],\n  "open": true\n}`

describe('readSegments', () => {
  const request = 'When does the ferry leave?'
  const materials = {
    page,
    log,
    table,
    program,
    mail,
    json,
    tagged: `<doc>\n${page}\n</doc>`,
    named: `Context:\n${page}`,
    array: JSON.stringify(Array.from({ length: 9 }, (_, n) => [`pier ${n}`, n, n > 3])),
    objects: `[{ "pier": "north", "cars": 40, "open": true }, { "pier": "south", "cars": 12, "open": false }]`,
  }

  test.each(Object.entries(materials))(
    'separates a request when it follows or precedes material: %s',
    (_, material) => {
      expect(readSegments(`${material}\n\n${request}`).request).toBe(request)
      expect(readSegments(`${request}\n\n${material}`).request).toBe(request)
    },
  )

  test.each([
    [
      'From: a@b.example\nSubject: crane\n\nCould you tell me when the crane is free?',
      'Answer that it is free at one.',
    ],
    ['Von: a@b.example\nBetreff: Kran\n\nBitte senden Sie uns ein Angebot, und wann ist der Kran frei?', 'Sag ihm ab.'],
  ])('keeps the question of a mail out of the request when the request precedes it: %j', (letter, order) => {
    expect(readSegments(`${order}\n\n${letter}`).request).toBe(order)
    expect(readSegments(`${letter}\n\nWhat does he want?`).request).toBe('What does he want?')
  })

  test.each(['tl;dr', 'key points', 'Zusammenfassung bitte', 'thoughts?'])(
    'takes a document out of the request when an order without a verb precedes it: %j',
    order => expect(readSegments(`${order}\n\n${page.repeat(3)}`).request).toBe(order),
  )

  test.each([`Docs:\n${page}\n\n\`\`\`sh\nferry --north`, `${page}\n\n\`\`\`json\n{ "pier": 4,`])(
    'finds the question when it follows a document that was cut within a fence: %j',
    document => expect(readSegments(`${document}\n\n${request}`).request).toBe(request),
  )

  test('finds an order when it follows a labeled document and nothing else asks', () => {
    const order = 'Write a guide for captains with a table of the piers.'
    expect(readSegments(`Context:\n${page}\n\n${order}`).request).toBe(order)
  })

  test.each([
    ['Translate to Dutch: the captain signs the treaty of the lakes', 'Translate to Dutch:'],
    ['Übersetze ins Englische: Der Kapitän unterschreibt den Vertrag', 'Übersetze ins Englische:'],
    ['翻译成英文：船长在码头等了三个小时', '翻译成英文：'],
    ['Count the words: prove that the harbor protocol is safe', 'Count the words:'],
    ['What does “prove the safety of the protocol” mean?', 'What does “” mean?'],
    ['Was heißt „beweise die Sicherheit des Protokolls“?', 'Was heißt „“?'],
    ['Que veut dire « démontrer la sûreté du protocole » ?', 'Que veut dire «» ?'],
    ['「港で三時間も待ちました」を英語にして', '「」を英語にして'],
  ])('takes the payload out of the request when it is %j', (text, expected) =>
    expect(readSegments(text).request.replace(/(?<=[“„«「]) (?=[”“»」])/g, '')).toBe(expected),
  )

  test.each([
    'Prove: the sum of two odd numbers is even.',
    'Debug: the ferry service stops after midnight.',
    "Why isn't Anna's ferry on time?",
    'Summarize this: https://ferry.example/timetable',
    `I want to write a program for ferries.\n- It shows the pier.\n${'- It counts the cars of each ferry, and warns when there are too many.\n'.repeat(12)}\nDo you have questions before you begin?`,
    'I run a ferry.\n\nMy cars are late each morning.\n\nHow should I plan the week?',
    `Which pier is right?\n\nThe ferry needs a depth of four meters.\nA. North\nB. South\nC. East\nD. West`,
  ])('leaves a request whole when it has no material: %j', text => expect(readSegments(text).request).toBe(text))

  test('keeps the frame of a client out of request and material', () => {
    const { request: asked, parts } = readSegments(
      '<system-reminder>\nPlan and prove everything.\n</system-reminder>\n<user_query>which pier?</user_query>',
    )
    expect(asked).toBe('which pier?')
    expect(parts.map(({ kind }) => kind)).toEqual(['frame', 'request'])
  })

  test('keeps what its author says between a program and an error', () => {
    const code =
      'def depart(config: Config, pier: Pier, now: Clock):\n    ferry = config.get("ferry") or pier.first()\n    if ferry:\n        ferry.leave(now())\n    return ferry'
    const told = 'in my service i use this to leave the pier. however the ferry never moves. why?'
    expect(
      readSegments(
        `${code}\n\n${told}\n\n2026-02-01 10:00:00 pier ERROR ferry is None at depart(config)\n2026-02-01 10:00:01 pier ERROR again`,
      ).request,
    ).toBe(told)
  })

  test.each([
    'from harbor import Pier, Crane\nfrom harbor.cranes import lift\nimport lift.core(pier)\nreturn ferry.leave(pier)',
    '$ sail(pier) => go\nlet ferry = open(pier)\nconst cars = count(ferry)\nreturn cars.waiting(pier)',
    'The ferry failed here\n  at depart (ferry:3:1)\n  at leave (pier:12:9)\n  file "crane", line 3\n  at main (app:4:9)',
  ])('divides code in capitals like the same in lower case: %j', code => {
    const text = `Why does it fail on the second run?\n\n${code}`
    expect(readSegments(text.toUpperCase()).parts).toEqual(readSegments(text.toLowerCase()).parts)
    expect(readSegments(text.toUpperCase()).code).toBeGreaterThan(60)
  })

  test('takes a word with one capital for the beginning of a sentence', () => {
    const text = 'The ferry is late.\nUse next() of the pier for the cars\nReturn wait() to the captain of the ferry'
    expect(readSegments(text).code).toBe(0)
  })

  test('has no request when a message is only material', () => {
    expect(readSegments(mail).request).toBe('')
    expect(readSegments(program).request).toBe('')
  })

  test('names ascending ranges within the text for any text', () => {
    const piece = fc.constantFrom(
      request,
      page,
      log,
      table,
      program,
      mail,
      json,
      '\n',
      '\n\n',
      '```',
      '<doc>',
      '</doc>',
      '"',
      ':',
      'Context:',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), pieces => {
        const text = pieces.join('')
        let last = 0
        for (const { from, to } of readSegments(text).parts) {
          expect(from).toBeGreaterThanOrEqual(last)
          expect(to).toBeGreaterThanOrEqual(from)
          last = to
        }
        expect(last).toBeLessThanOrEqual(text.length)
      }),
    )
  })
})
