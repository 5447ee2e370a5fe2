import { describe, expect, test } from 'bun:test'
import type { ReasoningEffort } from '../../../src/core/chat/chat.ts'
import type { Model } from '../../../src/core/models/models.ts'
import { catalog } from '../../../src/models/catalog.ts'
import { generateSessions, type Session } from './sessions.ts'
import { type Call, type Routing, simulate, type Usage } from './simulation.ts'
import { always, perPrompt, service, strongestModel } from './ways.ts'

function named(id: string): Model {
  const model = catalog.find(item => item.id === id)
  if (model === undefined) throw new Error(id)
  return model
}

const [weak, strong] = [named('gpt-5.4-nano'), named('claude-opus-5-5')]

/** One task of one turn with this many tool calls, which any model solves if it is easy. */
function toSession(toolSteps: number, hardness: number): Session {
  const turn = {
    ...{ text: 'Do it.', pauseMs: 1_000, toolSteps },
    difficulties: Array.from({ length: toolSteps + 1 }, () => hardness),
    outputTokens: Array.from({ length: toolSteps + 1 }, () => 100),
    resultCharacters: Array.from({ length: toolSteps }, () => 4_000),
  }
  return { id: 's', system: 'x'.repeat(20_000), hasTools: true, tasks: [{ level: 'light', turns: [turn] }] }
}

/** Alternates between models and efforts, whatever the call. */
function alternating(...choices: readonly (readonly [Model, ReasoningEffort | null])[]): Routing {
  let at = 0
  return {
    choose: () => {
      const [model, effort] = choices[at++ % choices.length] ?? [weak, null]
      return { model, effort }
    },
  }
}

describe('generateSessions', () => {
  test('gives the same sessions for a seed and others for another', () => {
    expect(generateSessions(5, 1)).toEqual(generateSessions(5, 1))
    expect(generateSessions(5, 1)).not.toEqual(generateSessions(5, 2))
  })

  test('has every kind: pauses beyond the life of a cache, tool loops, topic changes, all levels', () => {
    const sessions = generateSessions(100, 3)
    const tasks = sessions.flatMap(session => session.tasks)
    const turns = tasks.flatMap(task => task.turns)
    expect(new Set(tasks.map(({ level }) => level)).size).toBe(3)
    expect(turns.filter(({ pauseMs }) => pauseMs > 300_000).length).toBeGreaterThan(turns.length / 10)
    expect(turns.filter(({ toolSteps }) => toolSteps > 2).length).toBeGreaterThan(turns.length / 10)
    expect(sessions.filter(session => session.tasks.length > 2).length).toBeGreaterThan(sessions.length / 4)
    expect(turns.filter(({ text }) => text.length < 20).length).toBeGreaterThan(turns.length / 10)
  })
})

describe('simulate', () => {
  test('counts changes within a tool loop, of the effort too', () => {
    const loop = [toSession(3, 0)]
    expect(simulate(loop, 'same', () => always(strong)).loopChanges).toBe(0)
    expect(simulate(loop, 'models', () => alternating([weak, 'low'], [strong, 'low'])).loopChanges).toBe(3)
    expect(simulate(loop, 'efforts', () => alternating([strong, 'low'], [strong, 'high'])).loopChanges).toBe(3)
  })

  test('tells an escalation from a change that wastes a cache', () => {
    const figures = simulate([toSession(3, 0)], 'alternating', () => alternating([weak, 'low'], [strong, 'low']))
    // Weak, strong, weak, strong: two changes up from a cheap cache; the one down is cheaper than the cached strong model.
    expect(figures).toMatchObject({ escalations: 2, wastedCaches: 0, mostChanges: 3 })
    const same = { ...strong, id: 'copy' }
    const wasted = simulate([toSession(3, 0)], 'copies', () => alternating([strong, 'low'], [same, 'low']))
    expect(wasted).toMatchObject({ escalations: 0, wastedCaches: 3 })
  })

  test('bills a repeated beginning at the cached price within 5 minutes, and not after', () => {
    const seen: Usage[] = []
    const watching = (): Routing => ({ ...always(strong), answered: (_call, _choice, usage) => seen.push(usage) })
    const session = toSession(1, 0)
    const task = session.tasks[0] ?? { level: 'light' as const, turns: [] }
    const later = task.turns.map(turn => ({ ...turn, pauseMs: 400_000 }))
    simulate([{ ...session, tasks: [task, { ...task, turns: later }] }], 'strong', watching)
    expect(seen[0]).toMatchObject({ cachedInputTokens: 0 })
    expect(seen[0]?.cacheWriteTokens).toBe(seen[0]?.inputTokens ?? 0)
    expect(seen[1]?.cachedInputTokens).toBe(seen[0]?.inputTokens ?? 0)
    expect(seen[2]).toMatchObject({ cachedInputTokens: 0 })
  })

  test('solves hard work with a strong model, and abandons it with a weak one after nine attempts', () => {
    const hard = [toSession(0, 0.8)]
    expect(simulate(hard, 'strong', () => alternating([strong, 'max'])).solved).toBe(1)
    expect(simulate(hard, 'weak', () => alternating([weak, 'none']))).toMatchObject({ solved: 0, calls: 9 })
  })

  test('gives the service errors, complaints and the growing conversation to read', () => {
    const calls: Call[] = []
    const watching = (): Routing => ({
      choose: call => {
        calls.push(call)
        return { model: weak, effort: 'none' }
      },
    })
    simulate([toSession(2, 0.9)], 'weak', watching)
    const last = calls.at(-1)?.request.messages ?? []
    expect(last.filter(message => message.role === 'tool' && message.isError === true).length).toBeGreaterThan(0)
    expect(last.filter(({ role }) => role === 'user').length).toBeGreaterThan(1)
    expect(calls.at(-1)?.inputTokens).toBeGreaterThan(calls[0]?.inputTokens ?? 0)
  })
})

test.each([5, 1_905])('service: meets the goals for agents, in the sessions of seed %i', seed => {
  const sessions = generateSessions(40, seed)
  const [most, prompt, ours] = [
    simulate(sessions, 'strong', () => always(strongestModel())),
    simulate(sessions, 'per prompt', perPrompt),
    simulate(sessions, 'service', service),
  ]
  expect(ours.solved).toBeGreaterThanOrEqual(most.solved - 2)
  expect(ours.costUsd).toBeLessThan(0.7 * most.costUsd)
  expect(ours.costUsd).toBeLessThan(0.9 * prompt.costUsd)
  expect(ours.mostChanges).toBeLessThanOrEqual(1)
  expect(ours).toMatchObject({ loopChanges: 0, wastedCaches: 0 })
})
