/**
 * `bun run train`: trains the weights in `text/weights` from the labeled sets beside the checkout, and prints the results on
 * sources left out.
 */
import { join } from 'node:path'
import { CommandFailure, command, print, runCommand } from '../commands/command.ts'
import { readEffort } from './effort.ts'
import { readFreshness } from './freshness.ts'
import { readGain } from './gain.ts'
import { readModeration, readWorld } from './harm.ts'
import { readQueryTypes } from './query-types.ts'
import { type TrainingJob, trainingDigest } from './training-job.ts'

/**
 * Training jobs by classifier, each reading its data from the labeled sets. Weights are stored in `text/weights` under
 * the same name.
 */
export const courses: Readonly<Record<string, () => Promise<TrainingJob>>> = {
  'query-types': readQueryTypes,
  freshness: readFreshness,
  gain: readGain,
  effort: readEffort,
  safety: readModeration,
  world: readWorld,
}

/** Returns the digest of the examples that stored weights (a file's text) were trained on; null = not stated. */
export function examplesIn(text: string): string | null {
  return /^\{"examples":"(\w+)"/.exec(text)?.[1] ?? null
}

const folder = join(import.meta.dir, '../text/weights')

const train = command({
  program: 'bun run',
  name: 'train',
  about: 'Train the weights in src/text/weights again from ../shared/data; minutes, all heads unless some are named',
  operands: {},
  further: Object.keys(courses),
  options: {
    check: {
      type: 'boolean',
      about: 'write nothing; exit code 0 where all comes out as it is kept, bit for bit, else 1',
    },
  },
  async run({ further, options }) {
    const wanted = Object.entries(courses).filter(([name]) => further.length === 0 || further.includes(name))
    const different: string[] = []
    for (const [name, read] of wanted) {
      const { text, isSame } = await trained(name, read, options.check === true)
      if (!isSame) different.push(name)
      print(text)
    }
    if (options.check && different.length > 0)
      throw new CommandFailure(`Not as they are kept: ${different.join(', ')}.`)
  },
})

if (import.meta.main) process.exitCode = await runCommand(train, process.argv.slice(2))

async function trained(name: string, read: () => Promise<TrainingJob>, isCheck: boolean) {
  const started = Bun.nanoseconds()
  const job = await read()
  const examples = trainingDigest(job)
  const { weights, figures } = await job.learn()
  const text = `${JSON.stringify({ examples, ...weights })}\n`
  const file = Bun.file(join(folder, `${name}.json`))
  const before = (await file.exists()) ? await file.text() : null
  const isSame = before === text
  if (!isCheck && !isSame) await file.write(text)
  const seconds = ((Bun.nanoseconds() - started) / 1e9).toFixed(0)
  const difference =
    before !== null && examplesIn(before) === examples ? 'from the same examples' : 'from other examples'
  const verdict = isSame ? 'as it was' : isCheck ? `NOT as it is kept, ${difference}` : `written, ${difference}`
  const head = `${name} (${seconds} s, ${(text.length / 1024).toFixed(0)} KB, ${verdict})`
  return { text: `\n${head}\n${figures.join('\n')}`, isSame }
}
