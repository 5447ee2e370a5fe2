/**
 * Plays agent sessions against simulated models and counts their cost with catalog prices and the providers' cache rules.
 * Every way of routing works on a task until it is solved or abandoned, so that costs compare at equal level of outputs.
 */
import type { ChatRequest, Message, ReasoningEffort } from '../../../src/core/chat/chat.ts'
import { fullName, type Model } from '../../../src/core/models/models.ts'
import { ratesAt } from '../../../src/core/models/pricing.ts'
import { getCost } from '../../../src/core/usage/money.ts'
import { getPromptCache } from '../../../src/models/catalog.ts'
import { askWith } from '../../harness/ask.ts'
import type { Session, Task, Turn } from './sessions.ts'
import { tokensIn } from './tables.ts'

/** A call that a way of routing has to choose a model for. */
export type Call = {
  readonly request: ChatRequest
  /** The gateway's own estimate. */
  readonly inputTokens: number
  /** Epoch milliseconds. */
  readonly at: number
}
export type Choice = { readonly model: Model; readonly effort: ReasoningEffort | null }

/** A way of routing, with what it knows of one session. `answered` tells what the upstream reported. */
export type Routing = {
  choose(call: Call): Choice
  answered?(call: Call, choice: Choice, usage: Usage): void
}

export type Usage = {
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
}

export type Figures = {
  readonly name: string
  readonly costUsd: number
  readonly calls: number
  readonly tasks: number
  readonly solved: number
  /** Of all input tokens, read from a prompt cache. */
  readonly cachedShare: number
  /** Highest and mean number of changes of model per task, those at its first call not counted. */
  readonly mostChanges: number
  readonly meanChanges: number
  /** Changes of model or effort between a tool call and the call that receives its result. */
  readonly loopChanges: number
  /** Changes to a model of no higher quality while the request would have been cheaper with the cached one. */
  readonly wastedCaches: number
  /** Changes to a model of higher quality while the one before was cached and cheaper: escalations. */
  readonly escalations: number
}

/**
 * Share of a model's published quality that it keeps at an effort. Published quality is that of the highest effort. Of
 * models with two LiveBench scores (2026-07-01, in the catalog) no reasoning keeps 0.46 to 0.79, and `high` 0.95 to 0.98
 * of `xhigh`; the values between are interpolated.
 */
const keptQuality: Readonly<Record<ReasoningEffort, number>> = {
  ...{ none: 0.63, minimal: 0.7, low: 0.82, medium: 0.92, high: 0.96, xhigh: 1, max: 1 },
}
/** Reasoning tokens of a call of middle difficulty, by effort: this simulation's own figures. */
const reasoningLength: Readonly<Record<ReasoningEffort, number>> = {
  ...{ none: 0, minimal: 100, low: 300, medium: 1_000, high: 2_500, xhigh: 5_000, max: 8_000 },
}

/** The provider's default: models that cannot do without reasoning take `medium`. */
function actualEffort({ parameters: { reasoning, efforts } }: Model, effort: ReasoningEffort | null): ReasoningEffort {
  if (effort !== null) return effort
  const isOptional =
    ['none', 'budget'].includes(reasoning.kind) ||
    (reasoning.kind === 'effort' && efforts.includes('none')) ||
    (reasoning.kind === 'adaptive' && reasoning.off === 'disabled')
  return isOptional ? 'none' : 'medium'
}

/** An estimate of the input as a multiple of what its provider counts, as far off as one was seen in practice. */
const estimated = 1.5

type Cached = { readonly tokens: number; readonly until: number }

/** How much better a model must be than a call is hard, for it to succeed in nearly all cases. */
const spread = 0.06
const slack = 0.08
/** Of failed tool calls, the share whose result is an error; the others appear in the output only. */
const visibleErrors = 0.7
/** An agent reports to its user after this many errors of a step; the task is abandoned after `mostAttempts`. */
const [errorsPerLoop, mostAttempts] = [3, 9]
const complaints = [
  'That did not work, the same error.',
  'still failing',
  'That is wrong, try again.',
  'geht immer noch nicht',
]

/** Returns the figures of a way of routing over the sessions, which share nothing. */
export function simulate(sessions: readonly Session[], name: string, create: () => Routing): Figures {
  const run = new Run()
  for (const session of sessions) run.play(session, create())
  return run.getFigures(name)
}

