/**
 * One test setup shared by all files without special needs, since starting one takes seconds. Each test finds it
 * complete and healthy.
 */
import { afterAll, beforeAll, beforeEach } from 'bun:test'
import { formats, type Rig, startRig } from './support.ts'

export let rig: Rig

beforeAll(async () => {
  rig = await startRig()
}, 240_000)
afterAll(() => rig.stop())
beforeEach(() => {
  for (const format of formats) {
    rig.play(format, null)
    rig.divert(format, null)
  }
  rig.heal()
  rig.waitBriefly(false)
})
