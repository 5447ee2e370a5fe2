/** A gateway whose Anthropic, OpenAI and Google are simulated and whose `relay` is scripted, with all that it asks of them. */
import type { Clock } from '../../src/core/ports.ts'
import { systemClock } from '../../src/database/clock.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { systemNetwork } from '../../src/web/network.ts'
import { type Gateway, type GatewayLimits, startGateway } from '../harness/gateway.ts'
import { startUpstream, type UpstreamAnswer, type UpstreamRequest } from '../harness/upstream.ts'

/** A request as a provider got it. */
export type SentRequest = {
  readonly url: string
  readonly headers: Headers
  readonly text: string
}

export type MessagesRig = {
  readonly gateway: Gateway
  /** All requests to providers, oldest first. */
  readonly sent: SentRequest[]
  /** Answers for the provider `relay`, which speaks Chat Completions. */
  script: (request: UpstreamRequest) => UpstreamAnswer
  stop(): Promise<void>
}

export async function startMessagesRig(limits: GatewayLimits = {}): Promise<MessagesRig> {
  // A day on which all the models that are asked are served.
  const shiftMs = Date.parse('2026-11-20T12:00:00Z') - Date.now()
  const clock: Clock = { ...systemClock, now: () => Date.now() + shiftMs }
  const simulator = await startSimulator({ clock, random: Math.random })
  const rig: Pick<MessagesRig, 'script'> = { script: () => ({ status: 500 }) }
  const relay = startUpstream(request => rig.script(request))
  const model = {
    id: 'thinker',
    pricing: { input_per_mtok: 1, output_per_mtok: 1 },
    context_window: 64_000,
    max_output_tokens: 8_000,
    capabilities: { tools: true, reasoning: true },
    parameters: { pass_extras: true },
  }
  const file = { providers: [{ id: 'relay', base_url: `${relay.url}/v1`, models: [model] }] }
  const sent: SentRequest[] = []
  const network = {
    ...systemNetwork,
    fetch: (url: string, init: RequestInit) => {
      sent.push({ url, headers: new Headers(init.headers), text: String(init.body) })
      return systemNetwork.fetch(url, init)
    },
  }
  const gateway = await startGateway(
    {
      OPENAI_API_KEY: 'k',
      OPENAI_BASE_URL: simulator.urls.openai,
      ANTHROPIC_API_KEY: 'k',
      ANTHROPIC_BASE_URL: simulator.urls.anthropic,
      GEMINI_API_KEY: 'k',
      GEMINI_BASE_URL: simulator.urls.google,
    },
    { clock, network, limits, file },
  )
  return Object.assign(rig, {
    gateway,
    sent,
    async stop() {
      await gateway.stop()
      await simulator.stop()
      relay.stop()
    },
  })
}

/** An answer of the relay: reasoning first, then a call or a text, as a stream where one was asked for. */
export function relayAnswer({ body }: UpstreamRequest, reasoning: string, call: boolean): UpstreamAnswer {
  const calls = [
    { index: 0, id: 'call_r1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } },
  ]
  const message = call
    ? { reasoning_content: reasoning, tool_calls: calls }
    : { reasoning_content: reasoning, content: 'Hi.' }
  const finish_reason = call ? 'tool_calls' : 'stop'
  const usage = {
    prompt_tokens: 50,
    completion_tokens: 9,
    total_tokens: 59,
    prompt_tokens_details: { cached_tokens: 20 },
  }
  if (!body.includes('"stream":true'))
    return {
      headers: { 'content-type': 'application/json' },
      pieces: [
        JSON.stringify({
          id: 'c',
          model: 'thinker',
          choices: [{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason }],
          usage,
        }),
      ],
    }
  const chunk = (fields: object) => `data: ${JSON.stringify({ id: 'c', model: 'thinker', ...fields })}\n\n`
  const delta = (fields: object, end: string | null = null) =>
    chunk({ choices: [{ index: 0, delta: fields, finish_reason: end }] })
  const { reasoning_content, ...rest } = message
  return {
    headers: { 'content-type': 'text/event-stream' },
    pieces: [
      delta({ role: 'assistant', reasoning_content }),
      delta(rest),
      delta({}, finish_reason),
      chunk({ choices: [], usage }),
      'data: [DONE]\n\n',
    ],
  }
}