class Run {
  private microcents = 0
  private calls = 0
  private solved = 0
  private inputTokens = 0
  private cachedTokens = 0
  private readonly changes: number[] = []
  private loopChanges = 0
  private wastedCaches = 0
  private escalations = 0

  // State of the session that is being played.
  private id = ''
  private hasTools = false
  private messages: Message[] = []
  private tokens = 0
  private now = 0
  private readonly caches = new Map<string, Cached>()
  private last: Choice | null = null
  private taskChanges = 0

  play(session: Session, routing: Routing): void {
    this.id = session.id
    this.hasTools = session.hasTools
    this.messages = []
    this.tokens = 0
    this.now = startedAt
    this.caches.clear()
    this.last = null
    if (session.system !== '') this.add({ role: 'system', text: session.system })
    for (const [at, task] of session.tasks.entries()) {
      this.taskChanges = 0
      if (this.work(routing, task, `${session.id} ${at}`)) this.solved++
      this.changes.push(this.taskChanges)
    }
  }

  getFigures(name: string): Figures {
    const { changes } = this
    return {
      name,
      costUsd: this.microcents / 1e8,
      ...{ calls: this.calls, tasks: changes.length, solved: this.solved },
      cachedShare: this.cachedTokens / Math.max(1, this.inputTokens),
      mostChanges: Math.max(0, ...changes),
      meanChanges: changes.reduce((sum, count) => sum + count, 0) / Math.max(1, changes.length),
      ...{ loopChanges: this.loopChanges, wastedCaches: this.wastedCaches, escalations: this.escalations },
    }
  }

  private work(routing: Routing, task: Task, key: string): boolean {
    for (const [at, turn] of task.turns.entries()) {
      this.now += turn.pauseMs
      this.ask(turn.text)
      if (!this.answer(routing, turn, `${key} ${at}`, at === 0)) return false
    }
    return true
  }

  /** Plays the calls of one turn, with retries after failures. Returns false if it was abandoned. */
  private answer(routing: Routing, turn: Turn, key: string, isNewTask: boolean): boolean {
    let hidden = false
    let attempts = 0
    for (let step = 0; step <= turn.toolSteps; ) {
      const isFirst = step === 0 && attempts === 0
      const isLast = step === turn.toolSteps
      const inLoop = this.messages.at(-1)?.role === 'tool'
      const isRight = this.attempt(routing, turn, step, `${key} ${step} ${attempts}`, {
        inLoop,
        isNewTask: isNewTask && isFirst,
      })
      const chance = draw(`${key} ${step} ${attempts} seen`)
      attempts++
      if (isLast) {
        this.add({ role: 'assistant', ...plainAssistant, text: filler(turn.outputTokens[step] ?? 0) })
        if (isRight && !hidden) return true
        if (attempts >= mostAttempts) return false
        hidden = false
        this.complain(chance)
        continue
      }
      const isError = !isRight && chance < visibleErrors
      if (!isRight && !isError) hidden = true
      this.useTool(`${this.calls}`, turn, step, isError)
      if (!isError) {
        step++
        attempts = 0
      } else if (attempts >= mostAttempts) return false
      else if (attempts % errorsPerLoop === 0) {
        this.add({ role: 'assistant', ...plainAssistant, text: 'I cannot get past this error.' })
        this.complain(chance)
      }
    }
    return true
  }

  private complain(chance: number): void {
    this.now += 45_000
    this.ask(complaints[Math.floor(chance * complaints.length)] ?? '')
  }

  /** Makes one call. Returns whether its output is right. */
  private attempt(
    routing: Routing,
    turn: Turn,
    step: number,
    key: string,
    place: { readonly inLoop: boolean; readonly isNewTask: boolean },
  ) {
    const messages = [...this.messages]
    const bodyCharacters = this.tokens * 4
    const request = askWith({ messages, session: this.id, tools: this.hasTools ? tools : [], bodyCharacters })
    const call: Call = { request, inputTokens: Math.round(this.tokens * estimated), at: this.now }
    const choice = routing.choose(call)
    const { model } = choice
    const effort = actualEffort(model, choice.effort)
    const hardness = turn.difficulties[step] ?? 0
    const reasoningTokens = Math.round(reasoningLength[effort] * (0.5 + hardness))
    const outputTokens = (turn.outputTokens[step] ?? 0) + reasoningTokens
    const usage = this.getUsage(model, outputTokens, reasoningTokens)
    this.count(choice, usage, place)
    const until = this.now + getPromptCache(model.provider).keptMinutes * 60_000
    this.caches.set(fullName(model), { tokens: this.tokens, until })
    routing.answered?.(call, choice, usage)
    this.now += 1_000 + outputTokens * 12
    const capability = model.figures.quality * keptQuality[effort]
    return draw(key) < 1 / (1 + Math.exp((hardness - capability - slack) / spread))
  }

