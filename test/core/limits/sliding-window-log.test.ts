import { expect, test } from 'bun:test'
import { createWindowLog } from '../../../src/core/limits/rate-limits.ts'

test('createWindowLog: removes the last time and keeps earlier ones', () => {
  const log = createWindowLog(1_000)
  log.takeBack()
  log.add(100)
  log.add(300)
  log.takeBack()
  expect(log.ages(400)).toEqual([300])
  log.add(500)
  expect([log.count(600), log.waitUntilUnder(2, 600)]).toEqual([2, 500])
})
