import { describe, expect, test } from 'bun:test'
import type { Message, PromptDefinition } from '../../src/core/chat/chat.ts'
import { createRequestAbort } from '../../src/core/chat/request-abort.ts'
import { chatRequestWithDefaults } from '../../src/core/request/chat-request.ts'
import { screenAhead } from '../../src/request/moderate.ts'
import { allowVerdict, blockVerdict } from '../../src/text/moderation/text-moderator.ts'

const said = (length: number, letter = 'x'): Message => ({ role: 'tool', callId: 'call', text: letter.repeat(length) })

/** Moderation that notes what it is asked, and refuses what begins with `!`; a clock that counts its sleeps. */
function screening() {
  const asked: string[] = []
  let sleeps = 0
  return {
    asked,
    sleeps: () => sleeps,
    deps: {
      moderation: {
        *screenSteps(part: Message | PromptDefinition) {
          const text = part.role === 'tool' ? part.text : part.role === 'definition' ? part.texts.join('') : ''
          asked.push(`${part.role === 'definition' ? 'd' : text[0]}${text.length}`)
          if (text.startsWith('!')) return { ...blockVerdict('patterns', 'illegal', 0), secrets: [] }
          for (let at = 0; at < text.length; at += 16_384) yield Math.min(16_384, text.length - at)
          return { ...allowVerdict, secrets: [] }
        },
      },
      clock: { sleep: async () => void sleeps++ },
    },
  }
}

const never = createRequestAbort().signal

describe('screenAhead', () => {
  test('leaves a short request to the screening of the whole', async () => {
    const { deps, asked } = screening()
    await screenAhead(deps, chatRequestWithDefaults([said(10)], { bodyCharacters: 16_384 }), never)
    expect(asked).toEqual([])
  })

  test('lets others run after each 16 KB of a long one', async () => {
    const { deps, asked, sleeps } = screening()
    const messages = Array.from({ length: 100 }, () => said(4_096))
    await screenAhead(deps, chatRequestWithDefaults(messages, { bodyCharacters: 500_000 }), never)
    expect(asked).toHaveLength(100)
    expect(sleeps()).toBe(Math.floor(100 / 4))
  })

  test('lets other requests run within a single long text', async () => {
    const { deps, asked, sleeps } = screening()
    await screenAhead(deps, chatRequestWithDefaults([said(8_388_608)], { bodyCharacters: 8_400_000 }), never)
    expect(asked).toEqual(['x8388608'])
    expect(sleeps()).toBe(512)
  })

  test('screens the definitions of tools too', async () => {
    const { deps, asked } = screening()
    const tools = [{ name: 'shell', description: 'Runs a command', parameters: null, strict: null }]
    await screenAhead(deps, chatRequestWithDefaults([], { tools, bodyCharacters: 40_000 }), never)
    expect(asked).toEqual(['d19'])
  })

  test('throws the error of the first part that is blocked', async () => {
    const { deps, asked } = screening()
    const messages = [said(10), said(10, '!'), said(10)]
    const blocked = screenAhead(deps, chatRequestWithDefaults(messages, { bodyCharacters: 40_000 }), never)
    expect(await blocked.catch(cause => cause)).toMatchObject({ code: 'content_blocked', param: 'messages' })
    expect(asked).toEqual(['x10', '!10'])
  })

  test('throws the reason of an abort', async () => {
    const { deps, asked } = screening()
    const abort = createRequestAbort()
    abort.abort()
    const messages = [said(40_000), said(10)]
    const aborted = screenAhead(deps, chatRequestWithDefaults(messages, { bodyCharacters: 40_000 }), abort.signal)
    expect(await aborted.catch(cause => cause)).toMatchObject({ code: 'service_unavailable' })
    expect(asked).toEqual(['x40000'])
  })
})
