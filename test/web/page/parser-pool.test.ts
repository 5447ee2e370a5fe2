import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createReaders } from '../../../src/web/page/parser-pool.ts'
import { minimalPdf, pdfBomb } from '../pdfs.ts'

setDefaultTimeout(30_000)

const readers = createReaders({ enoughCharacters: 100 })
afterAll(() => readers.close())

test('a document that unpacks without end is given up, its thread with it, and the next is read by another', async () => {
  const bomb = pdfBomb()
  expect(bomb.length).toBeLessThan(20_000)
  await expect(readers.read({ kind: 'pdf', bytes: bomb })).rejects.toMatchObject({ code: 'unreadable' })
  expect(await readers.read({ kind: 'pdf', bytes: minimalPdf })).toMatchObject({ text: 'The tide table of May' })
  expect(await readers.read({ kind: 'html', text: '<title>T</title><p>Fine' })).toEqual({ title: 'T', text: 'Fine' })
})

test('only so many pages wait: one more is told so at once, and those that wait are read', async () => {
  const page = { kind: 'html', text: '<p>One of many' } as const
  const all = await Promise.allSettled(Array.from({ length: 50 }, () => readers.read(page)))
  const refused = all.filter(one => one.status === 'rejected')
  expect(refused.length).toBeGreaterThan(0)
  for (const one of refused) expect(one.reason).toMatchObject({ code: 'too_slow' })
  expect(all.filter(one => one.status === 'fulfilled' && one.value.text === 'One of many').length).toBe(
    50 - refused.length,
  )
})

test('whoever waits when the readers are closed is told so at once, and no thread begins after that', async () => {
  const closing = createReaders({ enoughCharacters: 100 })
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

test('no more of a page is handed on than is wanted', async () => {
  expect((await readers.read({ kind: 'html', text: `<p>${'word '.repeat(1_000)}` })).text.length).toBe(100)
})
