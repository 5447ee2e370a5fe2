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
  expect(await hasty.read(fine, 'a')).toMatchObject({ text: 'The tide table of May' })
  await expect(hasty.read({ kind: 'pdf', bytes: bomb }, 'a')).rejects.toMatchObject({ code: 'unreadable' })
  expect(await hasty.read(fine, 'a')).toMatchObject({ text: 'The tide table of May' })
  hasty.close()
})

test('parser pool: rejects one page too many at once and reads those that wait', async () => {
  const page = { kind: 'html', text: '<p>One of many' } as const
  const all = await Promise.allSettled(Array.from({ length: 50 }, (_, at) => readers.read(page, `account ${at}`)))
  const refused = all.filter(item => item.status === 'rejected')
  expect(refused.length).toBeGreaterThan(0)
  for (const item of refused) expect(item.reason).toMatchObject({ code: 'too_slow' })
  expect(all.filter(item => item.status === 'fulfilled' && item.value.text === 'One of many').length).toBe(
    50 - refused.length,
  )
})

test('parser pool: rejects waiting pages on close and starts no further thread', async () => {
  const closing = createParserPool({ enoughCharacters: 100, deadlines: patient })
  const page = { kind: 'html', text: '<p>One of many' } as const
  const all = Array.from({ length: 10 }, (_, at) =>
    closing.read(page, `account ${at}`).then(
      () => 'read',
      cause => cause.message,
    ),
  )
  closing.close()
  expect(await Promise.all(all)).toEqual(Array.from({ length: 10 }, () => 'the gateway is stopping'))
  await expect(closing.read(page, 'a')).rejects.toMatchObject({ code: 'unreadable' })
})

test('parser pool: returns at most the requested characters', async () => {
  expect((await readers.read({ kind: 'html', text: `<p>${'word '.repeat(1_000)}` }, 'a')).text.length).toBe(100)
})

test('parser pool: bounds the waiting pages of one account and accepts those of another', async () => {
  const page = { kind: 'html', text: '<p>One of many' } as const
  const own = Array.from({ length: 20 }, () => readers.read(page, 'a'))
  const other = readers.read(page, 'b')
  const results = await Promise.allSettled(own)
  // One is in progress, and eight wait.
  expect(results.map(({ status }) => status === 'fulfilled')).toEqual(results.map((_, at) => at < 9))
  expect(await other).toMatchObject({ text: 'One of many' })
})

test('parser pool: reads a page of one account while another has pages in progress and waiting', async () => {
  const small = { kind: 'html', text: '<p>Short' } as const
  const large = { kind: 'html', text: '<p>word<b>bold</b>'.repeat(15_000) } as const
  // Starts both threads.
  await Promise.all([readers.read(small, 'a'), readers.read(small, 'b')])
  const order: string[] = []
  const settled = (account: string, page: typeof small | typeof large) =>
    readers.read(page, account).then(() => order.push(account))
  const all = Array.from({ length: 9 }, () => settled('a', large))
  await Promise.all([...all, settled('b', small)])
  expect(order.indexOf('b')).toBeLessThan(7)
})
