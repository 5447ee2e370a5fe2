/**
 * `bun run train`: trains the weights in `core/weights` anew from the labelled sets beside the checkout, and prints what
 * cross-validation says of them.
 */
import { join } from 'node:path'
import { CommandFailure, command, print } from '../commands/command.ts'
import { showProgress } from '../commands/progress.ts'
import { runCommand } from '../commands/run-command.ts'
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

const train = command({
  program: 'bun run',
  name: 'train',
  about: 'Train the weights in src/core/weights anew from ../shared/data; minutes, all heads unless some are named',
  operands: {},
  further: Object.keys(heads),
  options: { check: { type: 'boolean', about: 'write nothing: compare with what is kept (then exit code 1)' } },
  async run({ further, options }) {
    const wanted = Object.entries(heads).filter(([name]) => further.length === 0 || further.includes(name))
    let done = 0
    const progress = showProgress('training', () => ({ done, of: wanted.length }))
    const different: string[] = []
    for (const [name, trainHead] of wanted) {
      const { text, isSame } = await trained(name, trainHead, options.check === true)
      done++
      if (!isSame) different.push(name)
      progress.clear()
      print(text)
      progress.draw()
    }
    progress.stop()
    if (options.check && different.length > 0)
      throw new CommandFailure(`Not as they are kept: ${different.join(', ')}.`)
  },
})

process.exitCode = await runCommand(train, process.argv.slice(2))

async function trained(name: string, trainHead: () => Promise<Trained>, isCheck: boolean) {
  const started = Bun.nanoseconds()
  const { weights, figures } = await trainHead()
  const text = `${JSON.stringify(weights)}\n`
  const file = Bun.file(join(folder, `${name}.json`))
  const isSame = (await file.exists()) && (await file.text()) === text
  if (!isCheck && !isSame) await file.write(text)
  const seconds = ((Bun.nanoseconds() - started) / 1e9).toFixed(0)
  const verdict = isSame ? 'as it was' : isCheck ? 'NOT as it is kept' : 'written'
  const head = `${name} (${seconds} s, ${(text.length / 1024).toFixed(0)} KB, ${verdict})`
  return { text: `\n${head}\n${tableOf(figures)}`, isSame }
}
