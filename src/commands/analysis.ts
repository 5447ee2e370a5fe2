/** Analyzes prompts line by line: JSON in, JSON out. Makes no calls and stores nothing. */

import type { Config } from '../config/config.ts'
import { type ChatRequest, queryTypes } from '../core/chat/chat.ts'
import { type Caller, plans } from '../core/limits/plans.ts'
import { buildCatalog, fullName } from '../core/models/models.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { systemClock } from '../database/clock.ts'
import { readCompatible } from '../dialects/chat-completions/request.ts'
import { readNative } from '../dialects/native/request.ts'
import { getLevel, type Level, type LevelShares } from '../models/capability-levels.ts'
import { catalog as publishedModels } from '../models/catalog.ts'
import { anthropic } from '../providers/anthropic.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'
import { google } from '../providers/google.ts'
import { openai } from '../providers/openai.ts'
import { type RouteDeps, route } from '../request/routing/route.ts'
import { classifierScores, type PromptAnalysis, type PromptAnalyzer } from '../text/analysis/prompt-analysis.ts'
import { enhanceByRules } from '../text/enhancement/enhancement-plan.ts'
import { createModeration, type Moderation } from '../text/moderation/layers/moderation.ts'
import { openPromptAnalyzer } from '../text/readers.ts'
import { readLastTurn } from '../text/segments/conversation.ts'
import { estimateInputTokens } from '../text/tokens/tokens.ts'
import { createHop, createResolver } from '../web/hop.ts'
import { systemNetwork } from '../web/network.ts'

type Analysis = {
  /** Analyzes lines and returns one report line for each. */
  of(lines: string): AnalysisResult
  close(): void
}

export type AnalysisResult = {
  readonly text: string
  readonly lines: number
  /** Number of unreadable lines; each has its error in its place. */
  readonly bad: number
}

/**
 * Opens the prompt analyzer and moderation; fulfilled when the operator's lists are loaded, which apply as in the
 * service.
 */
export async function openAnalysis(config: Config): Promise<Analysis> {
  const moderation = openModeration(config)
  await moderation.ready
  const window = openWindow(openPromptAnalyzer().read, moderation, config)
  return {
    of(text) {
      const lines = text.split('\n')
      let told = ''
      let bad = 0
      for (const line of lines) {
        const report = window(line)
        if ('error' in report) bad++
        told += `${JSON.stringify(report)}\n`
      }
      return { text: told, lines: lines.length, bad }
    },
    close: () => moderation.close(),
  }
}

function openModeration(config: Config): Moderation {
  const nobody = () => Promise.reject(new Error('an analysis makes no external calls'))
  return createModeration(
    {
      fetch: systemNetwork.fetch,
      hop: createHop({ fetch: systemNetwork.fetch, resolve: createResolver(config.serviceDeadlines.nameResolutionMs) }),
      monotonic: systemClock.monotonic,
      after: systemClock.after,
      log: { info() {}, warn() {} },
      findModelBreach: () => null,
      complete: nobody,
      // Lines rarely repeat, so a cache does not help.
      digests: null,
      classifier: openPromptAnalyzer().classifier,
    },
    { ...config.moderation, moderation: null },
  )
}

/** Report of one line, or its error. */
type Report = ReturnType<typeof getReport> | { readonly error: string }

/**
 * Creates a function that converts a line to its report, as if all catalog models were configured and healthy and
 * nothing was spent.
 */
function openWindow(
  read: PromptAnalyzer,
  moderation: Moderation,
  { routing: shares }: Config,
): (line: string) => Report {
  // All lines use the same date.
  const openedAt = Date.now()
  const deps: Window = {
    read,
    moderation,
    shares,
    getRoute: openRouter({
      catalog: buildCatalog(publishedModels),
      endpoints: new Map(formats.map(format => [format.id, format])),
      health: { getStanding: () => ({ state: 'healthy', mayTry: true }) },
      meter: { quotaStatus: () => null },
      clock: { now: () => openedAt },
      shares,
    }),
    plain: readNative({ prompt: '-' }, new Headers(), 0),
  }
  return line => {
    try {
      return getReport(deps, toRequest(deps.plain, JSON.parse(line), line.length))
    } catch (cause) {
      if (cause instanceof GatewayError) return { error: cause.message }
      if (cause instanceof SyntaxError) return { error: 'The line is not JSON.' }
      throw cause
    }
  }
}

