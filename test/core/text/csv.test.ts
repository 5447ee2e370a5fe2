import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { csvLine } from '../../../src/core/text/csv.ts'

/** A CSV reader by RFC 4180: doubled quotes, and CRLF between lines. */
function parse(text: string): string[][] {
  const lines: string[][] = [[]]
  for (let at = 0; at < text.length; ) {
    if (text[at] !== '"') throw new Error(`no quote at ${at}`)
    let cell = ''
    for (at++; text[at] !== '"' || text[at + 1] === '"'; at++) {
      cell += text[at] ?? ''
      if (text[at] === '"') at++
    }
    lines.at(-1)?.push(cell)
    at++
    if (text[at] === ',') at++
    else if (text.slice(at, at + 2) === '\r\n') {
      at += 2
      lines.push([])
    } else throw new Error(`no end at ${at}`)
  }
  lines.pop()
  return lines
}

describe('csvLine', () => {
  test('quotes every cell, writes null as empty, and keeps numbers and booleans', () => {
    expect(csvLine(['a', 1, -2.5, true, null, ''])).toBe('"a","1","-2.5","true","",""\r\n')
  })

  test('keeps quotes, separators and line ends inside their cell', () => {
    expect(csvLine(['say "hi"', 'a,b;c', 'one\r\ntwo'])).toBe('"say ""hi""","a,b;c","one\r\ntwo"\r\n')
  })

  test.each(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'])(
    'prefixes text that begins with %j [L3]',
    first => {
      expect(csvLine([`${first}HYPERLINK("http://x")`])).toBe(`"'${first}HYPERLINK(""http://x"")"\r\n`)
    },
  )

  test('returns any text to a reader unchanged and never as a formula [L3]', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^[=+\-@",;\r\n\t a1]{0,8}$/))
    fc.assert(
      fc.property(fc.array(fc.array(text, { minLength: 1, maxLength: 5 }), { maxLength: 5 }), lines => {
        const read = parse(lines.map(csvLine).join(''))
        expect(read.map(cells => cells.length)).toEqual(lines.map(cells => cells.length))
        for (const [row, cells] of lines.entries())
          for (const [column, cell] of cells.entries()) {
            const got = read[row]?.[column] ?? ''
            expect(got === cell || got === `'${cell}`).toBe(true)
            expect(/^[=+\-@\t\r\n＝＋－＠]/.test(got)).toBe(false)
          }
      }),
    )
  })
})
