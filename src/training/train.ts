/**
 * `bun run train`: trains the weights in `core/weights` anew from the labelled sets beside the checkout, and prints what
 * cross-validation says of them. With `--check` nothing is written: what comes out is compared with what is there. Names of
 * heads as further words train only these.
 */
import { join } from 'node:path'
import { tableOf } from './figures.ts'
import { trainFreshness } from './freshness.ts'
import { trainGain } from './gain.ts'
import { trainQueryTypes } from './query-types.ts'
import { trainSafety } from './safety.ts'
import type { Trained } from './trained.ts'

const heads: Readonly<Record<string, () => Promise<Trained>>> = {
  'query-types': trainQueryTypes,
  freshness: trainFreshness,
  gain: trainGain,
  safety: trainSafety,
}

const folder = join(import.meta.dir, '../core/weights')
const words = process.argv.slice(2)
const isCheck = words.includes('--check')
const wanted = words.filter(word => !word.startsWith('--'))

for (const [name, trainHead] of Object.entries(heads)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  const started = Bun.nanoseconds()
  const { weights, figures } = await trainHead()
  const text = `${JSON.stringify(weights)}\n`
  const file = Bun.file(join(folder, `${name}.json`))
  const isSame = (await file.exists()) && (await file.text()) === text
  if (!isCheck && !isSame) await file.write(text)
  const seconds = ((Bun.nanoseconds() - started) / 1e9).toFixed(0)
  const verdict = isSame ? 'as it was' : isCheck ? 'NOT as it is kept' : 'written'
  process.stdout.write(
    `\n${name} (${seconds} s, ${(text.length / 1024).toFixed(0)} KB, ${verdict})\n${tableOf(figures)}\n`,
  )
  if (isCheck && !isSame) process.exitCode = 1
}
