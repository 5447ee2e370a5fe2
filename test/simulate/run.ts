/** `bun run simulate`: what learning gains, and what it costs where there is nothing to learn. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { CommandFailure, command } from '../../src/commands/command.ts'
import { runCommand } from '../../src/commands/run-command.ts'
import { estimate, estimator } from '../../src/core/bias.ts'
import { emptyCell, learn } from '../../src/core/learning.ts'
import {
  attainable,
  gains,
  leaderOf,
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
const line = (text = '') => process.stdout.write(`${text}\n`)

const simulate = command({
  program: 'bun run',
  name: 'simulate',
  about: 'Run the learning code over graded answers of nine models, and say what it gains; about a minute',
  operands: {},
  options: {},
  async run() {
    if (!existsSync(path)) throw new CommandFailure(`Nothing was simulated: ${path} is not there.`)
    report(readWorld(path))
  },
})

process.exitCode = await runCommand(simulate, process.argv.slice(2))

function report(world: World): void {
  const still = nothingToLearn(world)
  line(
    `${world.tasks.length} tasks × ${settings.accounts} accounts × ${settings.requests} requests, ${world.models.length} models; one query type an account.`,
  )
  line(
    `${percent(settings.namedShare)} of requests name a model, evenly one of the ${settings.namedModels} best in the catalogue; the others are routed by the catalogue's`,
  )
  line(
    "figure (a model's mean over all tasks) and what was learnt. Prompts are drawn with replacement, so task means are true.",
  )
  line(
    `Attainable gain: mean over tasks of (best model within 0.20 of the leader − the leader, ${world.models[leaderOf(world)]}) = ${attainable(world).toFixed(4)}`,
  )
  line()
  line('share of the attainable gain, automatic requests')
  row(
    'requests',
    windows.map(({ from, to }) => `${from}–${to}`),
  )
  row('learning', shares(world, settings))
  row('  tasks left out of tuning', crossValidated(world, still))
  for (const namedShare of [0, 0.1, 0.2, 0.3, 0.5])
    row(`  ${percent(namedShare)} name a model`, shares(world, { ...settings, namedShare }))
  line()
  line('nothing to learn: prompts from all tasks alike')
  const many = { ...settings, accounts: 200 }
  const losses = gains(still, many).map(gain => -gain)
  row(
    'loss by window',
    losses.map(loss => loss.toFixed(5)),
  )
  row('loss, all requests', [overall(losses).toFixed(5)])
  line()
  const left = leaving(world, settings)
  line(`a model gets 0.3 worse at request 601 (${left.cases} cases)`)
  row('its answers until left', [`median ${left.median}`, `90 % ${left.ninetieth}`])
  row('left within 60', [percent(left.within60)])
  line()
  const { update, estimates } = micros(world)
  row('one entry into its cell', [`${update.toFixed(2)} µs`])
  row(`estimates of ${world.models.length} models`, [`${estimates.toFixed(2)} µs`])
}

function shares(world: World, given: Settings, tasks?: readonly Task[]): string[] {
  const most = attainable(world, tasks)
  return gains(world, given, tasks).map(gain => percent(gain / most))
}

/** For each of two halves of the tasks, the threshold that does best on the other half without losing where it should not. */
function crossValidated(world: World, still: World): string[] {
  const halves = [0, 1].map(half => world.tasks.filter((_, index) => index % 2 === half))
  const candidates = [0.2, 0.3, 0.4, 0.5].map(threshold => ({
    ...settings,
    estimator: { ...estimator, threshold },
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

/** Mean over all requests, from the means of the windows. */
function overall(perWindow: readonly number[]): number {
  const sum = windows.reduce((total, { from, to }, index) => total + (to - from + 1) * (perWindow[index] ?? 0), 0)
  return sum / settings.requests
}

/** CPU time of this process, so that neighbours on the machine count for little. */
function micros({ figures }: World) {
  const entry = {
    quality: 0.8,
    latencyMs: 900,
    firstTokenMs: 200,
    costMicrocents: 1_000,
    inputTokens: 100,
    outputTokens: 300,
    automatic: true,
    influenced: false,
    enhanced: false,
  }
  const known = figures.map(figure => ({ figure, cell: learn(emptyCell, { ...entry, at: 1 }) }))
  let cell = emptyCell
  const update = (at: number) => {
    cell = learn(cell, { ...entry, quality: at % 2, at })
  }
  return { update: microsOf(update), estimates: microsOf(at => void estimate(known, at)) }
}

function microsOf(work: (round: number) => void): number {
  const rounds = 50_000
  const run = () => {
    const began = process.cpuUsage()
    for (let round = 0; round < rounds; round++) work(round)
    const { user, system } = process.cpuUsage(began)
    return (user + system) / rounds
  }
  return Math.min(run(), run(), run())
}

function row(name: string, values: readonly string[]): void {
  line(`${name.padEnd(28)}${values.map(value => value.padStart(12)).join('')}`)
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
