/**
 * Generates agent sessions from a seed: tasks of three levels, tool loops, topic changes, short follow-ups, pauses beyond
 * the lifetime of a prompt cache. The texts and the shares are this file's own, and no rule of routing was fitted on them.
 */
import type { Level } from '../../../src/models/capability-levels.ts'

/** One user turn and the model calls that it takes if all succeed: `toolSteps` calls of tools, then an output. */
export type Turn = {
  readonly text: string
  /** Milliseconds since the output before. */
  readonly pauseMs: number
  readonly toolSteps: number
  /** Difficulty (0–1) of each call: a model of this capability solves it in half of the cases. */
  readonly difficulties: readonly number[]
  /** Tokens of each call's output without reasoning. */
  readonly outputTokens: readonly number[]
  /** Characters of each tool result. */
  readonly resultCharacters: readonly number[]
}

/** Turns about one topic, at the level that a senior engineer would choose. */
export type Task = { readonly level: Level; readonly turns: readonly Turn[] }

export type Session = {
  readonly id: string
  readonly system: string
  readonly hasTools: boolean
  readonly tasks: readonly Task[]
}

/** Returns a generator of numbers from 0 to 1 (mulberry32), the same for each seed. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const requests: Readonly<Record<Level, readonly string[]>> = {
  light: [
    'What does {file} do?',
    'Rename the option {noun}Limit to max{noun} in {file}.',
    'List the TODO comments in {file}.',
    'On which port does the {service} listen?',
    'Translate the error text in {file} to German.',
    'Add a log line where the {service} starts.',
    'Summarize {file} in two sentences.',
    'Which files mention {noun}?',
    'Set the version in {file} to 2.4.1.',
    'Return the numbers of the open {noun} entries as a JSON array.',
    'Fix the typo in the title of {file}.',
    'Show me the last five commits that touched the {service}.',
    'What is the default timeout of the {service}?',
    'Sort the imports in {file}.',
    'Welche Version von {service} läuft hier?',
    'Turn the table in {file} into CSV.',
  ],
  middle: [
    'Write unit tests for {file}, including the error paths.',
    'Add pagination to the endpoint that lists {noun} entries, and adapt its client.',
    'The query over {noun} entries takes 4 s. Find out why and make it faster.',
    'Convert {file} from callbacks to async functions.',
    'Write a script that imports {noun} entries from CSV, with validation and a report of bad rows.',
    'Draft a reply to a customer whose {noun} was charged twice, and say what we do about it.',
    'Split {file} into smaller functions without changing its behavior.',
    'Add a retry with backoff to the client of the {service}.',
    'Explain how a request passes through the {service}, with the files involved.',
    'Add a filter by date to the {noun} page and update the docs.',
    'Review the last change to {file} and name the problems.',
    'Erstelle einen Plan für das Upgrade von {service} auf die neue Hauptversion.',
  ],
  strong: [
    'Find the race that makes the {service} lose {noun} entries under load, and fix it with a regression test.',
    'Design the migration of the {noun} table to shards without downtime, with rollback at every step, and start it.',
    'Prove that the lease protocol of the {service} never has two owners, or find the interleaving that breaks it.',
    'The {service} counts {noun} entries twice after a failover. Find the cause across the services and fix it.',
    'Implement a lock-free queue for {noun} entries and justify the memory ordering of every access.',
    'Redesign the authorization of the {service} so that tenants can rotate keys without an outage; include a threat model.',
    'Build an incremental compiler pass for {file} that keeps its results correct after arbitrary edits.',
    'Work out an exactly-once delivery of {noun} events between the {service} and the ledger, and argue why it holds.',
    'Memory of the {service} grows by 2 GB a day only in production. Find the leak from the heap summaries and fix it.',
    'Entwirf die Nebenläufigkeit von {service} neu, sodass Updates von {noun} nie verloren gehen, und belege es.',
  ],
}

const slots: Readonly<Record<string, readonly string[]>> = {
  file: [
    'src/orders/invoice.ts',
    'lib/session.rb',
    'billing/tax.py',
    'README.md',
    'config/app.yaml',
    'pkg/queue/worker.go',
  ],
  service: ['billing service', 'search indexer', 'payment worker', 'session store', 'mail relay', 'import job'],
  noun: ['invoice', 'order', 'refund', 'booking', 'subscriber', 'shipment'],
}

/** Turns that continue a task, by how hard they are beside it. */
const followUps = [
  { text: 'ok, go on', share: 1 },
  { text: 'do it', share: 1 },
  { text: 'continue', share: 1 },
  { text: 'now the same for the other module', share: 0.8 },
  { text: 'now add a test for it', share: 0.7 },
  { text: 'weiter', share: 1 },
  { text: 'shorter please', share: 0.2 },
  { text: 'why?', share: 0.6 },
  { text: 'thanks', share: 0.02 },
  { text: 'great, commit it', share: 0.1 },
] as const

