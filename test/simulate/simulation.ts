/**
 * Simulates accounts that send requests and learn through the project's own code. Prompts and grades are those of nine
 * models on fourteen tasks (`llmrouter-9models`).
 */
import { readFileSync } from 'node:fs'
import { applyLearnedBias, explore, type LearnedBias } from '../../src/learning/apply-bias.ts'
import { type BiasParameters, biasParameters, estimateBiases } from '../../src/learning/learned-bias.ts'
import { addEntry, emptyCell, type LearningCell } from '../../src/learning/learning-cell.ts'
import { entry } from '../core/entries.ts'

/** Grades (0–1) of every prompt of a task, in the order of `World.models`. */
export type Task = { readonly name: string; readonly grades: readonly (readonly number[])[]; readonly means: number[] }

export type World = {
  readonly models: readonly string[]
  readonly tasks: readonly Task[]
  /** The catalog figure of each model: its mean over the tasks, equally weighted. It is also its score. */
  readonly figures: readonly number[]
}

/** Reads the set. Throws if it is missing. */
export function readWorld(path: string): World {
  const rows = readFileSync(path, 'utf8')
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line) as { group: string; scores: Record<string, number> })
  const models = Object.keys(rows[0]?.scores ?? {}).sort()
  const tasks = [...Map.groupBy(rows, row => row.group)].map(([name, ofTask]) =>
    getTask(
      name,
      ofTask.map(({ scores }) => models.map(model => scores[model] ?? 0)),
    ),
  )
  return getWorld(models, tasks)
}

export function getTask(name: string, grades: readonly (readonly number[])[]): Task {
  return { name, grades, means: (grades[0] ?? []).map((_, model) => mean(grades.map(row => row[model] ?? 0))) }
}

export function getWorld(models: readonly string[], tasks: readonly Task[]): World {
  return { models, tasks, figures: models.map((_, model) => mean(tasks.map(task => task.means[model] ?? 0))) }
}

export type Settings = {
  readonly accounts: number
  readonly requests: number
  /** Share of requests that name a model: evenly one of the `namedModels` best in the catalog. */
  readonly namedShare: number
  readonly namedModels: number
  readonly estimator: BiasParameters
}

export const settings: Settings = {
  accounts: 12,
  requests: 1_000,
  namedShare: 0.4,
  namedModels: 5,
  estimator: biasParameters,
}

/** Requests are numbered from 1; both ends belong to the window. */
export const windows = [
  { from: 1, to: 100 },
  { from: 101, to: 200 },
  { from: 201, to: 500 },
  { from: 501, to: 1_000 },
] as const

/** Returns the gain of the best model within the bound over the catalog's best, averaged over tasks. */
export function attainable(world: World, tasks: readonly Task[] = world.tasks): number {
  const leader = getLeader(world)
  const within = (model: number) => figure(world, leader) - figure(world, model) <= 0.2
  return mean(tasks.map(({ means }) => Math.max(...means.filter((_, model) => within(model))) - (means[leader] ?? 0)))
}

/**
 * Returns the mean gain in grade over always using the catalog's best, for automatic requests, by window. Counts the
 * mean grade of the chosen model in the task, so that chance with single prompts has no effect.
 */
export function gains(world: World, given: Settings, tasks: readonly Task[] = world.tasks): number[] {
  const sums = windows.map(() => ({ gain: 0, count: 0 }))
  for (const task of tasks)
    for (let number = 0; number < given.accounts; number++) {
      const account = newAccount(world, given, getSeed(task.name) + number)
      for (let request = 1; request <= given.requests; request++) {
        const { model, isNamed } = account.choose()
        account.hear(model, account.pick(task.grades)[model] ?? 0)
        const sum = sums[windows.findIndex(({ from, to }) => request >= from && request <= to)]
        if (isNamed || sum === undefined) continue
        sum.gain += (task.means[model] ?? 0) - (task.means[getLeader(world)] ?? 0)
        sum.count++
      }
    }
  return sums.map(({ gain, count }) => gain / Math.max(1, count))
}

