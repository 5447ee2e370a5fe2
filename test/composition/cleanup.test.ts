import { expect, test } from 'bun:test'
import { runCleanups } from '../../src/composition/cleanup.ts'
import { oneTurn } from '../harness/moved-clock.ts'

test('runCleanups: runs all cleanups once, newest first, also after a failure', async () => {
  const gone: string[] = []
  const undo = [
    () => gone.push('oldest'),
    async () => {
      await oneTurn()
      throw new Error('stuck')
    },
    () => gone.push('newest'),
  ]
  await expect(runCleanups(undo)).rejects.toThrow('stuck')
  expect(gone).toEqual(['newest', 'oldest'])
  await runCleanups(undo)
  expect(gone).toEqual(['newest', 'oldest'])
})