type Window = {
  readonly read: PromptAnalyzer
  readonly moderation: Moderation
  readonly shares: LevelShares
  /** Returns the candidates in order; empty if no model can serve the request. */
  readonly getRoute: (request: ChatRequest, analysis: PromptAnalysis) => readonly string[]
  /** A chat request with defaults, into which a text is inserted. */
  readonly plain: ChatRequest
}

const access = { baseUrl: '', apiKey: null }
const formats: readonly ConfiguredProvider[] = [
  { id: 'openai', provider: openai({ official: true }), access, simulated: false },
  { id: 'anthropic', provider: anthropic, access, simulated: false },
  { id: 'google', provider: google, access, simulated: false },
]

const caller: Caller = { accountId: 'analyze', keyId: 'analyze', plan: 'usage', limits: plans.usage }

function toRequest(plain: ChatRequest, value: unknown, bodyCharacters: number): ChatRequest {
  if (typeof value === 'object' && value !== null) {
    if ('text' in value && typeof value.text === 'string')
      return {
        ...plain,
        messages: [{ role: 'user', content: [{ type: 'text', text: value.text }], name: null }],
        bodyCharacters,
      }
    if ('messages' in value) return getConversation({ messages: value.messages }, bodyCharacters)
  }
  throw new GatewayError('invalid_request', 'The line must be {"text": …} or {"messages": […]}.')
}

/** Parses a conversation as either endpoint does; errors come from the more permissive one. */
function getConversation(body: { readonly messages: unknown }, bodyCharacters: number): ChatRequest {
  try {
    return readNative(body, noHeaders, bodyCharacters)
  } catch (cause) {
    if (!(cause instanceof GatewayError)) throw cause
    return readCompatible(body, noHeaders, bodyCharacters).request
  }
}

const noHeaders = new Headers()

function getReport(deps: Window, request: ChatRequest) {
  const analysis = deps.read(request.messages)
  const moderation = screened(deps.moderation, request)
  const { enhancedPrompt, changed } = enhanceByRules(request, analysis)
  return {
    query_type: analysis.queryType,
    query_type_scores: classifierScores(Float64Array.from(queryTypes, type => round(analysis.queryTypeScores[type]))),
    complexity: round(analysis.complexity),
    strong_gain: round(analysis.strongGain),
    level: getLevel(analysis.strongGain, deps.shares),
    // Ranges of the last user text, without the text.
    segments: readLastTurn(request.messages).segments.parts,
    needs_current: analysis.needsCurrent,
    needs_current_score: round(analysis.needsCurrentScore),
    urls: analysis.urls,
    language: analysis.language,
    safety: moderation,
    // The last user text as a model would receive it with `enhance_prompt`.
    enhanced_prompt: enhancedPrompt,
    changed,
    route: deps.getRoute(request, analysis),
  }
}

const round = (value: number) => Math.round(value * 10_000) / 10_000

/** Returns the in-process verdict of moderation, without external calls and the operator's rule. */
function screened(moderation: Moderation, { messages }: ChatRequest) {
  const { verdict, layer, category, score } = moderation.screenMessages(messages)
  return { verdict, layer, category, score: round(score) }
}

/** Upper bound of tokens per character in any tokenizer. */
const tokensPerCharacter = 16

/** For texts that fit every model, routing depends only on the level, so one text per level is routed. */
function openRouter(deps: RouteDeps & { readonly shares: LevelShares }): Window['getRoute'] {
  const byLevel = new Map<Level, readonly string[]>()
  const rooms = deps.catalog.list.map(({ contextWindow, maxInputTokens }) => maxInputTokens ?? contextWindow)
  const characters = Math.min(...rooms) / tokensPerCharacter
  return (request, analysis) => {
    if (request.bodyCharacters > characters || !isOneText(request)) return routed(deps, request, analysis)
    const level = getLevel(analysis.strongGain, deps.shares)
    const names = byLevel.get(level) ?? routed(deps, request, analysis)
    byLevel.set(level, names)
    return names
  }
}

function isOneText({ messages: [message, ...others] }: ChatRequest): boolean {
  return message?.role === 'user' && others.length === 0 && message.content.every(({ type }) => type === 'text')
}

function routed(deps: RouteDeps, request: ChatRequest, analysis: PromptAnalysis): readonly string[] {
  try {
    const { candidates } = route(deps, { caller, request, analysis, inputTokens: estimateInputTokens(request) })
    return candidates.map(({ model }) => fullName(model))
  } catch (cause) {
    if (cause instanceof GatewayError) return []
    throw cause
  }
}
