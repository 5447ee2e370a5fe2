/** `bun run simulate`: gains of learning, and its cost when there is nothing to learn. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { CommandFailure, command, print, runCommand } from '../../src/commands/command.ts'
import { showProgress } from '../../src/commands/progress.ts'
import { biasParameters, estimateBiases } from '../../src/learning/learned-bias.ts'
import { addEntry, emptyCell } from '../../src/learning/learning-cell.ts'
import { entry } from '../core/entries.ts'
import {
  attainable,
  gains,
  getLeader,
  leaving,
  mean,
  nothingToLearn,
  readWorld,
  type Settings,
  settings,
  type Task,
  type World,
  windows,
} from './simulation.ts'

const path = resolve(import.meta.dir, '../../../shared/data/llmrouter-9models/data.jsonl')
const simulate = command({
  program: 'bun run',
  name: 'simulate',
  about: 'Run the learning code over graded answers of nine models, and say what it gains; seconds',
  operands: {},
  options: {},
  async run() {
    if (!existsSync(path)) throw new CommandFailure(`Nothing was simulated: ${path} is not there.`)
    const rows = reportOn(readWorld(path))
    let done = 0
    const progress = showProgress('simulating', () => ({ done, of: rows.length }))
    for (const row of rows) {
      // The work blocks the event loop.
      progress.draw()
      const text = getLine(row)
      progress.clear()
      print(text)
      done++
    }
    progress.stop()
  },
})

process.exitCode = await runCommand(simulate, process.argv.slice(2))

/** A finished line, or a name with values that take time. */
type Row = string | readonly [name: string, values: () => readonly string[]]

function reportOn(world: World): readonly Row[] {
  const still = nothingToLearn(world)
  const many = { ...settings, accounts: 200 }
  const losses = once(() => gains(still, many).map(gain => -gain))
  const left = once(() => leaving(world, settings))
  return [
    `${world.tasks.length} tasks × ${settings.accounts} accounts × ${settings.requests} requests, ${world.models.length} models; one query type an account.`,
    `${percent(settings.namedShare)} of requests name a model, evenly one of the ${settings.namedModels} best in the catalogue; the others are routed by the catalogue's`,
    "figure (a model's mean over all tasks) and what was learnt. Prompts are drawn with replacement, so task means are true.",
    `Attainable gain: mean over tasks of (best model within 0.20 of the leader − the leader, ${world.models[getLeader(world)]}) = ${attainable(world).toFixed(4)}`,
    '',
    'share of the attainable gain, automatic requests',
    ['requests', () => windows.map(({ from, to }) => `${from}–${to}`)],
    ['learning', () => shares(world, settings)],
    ['  tasks left out of tuning', () => crossValidated(world, still)],
    ...[0, 0.1, 0.2, 0.3, 0.5].map(
      (namedShare): Row => [`  ${percent(namedShare)} name a model`, () => shares(world, { ...settings, namedShare })],
    ),
    '',
    'nothing to learn: prompts from all tasks alike',
    ['loss by window', () => losses().map(loss => loss.toFixed(5))],
    ['loss, all requests', () => [overall(losses()).toFixed(5)]],
    '',
    'a model gets 0.3 worse at request 601',
    ['cases', () => [String(left().cases)]],
    ['its answers until left', () => [`median ${left().median}`, `90 % ${left().ninetieth}`]],
    ['left within 60', () => [percent(left().within60)]],
    '',
    ['one entry into its cell', () => [`${getMicros(updates()).toFixed(2)} µs`]],
    [`estimates of ${world.models.length} models`, () => [`${getMicros(estimates(world)).toFixed(2)} µs`]],
  ]
}

/** Computes on first use only. */
function once<T>(work: () => T): () => T {
  let made: { readonly value: T } | null = null
  return () => {
    made ??= { value: work() }
    return made.value
  }
}

function shares(world: World, given: Settings, tasks?: readonly Task[]): string[] {
  const most = attainable(world, tasks)
  return gains(world, given, tasks).map(gain => percent(gain / most))
}

/**
 * Returns for each of two halves of the tasks the threshold that is best on the other half without losing where it
 * should not.
 */
function crossValidated(world: World, still: World): string[] {
  const halves = [0, 1].map(half => world.tasks.filter((_, index) => index % 2 === half))
  const candidates = [0.2, 0.3, 0.4, 0.5].map(threshold => ({
    ...settings,
    estimator: { ...biasParameters, threshold },
  }))
  const harmless = candidates.filter(given => overall(gains(still, { ...given, accounts: 100 })) >= -0.001)
  const found = halves.map((own, half) => {
    const others = halves[1 - half] ?? []
    const scored = harmless.map(given => ({ given, gain: overall(gains(world, given, others)) }))
    const best = scored.toSorted((left, right) => right.gain - left.gain)[0]?.given ?? settings
    return gains(world, best, own)
  })
  const most = mean(halves.map(half => attainable(world, half)))
  return windows.map((_, index) => percent(mean(found.map(gain => gain[index] ?? 0)) / most))
}

/** Returns the mean over all requests from the means of the windows. */
function overall(perWindow: readonly number[]): number {
  const sum = windows.reduce((total, { from, to }, index) => total + (to - from + 1) * (perWindow[index] ?? 0), 0)
  return sum / settings.requests
}

function updates(): (round: number) => void {
  let cell = emptyCell
  return at => {
    cell = addEntry(cell, entry({ quality: at % 2, at_ms: at }))
  }
}

function estimates({ figures }: World): (round: number) => void {
  const known = figures.map(figure => ({ figure, cell: addEntry(emptyCell, entry({ quality: 0.8, at_ms: 1 })) }))
  return at => void estimateBiases(known, at)
}

/** Returns the CPU time of this process, which other load hardly affects. */
function getMicros(work: (round: number) => void): number {
  const rounds = 50_000
  const run = () => {
    const began = process.cpuUsage()
    for (let round = 0; round < rounds; round++) work(round)
    const { user, system } = process.cpuUsage(began)
    return (user + system) / rounds
  }
  return Math.min(run(), run(), run())
}

function getLine(row: Row): string {
  if (typeof row === 'string') return row
  const [name, values] = row
  return `${name.padEnd(28)}${values()
    .map(value => value.padStart(12))
    .join('')}`
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