/** Returns data of an account whose prompts come from all tasks alike, where the models match the catalog. */
export function nothingToLearn(world: World): World {
  // Every task has the same weight, whatever its size.
  const grades = world.tasks.flatMap(task =>
    Array.from({ length: 1_000 }, (_, index) => task.grades[index % task.grades.length] ?? []),
  )
  return getWorld(world.models, [getTask('all', grades)])
}

export type Leaving = {
  readonly cases: number
  readonly median: number
  readonly ninetieth: number
  readonly within60: number
}

/**
 * Returns how many responses of a model an account needs to stop using it after its mean grade falls by 0.3 at request
 * 601. Counted only if another model within the bound is then better by at least 0.1.
 */
export function leaving(world: World, given: Settings): Leaving {
  const counts: number[] = []
  for (const task of world.tasks)
    for (let number = 0; number < given.accounts; number++) {
      const count = answersUntilLeft(world, given, task, getSeed(task.name) + 1_000 + number)
      if (count !== null) counts.push(count)
    }
  counts.sort((left, right) => left - right)
  const at = (share: number) => counts[Math.floor(share * (counts.length - 1))] ?? Number.NaN
  return {
    cases: counts.length,
    median: at(0.5),
    ninetieth: at(0.9),
    within60: counts.filter(count => count <= 60).length / counts.length,
  }
}

function answersUntilLeft(world: World, given: Settings, task: Task, seed: number): number | null {
  const account = newAccount(world, given, seed)
  for (let request = 1; request <= 600; request++) {
    const { model } = account.choose()
    account.hear(model, account.pick(task.grades)[model] ?? 0)
  }
  const worse = account.leader()
  const before = task.means[worse] ?? 0
  const others = task.means.filter((_, model) => model !== worse && figure(world, worse) - figure(world, model) <= 0.2)
  if (before < 0.3 || Math.max(...others) < before - 0.3 + 0.1) return null
  let answers = 0
  for (let request = 1; request <= 2_000 && account.leader() === worse; request++) {
    const { model } = account.choose()
    const grade = account.pick(task.grades)[model] ?? 0
    if (model === worse) answers++
    account.hear(model, model === worse && account.random() < 0.3 / before ? 0 : grade)
  }
  return answers
}

/** Creates an account with one query type, with its learning data and routing. */
export function newAccount(world: World, given: Settings, seed: number) {
  const random = getRandom(seed)
  const cells: LearningCell[] = world.models.map(() => emptyCell)
  const scored = world.figures.map((score, model) => ({ model, score })).sort((left, right) => right.score - left.score)
  const namable = scored.slice(0, given.namedModels)
  let leans: LearnedBias[] = world.models.map(() => ({ bias: 0, entries: 0 }))
  let ordered = scored
  let at = 0
  const findLean = ({ model }: { readonly model: number }) => leans[model] ?? null
  const leader = () => ordered[0]?.model ?? 0

  return {
    random,
    leader,
    leans: () => leans,
    pick: <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T,
    choose() {
      if (random() < given.namedShare)
        return { model: namable[Math.floor(random() * namable.length)]?.model ?? 0, isNamed: true }
      return { model: explore(ordered, findLean, () => true, random).ordered[0]?.model ?? 0, isNamed: false }
    },
    hear(model: number, quality: number) {
      // A hundred requests per day.
      at += 864_000
      cells[model] = addEntry(cells[model] ?? emptyCell, entry({ ...sample, at_ms: at, quality }))
      const known = cells.map((cell, index) => ({ figure: figure(world, index), cell }))
      leans = estimateBiases(known, at, given.estimator).map(({ bias }, index) => ({
        bias,
        entries: cells[index]?.entries ?? 0,
      }))
      ordered = applyLearnedBias(scored, findLean)
    },
  }
}

const sample = { latency_ms: 1_000, output_tokens: 100 }

export function getLeader({ figures }: World): number {
  return figures.indexOf(Math.max(...figures))
}

const figure = ({ figures }: World, model: number) => figures[model] ?? 0

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function getSeed(name: string): number {
  return Number(Bun.hash.crc32(name))
}

/** Returns a deterministic generator of numbers from 0 to 1 (mulberry32). */
export function getRandom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