  /**
   * Usage of the next call at a model, by the catalog's rules of its provider's cache. A provider without a price for writes
   * bills them as input.
   */
  private getUsage(model: Model, outputTokens: number, reasoningTokens: number): Usage {
    const cache = this.caches.get(fullName(model))
    const { leastTokens, stepTokens } = getPromptCache(model.provider)
    const known = cache !== undefined && cache.until >= this.now ? Math.min(cache.tokens, this.tokens) : 0
    const cachedInputTokens = known < leastTokens ? 0 : known - (known % stepTokens)
    const isWritten = model.pricing.cacheWrite !== null && this.tokens >= leastTokens
    return {
      ...{ inputTokens: this.tokens, cachedInputTokens, outputTokens, reasoningTokens },
      cacheWriteTokens: isWritten ? this.tokens - cachedInputTokens : 0,
    }
  }

  private getPrice(model: Model, usage: Usage): number {
    return getCost(ratesAt(model.pricing, { at: this.now, tier: null }), usage)
  }

  private count(choice: Choice, usage: Usage, { inLoop, isNewTask }: { inLoop: boolean; isNewTask: boolean }): void {
    const cost = this.getPrice(choice.model, usage)
    this.microcents += cost
    this.calls++
    this.inputTokens += usage.inputTokens
    this.cachedTokens += usage.cachedInputTokens
    const before = this.last
    this.last = choice
    if (before === null) return
    if (inLoop && (before.model !== choice.model || before.effort !== choice.effort)) this.loopChanges++
    if (before.model === choice.model) return
    if (!isNewTask) this.taskChanges++
    const kept = this.getUsage(before.model, usage.outputTokens, usage.reasoningTokens)
    if (kept.cachedInputTokens === 0 || this.getPrice(before.model, kept) > cost) return
    if (choice.model.figures.quality > before.model.figures.quality) this.escalations++
    else this.wastedCaches++
  }

  private ask(text: string): void {
    this.add({ role: 'user', content: [{ type: 'text', text }], name: null })
  }

  private useTool(id: string, turn: Turn, step: number, isError: boolean): void {
    const call = { id, name: 'run', arguments: JSON.stringify({ step }), signature: null }
    this.add({ role: 'assistant', text: null, ...plainAssistant, toolCalls: [call] })
    this.now += 2_000 + 40 * (turn.outputTokens[step] ?? 0)
    const length = turn.resultCharacters[step] ?? 0
    const text = isError
      ? `Error: step ${step} failed with exit code 1\n${log.slice(0, length / 4)}`
      : log.slice(0, length)
    this.add({ role: 'tool', callId: id, text, ...(isError ? { isError } : null) })
  }

  private add(message: Message): void {
    this.messages.push(message)
    const text =
      message.role === 'user' ? message.content.map(part => ('text' in part ? part.text : '')).join('') : message.text
    const calls = message.role === 'assistant' ? JSON.stringify(message.toolCalls) : ''
    this.tokens += tokensIn((text ?? '') + calls) + 4
  }
}

const plainAssistant = { reasoning: null, toolCalls: [], name: null } as const
const startedAt = Date.parse('2026-11-24T09:00:00Z')
const log = Array.from(
  { length: 300 },
  (_, at) => `${at}: src/part${at % 17}.ts: value ${at * 37} checked in ${at % 90} ms\n`,
).join('')
const filler = (tokens: number) => 'The change is in place, and its tests pass. '.repeat(Math.ceil(tokens / 11))
const tools = [
  { name: 'run', description: 'Runs a command.', parameters: { type: 'object', properties: {} }, strict: null },
] as const

/** The same number from 0 to 1 for the same key, so that all ways of routing have the same luck. */
function draw(key: string): number {
  return Number(Bun.hash(key) % 1_000_003n) / 1_000_003
}