/** Difficulty of a task by level: from, to. */
const difficulty: Readonly<Record<Level, readonly [number, number]>> = {
  light: [0, 0.12],
  middle: [0.15, 0.4],
  strong: [0.45, 0.75],
}
const toolSteps: Readonly<Record<Level, readonly [number, number]>> = { light: [0, 3], middle: [2, 8], strong: [5, 18] }
const outputLength: Readonly<Record<Level, readonly [number, number]>> = {
  light: [40, 300],
  middle: [200, 900],
  strong: [400, 1_500],
}
/** Levels of tasks: most work of an agent is small. */
const levelShares: Readonly<Record<Level, number>> = { light: 0.45, middle: 0.35, strong: 0.2 }

const instructions =
  'Read the files before you change them. Keep to the style of the project. Run the tests after each change. Ask if a request is unclear. '

/** Returns `count` sessions, the same for each seed. */
export function generateSessions(count: number, seed: number): readonly Session[] {
  const random = createRandom(seed)
  const between = (from: number, to: number) => from + (to - from) * random()
  const whole = (from: number, to: number) => Math.floor(between(from, to + 1))
  const pick = <T>(items: readonly T[]): T => {
    const item = items[Math.floor(random() * items.length)]
    if (item === undefined) throw new Error('nothing to pick from')
    return item
  }
  const fill = (text: string) => text.replace(/\{(\w+)\}/g, (_, slot: string) => pick(slots[slot] ?? [slot]))
  const pickLevel = (): Level => {
    const chance = random()
    if (chance < levelShares.light) return 'light'
    return chance < levelShares.light + levelShares.middle ? 'middle' : 'strong'
  }
  // Most turns follow within a minute or two; some after the 5 minutes that providers keep a cache, a few after an hour.
  const pause = () => {
    const kind = random()
    if (kind < 0.8) return between(10_000, 150_000)
    return kind < 0.95 ? between(330_000, 2_400_000) : between(3_700_000, 9_000_000)
  }
  const newTurn = (text: string, level: Level, hasTools: boolean, share: number): Turn => {
    const steps = hasTools && share > 0.05 ? Math.round(whole(...toolSteps[level]) * Math.max(share, 0.3)) : 0
    const hardness = between(...difficulty[level]) * share
    const calls = Array.from({ length: steps + 1 })
    return {
      text,
      ...{ pauseMs: pause(), toolSteps: steps },
      // Single steps of a loop are easier than the task; its last call is as hard as the task.
      difficulties: calls.map((_, at) => hardness * (at === steps ? 1 : between(0.3, 0.9))),
      outputTokens: calls.map((_, at) => (at === steps ? whole(...outputLength[level]) : whole(40, 250))),
      resultCharacters: Array.from({ length: steps }, () => Math.round(200 * 2 ** between(0, 6))),
    }
  }
  const newTask = (hasTools: boolean): Task => {
    const level = pickLevel()
    const turns = [newTurn(fill(pick(requests[level])), level, hasTools, 1)]
    for (let more = Math.floor(between(0, 3)); more > 0; more--) {
      const { text, share } = pick(followUps)
      turns.push(newTurn(text, level, hasTools, share))
    }
    return { level, turns }
  }
  return Array.from({ length: count }, (_, at): Session => {
    const hasTools = random() < 0.75
    const length = hasTools ? whole(30, 220) : whole(0, 12)
    const system = hasTools
      ? `You are a coding agent with tools.\n${instructions.repeat(length)}`
      : instructions.repeat(length)
    return {
      id: `${seed} ${at}`,
      system,
      hasTools,
      tasks: Array.from({ length: whole(1, 6) }, () => newTask(hasTools)),
    }
  })
}
