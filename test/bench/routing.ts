/**
 * `bun run bench:routing FOLDER`: what routing gains and costs on published tables of graded outputs that lie in a folder,
 * and on generated agent sessions, beside single models, published routers, chance and hindsight. Prints tables and
 * writes the figures as JSON.
 */
import { existsSync } from 'node:fs'
import { CommandFailure, command, print, runCommand } from '../../src/commands/command.ts'
import { readRows } from '../../src/training/data.ts'
import { nineModels, twoModels } from '../../src/training/gain-rows.ts'
import { type Evaluation, evaluate, type Line } from './routing/evaluation.ts'
import { generateSessions, type Session } from './routing/sessions.ts'
import { type Call, type Figures, simulate } from './routing/simulation.ts'
import { readTables } from './routing/tables.ts'
import { always, listSingles, measureChoice, perPrompt, service, strongestModel } from './routing/ways.ts'

function playSessions() {
  const sessions = generateSessions(sessionCount, sessionSeed)
  const calls: Call[] = []
  const watched = () => {
    const routing = service()
    const choose = (call: Call) => {
      calls.push(call)
      return routing.choose(call)
    }
    return { ...routing, choose }
  }
  const ways = [
    simulate(sessions, `always ${strongestModel().id}`, () => always(strongestModel())),
    simulate(sessions, 'a model per prompt (ac0e5d7c)', perPrompt),
    simulate(sessions, 'gateway-ai', watched),
  ]
  return {
    ways,
    beatenBy: findCheaperSingle(sessions.slice(0, comparedCount)),
    choice: measureChoice(calls.filter((_, at) => at % 10 === 0)),
  }
}

/** Returns the cheapest single model that solves as many tasks as the service for less; null = there is none. */
function findCheaperSingle(sessions: readonly Session[]): { readonly ours: Figures; readonly single: Figures } | null {
  const ours = simulate(sessions, 'gateway-ai', service)
  const [single] = listSingles()
    .map(({ model, effort }) =>
      simulate(sessions, `${model.id} at ${effort ?? 'its default effort'}`, () => always(model, effort)),
    )
    .filter(({ solved, costUsd }) => solved >= ours.solved && costUsd < ours.costUsd)
    .toSorted((left, right) => left.costUsd - right.costUsd)
  return single === undefined ? null : { ours, single }
}

function describeWay({ name, ...figures }: Figures, [strong]: readonly Figures[]): string {
  const less = 1 - figures.costUsd / (strong?.costUsd ?? figures.costUsd)
  return [
    `${name}: ${figures.costUsd.toFixed(2)} USD (${(100 * less).toFixed(1)}% less than the first)`,
    `${figures.solved} of ${figures.tasks} tasks solved in ${figures.calls} calls`,
    `${(100 * figures.cachedShare).toFixed(0)}% of the input cached`,
    `changes of model per task ${figures.meanChanges.toFixed(2)} (most ${figures.mostChanges})`,
    `in tool loops ${figures.loopChanges}, away from a cheaper cache ${figures.wastedCaches}, escalations ${figures.escalations}`,
  ].join('; ')
}

function describeBeaten({ ours, single }: { readonly ours: Figures; readonly single: Figures }): string {
  const costs = `${single.costUsd.toFixed(2)} instead of ${ours.costUsd.toFixed(2)} USD`
  return `BELOW the single model ${single.name}, which solves as much for less: ${costs} in the first ${comparedCount} sessions`
}

const [sessionCount, sessionSeed] = [500, 36]
/** Sessions on which the service is compared with every single model. */
const comparedCount = 50

const columns = ['', 'score', 'USD/1,000', 'USD/solved', 'arena', 'conversations', 'changes'] as const

const bench = command({
  program: 'bun run',
  name: 'bench:routing',
  about: 'Evaluate routing on the published tables of graded outputs in a folder; seconds to minutes',
  operands: { folder: 'FOLDER' },
  options: { out: { type: 'string', value: 'FILE', about: 'write the figures there as JSON; default: routing.json' } },
  async run({ operands: { folder }, options: { out = 'routing.json' } }) {
    if (!existsSync(folder)) throw new CommandFailure(`Nothing was evaluated: ${folder} does not exist.`)
    const sessions = playSessions()
    for (const figures of sessions.ways) print(describeWay(figures, sessions.ways))
    if (sessions.beatenBy !== null) print(describeBeaten(sessions.beatenBy))
    print(`choice: p50 ${sessions.choice.p50.toFixed(1)} µs, p99 ${sessions.choice.p99.toFixed(1)} µs`)
    const { tables, skipped } = readTables(folder)
    for (const file of skipped) print(`not read: ${file}`)
    if (tables.length === 0)
      throw new CommandFailure(
        `Nothing was evaluated: no file under ${folder} has a layout that docs/routing.md names.`,
      )
    const learned = await learnedTexts()
    const evaluations = tables.map(table => evaluate(table, text => learned.has(text)))
    for (const evaluation of evaluations) print(describe(evaluation))
    await Bun.write(out, `${JSON.stringify({ sessions, evaluations }, null, 2)}\n`)
    print(`written: ${out}`)
  },
})

process.exitCode = await runCommand(bench, process.argv.slice(2))

/** The prompts from which the stored weights learned; empty where the sets are not beside the checkout. */
async function learnedTexts(): Promise<ReadonlySet<string>> {
  const texts = new Set<string>()
  for (const set of [...twoModels, nineModels])
    for (const { prompt } of await readRows(set, 'prompt').catch(() => [])) texts.add(prompt)
  return texts
}

function describe({ lines, apgr, beatenBy, ...evaluation }: Evaluation): string {
  const { table, prompts, incomplete, conversations, learned } = evaluation
  const rows = [columns, ...lines.map(toCells)]
  const widths = columns.map((_, at) => Math.max(...rows.map(row => row[at]?.length ?? 0)))
  const isUsed = columns.map((_, at) => rows.slice(1).some(row => row[at] !== '-'))
  const text = rows.map(row =>
    row
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .filter((_, at) => isUsed[at])
      .join('  '),
  )
  const areas = Object.values(apgr)
  const notes = [
    conversations === 0 ? '' : `${conversations} conversations`,
    incomplete === 0 ? '' : `${incomplete} further prompts lack a model`,
    learned === 0 ? '' : `the stored weights learned from ${learned} of these prompts`,
  ].filter(note => note !== '')
  return [
    '',
    `${table}: ${[`${prompts} prompts`, ...notes].join(', ')}`,
    ...text,
    `APGR ${areas.map(area => area.toFixed(3)).join(' ')} (against the best model, by ${Object.keys(apgr).join(', ')})`,
    beatenBy === null ? '' : `BELOW the single model ${beatenBy}, which costs no more and scores higher`,
  ]
    .filter((line, at) => at === 0 || line !== '')
    .join('\n')
}

function toCells({ name, score, costPer1000, costPerSolved, arena, conversations, changes }: Line): string[] {
  const figure = (value: number | null, digits: number) => (value === null ? '-' : value.toFixed(digits))
  return [
    ...[name, figure(score, 3), figure(costPer1000, 3), figure(costPerSolved, 6), figure(arena, 2)],
    ...[figure(conversations, 3), figure(changes, 2)],
  ]
}
