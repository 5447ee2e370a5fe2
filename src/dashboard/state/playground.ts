/**
 * Conversations of the playground: in memory only, kept while the user visits other pages, ended by a reload or by
 * signing out. Up to three run side by side, each with its own model or strategy and its own history.
 */
import { computed, signal } from '@preact/signals'
import type { ShownRequest } from '../../console/usage/schemas.ts'
import type { ChatSummary } from '../../dialects/native/schema.ts'
import { callApi } from './api.ts'
import { asFailure, isAbort, type RequestError } from './api-error.ts'
import { createPageKey, streamChat } from './chat.ts'
import type { ChatMessage, ChatPart, PlaygroundRequest } from './code-body.ts'

export const automaticModel = 'gateway-ai'
export const mostLanes = 3

export type Attachment = { readonly name: string; readonly url: string }

/** One prompt with its response. */
export type Turn = {
  readonly id: number
  readonly question: string
  readonly images: readonly Attachment[]
  readonly request: PlaygroundRequest
  readonly text: string
  readonly reasoning: string
  readonly state: 'waiting' | 'answering' | 'done' | 'stopped' | 'failed'
  readonly requestId: string | null
  readonly summary: ChatSummary | null
  /** Tokens and cost of a response without a summary, from the log. */
  readonly record: ShownRequest | null
  readonly failure: RequestError | null
  /** Milliseconds, as measured by this browser. */
  readonly firstTokenMs: number | null
  readonly totalMs: number | null
}

export type Lane = {
  readonly id: number
  /** `gateway-ai`, `gateway-ai/<strategy>`, or a model. */
  readonly model: string
  readonly turns: readonly Turn[]
}

const startSettings = {
  enhances: false,
  usesWeb: true,
  isSmooth: true,
  system: '',
  ownKey: '',
  /** As typed; empty = the default of the model. */
  temperature: '',
  topP: '',
  maximumTokens: '',
  effort: '',
  /** A JSON array of functions. */
  tools: '',
}
export type PlaygroundOptions = Readonly<typeof startSettings>
const startLanes: readonly Lane[] = [{ id: 1, model: automaticModel, turns: [] }]

export const settings = signal<PlaygroundOptions>(startSettings)
export const lanes = signal(startLanes)
/** The prompt that is being written. Like the conversation it survives a visit of another page. */
export const draft = signal('')
export const isAnswering = computed(() => lanes.value.some(({ turns }) => turns.some(isRunning)))

const isRunning = ({ state }: Turn) => state === 'waiting' || state === 'answering'

let lastId = 1
let aborts = new AbortController()
let isOpen = false
const pageKey = createPageKey()
globalThis.addEventListener('pagehide', () => void pageKey.giveBack(true))

/** Returns the user's own key, or a temporary one. */
function takeKey(): Promise<string> {
  const own = settings.peek().ownKey.trim()
  return own === '' ? pageKey.take() : Promise.resolve(own)
}

/** Tells whether the page is shown. Its temporary key ends with the page, or with the last response after it. */
export function openPlayground(): () => void {
  isOpen = true
  return () => {
    isOpen = false
    if (!isAnswering.peek()) void pageKey.giveBack(false)
  }
}

/** Another user must not see these conversations. Resolves when the temporary key is revoked, for which the session must last. */
export function forgetPlayground(): Promise<void> {
  stopAnswers()
  lanes.value = startLanes
  settings.value = startSettings
  draft.value = ''
  return pageKey.giveBack(false)
}

export function stopAnswers(): void {
  aborts.abort()
  aborts = new AbortController()
}

export function clear(): void {
  stopAnswers()
  lanes.value = lanes.peek().map(lane => ({ ...lane, turns: [] }))
}

export function addLane(model: string): void {
  lanes.value = [...lanes.peek(), { id: ++lastId, model, turns: [] }]
}

export function removeLane(id: number): void {
  lanes.value = lanes.peek().filter(lane => lane.id !== id)
}

export function setModel(id: number, model: string): void {
  changeLane(id, () => ({ model }))
}

function changeLane(id: number, part: (lane: Lane) => Partial<Lane>): void {
  lanes.value = lanes.peek().map(lane => (lane.id === id ? { ...lane, ...part(lane) } : lane))
}

/** Sends a prompt to every conversation. */
export async function askLanes(question: string, images: readonly Attachment[]): Promise<void> {
  await Promise.all(
    lanes.peek().map(lane => {
      const request = {
        ...toPlaygroundRequest(lane.model, settings.peek()),
        messages: toMessages(lane.turns, question, images),
      }
      return answer(lane.id, { ...empty, id: ++lastId, question, images, request })
    }),
  )
}

/** Sends the last prompt of a conversation again, with its present model and settings. */
export async function askAgain(laneId: number): Promise<void> {
  const lane = lanes.peek().find(({ id }) => id === laneId)
  const last = lane?.turns.at(-1)
  if (lane === undefined || last === undefined || isRunning(last)) return
  const earlier = lane.turns.slice(0, -1)
  const { question, images } = last
  const request = {
    ...toPlaygroundRequest(lane.model, settings.peek()),
    messages: toMessages(earlier, question, images),
  }
  changeLane(laneId, () => ({ turns: earlier }))
  await answer(laneId, { ...empty, id: ++lastId, question, images, request })
}

