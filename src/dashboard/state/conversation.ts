import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { ChatSummary } from '../../dialects/native/schema.ts'
import { asFailure, isAbort, type RequestError } from './api-error.ts'
import { type ChatMessage, type PlaygroundRequest, streamChat } from './chat.ts'

/** One prompt with its response. */
export type Turn = {
  readonly id: number
  readonly question: string
  readonly request: PlaygroundRequest
  readonly text: string
  readonly reasoning: string
  readonly state: 'waiting' | 'answering' | 'done' | 'stopped' | 'failed'
  readonly summary: ChatSummary | null
  readonly failure: RequestError | null
  /** Milliseconds, as measured by this browser. */
  readonly firstTokenMs: number | null
  readonly totalMs: number | null
}

type Conversation = {
  readonly turns: readonly Turn[]
  readonly isAnswering: boolean
  ask(question: string, options: Omit<PlaygroundRequest, 'messages'>, system: string): Promise<void>
  stop(): void
  clear(): void
}

/** A conversation in memory, discarded with the component. */
export function useConversation(takeKey: () => Promise<string>): Conversation {
  const [turns, setTurns] = useState<readonly Turn[]>([])
  const abort = useRef<AbortController | null>(null)
  const isAnswering = turns.some(({ state }) => state === 'waiting' || state === 'answering')
  useEffect(() => () => abort.current?.abort(), [])

  const ask: Conversation['ask'] = async (question, options, system) => {
    const own = new AbortController()
    abort.current = own
    const id = Date.now()
    const began = performance.now()
    const since = () => Math.round(performance.now() - began)
    const change = (part: (turn: Turn) => Partial<Turn>) =>
      setTurns(now => now.map(turn => (turn.id === id ? { ...turn, ...part(turn) } : turn)))
    const request = { ...options, messages: messagesOf(turns, question, system) }
    setTurns(now => [...now, { ...empty, id, question, request }])
    try {
      const key = await takeKey()
      const summary = await streamChat(
        key,
        request,
        ({ text, reasoning }) =>
          change(turn => ({
            state: 'answering',
            text: turn.text + text,
            reasoning: turn.reasoning + reasoning,
            firstTokenMs: turn.firstTokenMs ?? since(),
          })),
        own.signal,
      )
      change(() => ({ state: 'done', summary, totalMs: since() }))
    } catch (thrown) {
      if (isAbort(thrown)) change(() => ({ state: 'stopped', totalMs: since() }))
      else change(() => ({ state: 'failed', failure: asFailure(thrown), totalMs: since() }))
    }
  }
  return {
    turns,
    isAnswering,
    ask,
    stop: useCallback(() => abort.current?.abort(), []),
    clear: () => {
      abort.current?.abort()
      setTurns([])
    },
  }
}

const empty = {
  text: '',
  reasoning: '',
  state: 'waiting',
  summary: null,
  failure: null,
  firstTokenMs: null,
  totalMs: null,
} as const

/** Returns the completed turns and the new prompt. Prompts without a response are not sent again. */
function messagesOf(turns: readonly Turn[], question: string, system: string): ChatMessage[] {
  return [
    ...(system.trim() === '' ? [] : [{ role: 'system' as const, content: system.trim() }]),
    ...turns
      .filter(({ text }) => text !== '')
      .flatMap(turn => [
        { role: 'user' as const, content: turn.question },
        { role: 'assistant' as const, content: turn.text },
      ]),
    { role: 'user' as const, content: question },
  ]
}
