/**
 * Infers the quality of a response (0–1) without a judge. Only a rating is certain; everything else is a weak signal,
 * and most responses show none. Longer is not better, so the effect of length is capped.
 */

import type { QueryType } from '../core/chat/chat.ts'
import type { FinishReason } from '../core/chat/chat-events.ts'

/** Observable signals of one response. */
export type QualitySignals = {
  readonly finish: FinishReason | null
  /** Output text for the client; empty if there is none or only tool calls. */
  readonly text: string
  readonly hasContent: boolean
  /** True if the upstream reports a refusal. */
  readonly refused: boolean
  /** True if the client capped the output, so that truncation is expected. */
  readonly isCapped: boolean
  /** True if the client requested JSON. */
  readonly wantsJson: boolean
  readonly queryType: QueryType
  /** ln(output tokens / input tokens), with the statistics of the account's responses of this query type. */
  readonly ratio: number
  readonly usualRatio: LengthStatistics | null
}

export type LengthStatistics = { readonly mean: number; readonly deviation: number }

/** Quality of a response without signals: four stars. */
export const defaultQuality = 0.75

/** Returns the inferred quality of an unrated response. */
export function inferQuality(signs: QualitySignals): number {
  if (!signs.hasContent) return 0
  if (signs.refused || signs.finish === 'content_filter' || isRefusal(signs.text)) return 0.1
  if (signs.wantsJson && signs.finish !== 'length' && isBrokenJson(signs.text)) return 0.2
  const cost = truncationCost(signs) + fenceCost(signs) + ratioCost(signs)
  return Math.max(0, Math.min(1, defaultQuality + structureGain(signs) - cost))
}

/** Deducted from a response if the client soon repeats the same prompt word for word. */
export const repeatCost = 0.3

/** Returns a rating as quality: one to five stars, and whether the response helped if the user stated it. */
export function ratedQuality(stars: number, isHelpful: boolean | null): number {
  const byStars = (stars - 1) / 4
  return isHelpful === null ? byStars : 0.75 * byStars + (isHelpful ? 0.25 : 0)
}

const longestRefusal = 600
const opening = 160
/**
 * Typical first words of refusals in the most used languages. Applied to short outputs only, since long ones continue
 * with help.
 */
const refusals =
  /^\W*(i['’]?m sorry,? (but )?(i|that)|(i['’]?m |i am )?(sorry|afraid)[,.]? (but )?i (can|am|will)|i (cannot|can['’]?t|can not|won['’]?t|will not|am (not able|unable)|['’]m (not able|unable)) |i['’]m (not able|unable) to |as an ai\b|lo siento,? (pero )?no puedo|no puedo ayudar|je (suis désolée?|ne peux pas)|désolée?,? (mais )?je ne|es tut mir leid|ich kann (dir|ihnen|das|dabei)? ?(leider )?nicht|mi dispiace,? (ma )?non posso|desculpe,? (mas )?não posso|извините|抱歉|对不起|申し訳)/i

function isRefusal(text: string): boolean {
  return text.length <= longestRefusal && refusals.test(text.slice(0, opening))
}

/** Parsing longer JSON costs more than the signal is worth. */
const longestJson = 65_536

function isBrokenJson(text: string): boolean {
  if (text === '' || text.length > longestJson) return false
  try {
    JSON.parse(text)
    return false
  } catch {
    return true
  }
}

function truncationCost({ finish, isCapped }: QualitySignals): number {
  if (finish !== 'length') return 0
  return isCapped ? 0.1 : 0.3
}

const fence = '```'

/** Returns the deduction for an unclosed code fence in an output that finished normally. */
function fenceCost({ finish, text }: QualitySignals): number {
  return finish === 'stop' && fencesIn(text) % 2 === 1 ? 0.15 : 0
}

/** Returns the gain for a code block if code was requested. */
function structureGain({ queryType, text }: QualitySignals): number {
  const isCode = queryType === 'code' || queryType === 'code_algorithm' || queryType === 'debugging'
  return isCode && text.includes(fence) ? 0.05 : 0
}

function fencesIn(text: string): number {
  // The engine finds one character four times as fast as three.
  if (!text.includes('`')) return 0
  let count = 0
  for (let at = text.indexOf(fence); at !== -1; at = text.indexOf(fence, at + fence.length)) count++
  return count
}

/** Maximum deduction for unusual length. Length is a known bias of judges, so it never increases quality. */
const mostForLength = 0.1
/** Deviations from the usual length that cost nothing. */
const usualDeviations = 2

function ratioCost({ ratio, usualRatio }: QualitySignals): number {
  if (usualRatio === null || usualRatio.deviation <= 0) return 0
  const beyond = Math.abs(ratio - usualRatio.mean) / usualRatio.deviation - usualDeviations
  return Math.max(0, Math.min(mostForLength, 0.05 * beyond))
}