async function answer(laneId: number, turn: Turn): Promise<void> {
  const { signal } = aborts
  const began = performance.now()
  const since = () => Math.round(performance.now() - began)
  const change = (part: (turn: Turn) => Partial<Turn>) =>
    changeLane(laneId, ({ turns }) => ({
      turns: turns.map(shown => (shown.id === turn.id ? { ...shown, ...part(shown) } : shown)),
    }))
  changeLane(laneId, ({ turns }) => ({ turns: [...turns, turn] }))
  try {
    const summary = await streamChat(await takeKey(), turn.request, {
      signal,
      onStart: requestId => change(() => ({ requestId })),
      onPiece: ({ text, reasoning }) =>
        change(now => ({
          state: 'answering',
          text: now.text + text,
          reasoning: now.reasoning + reasoning,
          firstTokenMs: now.firstTokenMs ?? since(),
        })),
    })
    change(() => ({ state: 'done', summary, totalMs: since() }))
  } catch (thrown) {
    const failure = isAbort(thrown) ? null : asFailure(thrown)
    const state = failure === null ? 'stopped' : 'failed'
    change(now => ({ state, failure, totalMs: since(), requestId: now.requestId ?? failure?.requestId ?? null }))
    void lookUp(laneId, turn.id)
  } finally {
    if (!isOpen && !isAnswering.peek()) void pageKey.giveBack(false)
  }
}

const lookUps = 8
const lookUpEveryMs = 1_000

/** A stopped response has no summary: its tokens and cost are read from the log, which has them seconds later. */
async function lookUp(laneId: number, turnId: number): Promise<void> {
  for (let tries = 0; tries < lookUps; tries++) {
    await new Promise(resolve => setTimeout(resolve, lookUpEveryMs))
    const turn = lanes
      .peek()
      .find(({ id }) => id === laneId)
      ?.turns.find(({ id }) => id === turnId)
    if (turn === undefined || turn.requestId === null) return
    const record = await callApi('GET /api/v1/requests/:id', { params: { id: turn.requestId } }).catch(() => null)
    if (record === null) continue
    changeLane(laneId, ({ turns }) => ({ turns: turns.map(turn => (turn.id === turnId ? { ...turn, record } : turn)) }))
    return
  }
}

const empty = {
  text: '',
  reasoning: '',
  state: 'waiting',
  requestId: null,
  summary: null,
  record: null,
  failure: null,
  firstTokenMs: null,
  totalMs: null,
} as const

const toNumber = (text: string) => (text.trim() === '' ? undefined : Number(text))

/** Returns the tools as written; undefined if there are none, or no JSON array yet. */
export function parseTools(text: string): readonly unknown[] | undefined {
  try {
    const tools: unknown = JSON.parse(text)
    return Array.isArray(tools) && tools.length > 0 ? tools : undefined
  } catch {
    return undefined
  }
}

/** Returns the request of these settings, without its messages. */
export function toPlaygroundRequest(model: string, now: PlaygroundOptions): Omit<PlaygroundRequest, 'messages'> {
  const [name = automaticModel, strategy] = model.startsWith(`${automaticModel}/`) ? model.split('/') : [model]
  const tools = parseTools(now.tools)
  const [temperature, topP, maximumTokens] = [now.temperature, now.topP, now.maximumTokens].map(toNumber)
  return {
    model: name,
    ...(strategy === undefined ? {} : { strategy }),
    enhance_prompt: now.enhances,
    web: now.usesWeb ? 'auto' : 'off',
    stream_mode: now.isSmooth ? 'buffered' : 'realtime',
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(maximumTokens === undefined ? {} : { max_output_tokens: maximumTokens }),
    ...(now.effort === '' ? {} : { reasoning_effort: now.effort }),
    ...(tools === undefined ? {} : { tools }),
  }
}

/** Returns the completed turns and the new prompt. Prompts without a response are not sent again. */
export function toMessages(
  turns: readonly Turn[],
  question: string,
  images: readonly Attachment[],
): readonly ChatMessage[] {
  const system = settings.peek().system.trim()
  return [
    ...(system === '' ? [] : [{ role: 'system' as const, content: system }]),
    ...turns
      .filter(({ text }) => text !== '')
      .flatMap(turn => [
        { role: 'user' as const, content: toContent(turn.question, turn.images) },
        { role: 'assistant' as const, content: turn.text },
      ]),
    { role: 'user' as const, content: toContent(question, images) },
  ]
}

function toContent(text: string, images: readonly Attachment[]): string | readonly ChatPart[] {
  if (images.length === 0) return text
  return [{ type: 'text', text }, ...images.map(({ url }) => ({ type: 'image', url }) as const)]
}
