/**
 * How good an answer was, as far as it can be told from outside: 0–1. Only a rating knows; all else is signs, and most
 * answers show none. Longer is not better, so what length says is capped.
 */
import type { FinishReason, QueryType } from '../chat/chat.ts'

/** What is seen of one answer. */
export type QualitySignals = {
  readonly finish: FinishReason | null
  /** What the model said to the caller; empty where it said nothing or only called tools. */
  readonly text: string
  readonly hasContent: boolean
  /** The upstream itself calls it a refusal. */
  readonly refused: boolean
  /** The caller bounded the answer, and has to expect that bound. */
  readonly isCapped: boolean
  /** JSON was asked for. */
  readonly wantsJson: boolean
  readonly queryType: QueryType
  /** ln(output tokens / input tokens), and what the account's answers of this query type are like. */
  readonly ratio: number
  readonly usualRatio: LengthStatistics | null
}

export type LengthStatistics = { readonly mean: number; readonly deviation: number }

/** Of an answer that shows no sign: four stars. */
export const defaultQuality = 0.75

/** The quality of an answer that nobody rated. */
export function inferQuality(signs: QualitySignals): number {
  if (!signs.hasContent) return 0
  if (signs.refused || signs.finish === 'content_filter' || isRefusal(signs.text)) return 0.1
  if (signs.wantsJson && signs.finish !== 'length' && isBrokenJson(signs.text)) return 0.2
  const cost = truncationCost(signs) + fenceCost(signs) + ratioCost(signs)
  return Math.max(0, Math.min(1, defaultQuality + structureGain(signs) - cost))
}

/** What is taken off the quality of an answer whose question was soon asked again, word for word. */
export const repeatCost = 0.3

/** A rating as quality: one to five stars, and whether it helped where that was said. */
export function ratedQuality(stars: number, isHelpful: boolean | null): number {
  const byStars = (stars - 1) / 4
  return isHelpful === null ? byStars : 0.75 * byStars + (isHelpful ? 0.25 : 0)
}

const longestRefusal = 600
const opening = 160
/** What refusals begin with, in the languages that are asked most; short answers only, since long ones went on to help. */
const refusals =
  /^\W*(i['’]?m sorry,? (but )?(i|that)|(i['’]?m |i am )?(sorry|afraid)[,.]? (but )?i (can|am|will)|i (cannot|can['’]?t|can not|won['’]?t|will not|am (not able|unable)|['’]m (not able|unable)) |i['’]m (not able|unable) to |as an ai\b|lo siento,? (pero )?no puedo|no puedo ayudar|je (suis désolée?|ne peux pas)|désolée?,? (mais )?je ne|es tut mir leid|ich kann (dir|ihnen|das|dabei)? ?(leider )?nicht|mi dispiace,? (ma )?non posso|desculpe,? (mas )?não posso|извините|抱歉|对不起|申し訳)/i

function isRefusal(text: string): boolean {
  return text.length <= longestRefusal && refusals.test(text.slice(0, opening))
}

/** Beyond it reading costs more than the sign is worth. */
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

/** A block of code that was opened and never closed, in an answer that says it is whole. */
function fenceCost({ finish, text }: QualitySignals): number {
  return finish === 'stop' && fencesIn(text) % 2 === 1 ? 0.15 : 0
}

/** Code was asked for, and set off from the words around it. */
function structureGain({ queryType, text }: QualitySignals): number {
  const isCode = queryType === 'code' || queryType === 'code_algorithm' || queryType === 'debugging'
  return isCode && text.includes(fence) ? 0.05 : 0
}

function fencesIn(text: string): number {
  let count = 0
  for (let at = text.indexOf(fence); at !== -1; at = text.indexOf(fence, at + fence.length)) count++
  return count
}

/** Length is a known bias of every judge: far from usual it may cost so much, and it never gains anything. */
const mostForLength = 0.1
/** Deviations from usual that are nothing to remark on. */
const usualDeviations = 2

function ratioCost({ ratio, usualRatio }: QualitySignals): number {
  if (usualRatio === null || usualRatio.deviation <= 0) return 0
  const beyond = Math.abs(ratio - usualRatio.mean) / usualRatio.deviation - usualDeviations
  return Math.max(0, Math.min(mostForLength, 0.05 * beyond))
}
