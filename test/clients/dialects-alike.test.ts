/** What the dialects have in common: one conversation costs the same through each, and reasoning goes back to its provider. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { type MessagesRig, startMessagesRig } from './messages-support.ts'

setDefaultTimeout(240_000)

let rig: MessagesRig
beforeAll(async () => {
  rig = await startMessagesRig()
})
afterAll(() => rig.stop())

const providers = ['openai/gpt-5.4-mini', 'anthropic/claude-sonnet-5-5', 'google/gemini-3.5-flash'] as const
const [system, question] = ['Answer briefly.', 'Why is the sky blue?']
const turn = (role: string, content: string) => ({ role, content })

async function send(path: string, body: object): Promise<Record<string, unknown>> {
  const response = await rig.gateway.post(path, body)
  expect(response.status).toBe(200)
  return (await response.json()) as Record<string, unknown>
}

function getCost({ usage, usageMetadata, cost }: Record<string, unknown>): unknown {
  const own = (usage ?? usageMetadata) as { readonly cost_usd?: number }
  return own.cost_usd ?? (cost as { readonly total_usd?: number } | undefined)?.total_usd
}

describe('dialects', () => {
  test.each(providers)('charge the same for one conversation on %s', async model => {
    const cap = 300
    // Messages goes to Anthropic as it is written; the translation of the others asks for thinking where the model thinks by default.
    const thinking = model.startsWith('anthropic/') ? { thinking: { type: 'adaptive', display: 'summarized' } } : {}
    const costs = [
      await send('/v1/chat/completions', {
        model,
        max_tokens: cap,
        messages: [turn('system', system), turn('user', question)],
      }),
      await send('/v1/responses', { model, max_output_tokens: cap, instructions: system, input: question }),
      await send('/v1/messages', { model, max_tokens: cap, system, messages: [turn('user', question)], ...thinking }),
      await send(`/v1beta/models/${model}:generateContent`, {
        systemInstruction: { parts: [{ text: system }] },
        contents: [{ role: 'user', parts: [{ text: question }] }],
        generationConfig: { maxOutputTokens: cap, thinkingConfig: { includeThoughts: true } },
      }),
    ].map(getCost)
    expect(costs[0]).toBeGreaterThan(0)
    expect(costs).toEqual([costs[0], costs[0], costs[0], costs[0]])
  })
})

describe('Responses', () => {
  const tools = [{ type: 'function', name: 'weather', parameters: { type: 'object', properties: {} } }]
  const asked = { tools, store: false, include: ['reasoning.encrypted_content'], reasoning: { effort: 'low' } }
  type Item = { readonly type: string; readonly call_id?: string; readonly encrypted_content?: string }

  test('return the signed thinking of Anthropic to Anthropic, and to no other provider', async () => {
    const input: object[] = [{ role: 'user', content: 'Look it up [[sim:tool=weather]]' }]
    const model = 'anthropic/claude-sonnet-5-5'
    const first = (await send('/v1/responses', { ...asked, model, input })).output as readonly Item[]
    const reasoning = first.find(({ type }) => type === 'reasoning')
    expect(reasoning?.encrypted_content).toStartWith('gwr1.')
    const call = first.find(({ type }) => type === 'function_call')
    input.push(...first, { type: 'function_call_output', call_id: call?.call_id, output: 'sunny' })

    await send('/v1/responses', { ...asked, model, input })
    const back = JSON.parse(rig.sent.at(-1)?.text ?? '{}')
    // The simulated provider verifies the signature and rejects any other.
    expect(back.messages[1].content[0]).toEqual({
      type: 'thinking',
      thinking: expect.any(String),
      signature: expect.stringMatching(/^S/),
    })

    await send('/v1/responses', { ...asked, model: 'openai/gpt-5.4-mini', input })
    expect(rig.sent.at(-1)?.text).not.toContain(back.messages[1].content[0].signature)
    expect(rig.sent.at(-1)?.text).not.toContain('gwr1.')
  })
})
