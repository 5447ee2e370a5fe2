/** Types, format and lint: `bun run check` as a test, so that no commit lacks it. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'

const root = join(import.meta.dir, '..')

function said(command: readonly string[]): string {
  const run = Bun.spawnSync([...command], { cwd: root, stdout: 'pipe', stderr: 'pipe' })
  return run.exitCode === 0 ? '' : `${run.stdout}${run.stderr}`
}

test('tsc: reports nothing', () => {
  // Several checkers would each repeat what the files have in common. The next run checks only what has changed.
  const state = ['--incremental', '--tsBuildInfoFile', 'node_modules/.cache/gateway-ai.tsbuildinfo']
  expect(said(['node_modules/.bin/tsc', '--noEmit', '--singleThreaded', ...state])).toBe('')
}, 120_000)

test('tsc: reports nothing for the dashboard', () => {
  expect(said(['node_modules/.bin/tsc', '--noEmit', '--singleThreaded', '--project', 'src/dashboard'])).toBe('')
}, 120_000)

test('biome: reports nothing', () => {
  expect(said(['node_modules/.bin/biome', 'check', '--max-diagnostics=20', '.'])).toBe('')
}, 120_000)
