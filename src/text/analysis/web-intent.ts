import type { QueryType } from '../../core/chat/chat.ts'
import { type Concept, type ConceptCounts, concepts } from './concepts.ts'

/**
 * Returns true if a text explicitly requests web access: to search, to answer as of today, or to read a page by its
 * URL. `urls` are the URLs found in it.
 */
export function requestsWeb(words: number, meaning: ConceptCounts, urls: readonly string[], type: QueryType): boolean {
  const { times } = meaning
  if ((times[web] ?? 0) > 0 && !isCodeType[type])
    if (isNear(meaning, seek, web, 8) || isNear(meaning, web, seekAfter, 5)) return true
  if ((times[asOfToday] ?? 0) > 0 || isNear(meaning, asTable, now, 3)) return true
  if (urls.length === 0) return false
  // Code contains many URLs that should not be fetched; a short question about one should.
  if (isNear(meaning, visit, address, 8)) return true
  return words <= shortWords ? (times[visit] ?? 0) > 0 || !isCodeType[type] : mayCite[type]
}

const shortWords = 40

const getNumber = (concept: Concept) => concepts.indexOf(concept)
const seek = getNumber('seek')
const seekAfter = getNumber('seek_after')
const web = getNumber('web')
const asTable = getNumber('as_of')
const asOfToday = getNumber('as_of_today')
const now = getNumber('now')
const visit = getNumber('visit')
const address = getNumber('address')

/** Query types in which a URL or a mention of web search is usually part of a program. */
export const isCodeType: Readonly<Record<QueryType, boolean>> = {
  code: true,
  code_algorithm: true,
  debugging: true,
  analysis: false,
  writing: false,
  math: false,
  creative: false,
  planning: false,
  comparison: false,
  other: false,
}

/** Query types whose longer prompts cite URLs to read; in fiction and calculations they are only mentioned. */
const mayCite: Readonly<Record<QueryType, boolean>> = {
  code: false,
  code_algorithm: false,
  debugging: false,
  analysis: true,
  writing: true,
  math: false,
  creative: false,
  planning: true,
  comparison: true,
  other: true,
}

/** Returns true if the second concept follows the first within `reach` words. */
function isNear({ count, found, at }: ConceptCounts, first: number, second: number, reach: number): boolean {
  let last = Number.NEGATIVE_INFINITY
  for (let index = 0; index < count; index++) {
    const number = found[index]
    const place = at[index] ?? 0
    if (number === first) last = place
    if (number === second && place !== last && place - last <= reach) return true
  }
  return false
}
