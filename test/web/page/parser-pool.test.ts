import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createParserPool } from '../../../src/web/page/parser-pool.ts'
import { patient } from '../../harness/patience.ts'
import { minimalPdf, pdfBomb } from '../pdfs.ts'

setDefaultTimeout(240_000)

const readers = createParserPool({ enoughCharacters: 100, deadlines: patient })
afterAll(() => readers.close())

test('parser pool: terminates a thread on a document that expands without end and uses another', async () => {
  const bomb = pdfBomb()
  expect(bomb.length).toBeLessThan(20_000)
  const hasty = createParserPool({ enoughCharacters: 100, deadlines: { ...patient, pageParsingMs: 50 } })
  const fine = { kind: 'pdf', bytes: minimalPdf } as const
  // A new thread has the patient time of its start too.
  expect(await hasty.read(fine)).toMatchObject({ text: 'The tide table of May' })
  await expect(hasty.read({ kind: 'pdf', bytes: bomb })).rejects.toMatchObject({ code: 'unreadable' })
  expect(await hasty.read(fine)).toMatchObject({ text: 'The tide table of May' })
  hasty.close()
})

test('parser pool: rejects one page too many at once and reads those that wait', async () => {
  const page = { kind: 'html', text: '<p>One of many' } as const
  const all = await Promise.allSettled(Array.from({ length: 50 }, () => readers.read(page)))
  const refused = all.filter(one => one.status === 'rejected')
  expect(refused.length).toBeGreaterThan(0)
  for (const one of refused) expect(one.reason).toMatchObject({ code: 'too_slow' })
  expect(all.filter(one => one.status === 'fulfilled' && one.value.text === 'One of many').length).toBe(
    50 - refused.length,
  )
})

test('parser pool: rejects waiting pages on close and starts no further thread', async () => {
  const closing = createParserPool({ enoughCharacters: 100, deadlines: patient })
  const page = { kind: 'html', text: '<p>One of many' } as const
  const all = Array.from({ length: 10 }, () =>
    closing.read(page).then(
      () => 'read',
      cause => cause.message,
    ),
  )
  closing.close()
  expect(await Promise.all(all)).toEqual(Array.from({ length: 10 }, () => 'the gateway is stopping'))
  await expect(closing.read(page)).rejects.toMatchObject({ code: 'unreadable' })
})

test('parser pool: returns at most the requested characters', async () => {
  expect((await readers.read({ kind: 'html', text: `<p>${'word '.repeat(1_000)}` })).text.length).toBe(100)
})
