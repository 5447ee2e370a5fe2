/** The quality gain of a turn with its material and in its conversation. */
import type { LastTurn } from '../segments/conversation.ts'
import { inspects, isQuestion, isTransform, ordersWork, weighs } from '../segments/phrases.ts'

/** Per substantive turn back, work counts less. */
const decay = 0.12
/** To find faults in more program text than this is demanding, and in less still no routine. */
const muchMaterial = 2_000
const someMaterial = 250
/** From here on, to translate, list or sum up is more than routine. */
const hardWork = 0.85
/** Below it a question about material asks for a fact of it. */
const someWork = 0.6
const strongWork = 0.75
const middleWork = 0.5
/** A title or a label is light work, and so is an answer to thanks. */
const lightWork = 0.3

/** Returns the gain of the last turn from that of its own request (`own`), its material and what it continues. */
export function weighConversation(turn: LastTurn, own: number, getGain: (request: string) => number): number {
  const { segments, request, kind, before, task, isHelper } = turn
  if (isHelper) return Math.min(lightWork, request === task ? own : getGain(task))
  if (kind === 'courtesy') return Math.min(lightWork, own)
  let gain = own
  const { code, material } = segments
  const isLookUp = material >= someMaterial && own < someWork && isQuestion(request)
  if (isLookUp || (material > 0 && own < hardWork && isTransform(request))) gain = Math.min(gain, lightWork)
  if (material >= someMaterial && inspects(request))
    gain = Math.max(gain, code >= muchMaterial ? strongWork : middleWork)
  else if (material >= muchMaterial && weighs(request)) gain = Math.max(gain, strongWork)
  if (task !== '' && request !== task && ordersWork(task)) {
    const stated = getGain(task)
    if (stated >= strongWork) gain = Math.max(gain, stated)
  }
  let inherited = 0
  for (const [back, earlier] of before.entries()) inherited = Math.max(inherited, getGain(earlier) - decay * back)
  return kind === 'none' ? inherited : Math.max(gain, inherited)
}
