/**
 * Patterns in many languages for instructions at the start of a text to ignore a model's instructions. Naming all of
 * them or the model's own ("all previous instructions", "your system prompt") is always an attack. Naming what may be
 * the user's own ("the previous instructions", "everything above") is one unless the user retracts something of theirs.
 * Naming the user's own ("my last message"), errors, emails or steps is not.
 */
import file from './override-patterns.json'
import { withWords } from './patterns.ts'

/** End of a clause, as a word that no text contains. */
export const stop = file.words.stop

/** Words before an instruction that do not change its meaning. */
export const politenessPhrases: readonly string[] = file.politeness

/** Patterns, or the places of which every combination is one; a place may be a named list. */
type Entry = string | readonly Place[]
type Place = '{addressed}' | readonly Entry[]

export const overridePatterns = getPatterns(Object.values(file.overrides).flat() as readonly Entry[])

/** Instructions that may retract the user's own words. They are allowed if a retraction follows. */
export const allowedOverrides = getPatterns(file.allowed as readonly Entry[])

/** Phrases of users who retract something of their own. */
export const retractionPatterns: readonly string[] = file.retractions

function getPatterns(entries: readonly Entry[]): readonly string[] {
  return entries.flatMap(entry =>
    typeof entry === 'string'
      ? [withWords(entry, file.words)]
      : ways(...entry.map(place => getPatterns(place === '{addressed}' ? file.addressed : place))),
  )
}

/** Returns every combination of the places; '' = the place is omitted. */
function ways(...places: readonly (readonly string[])[]): readonly string[] {
  return places
    .reduce<readonly string[]>(
      (heads, place) => heads.flatMap(head => optional(place).map(text => `${head} ${text}`)),
      [''],
    )
    .map(way => way.replace(/ +/g, ' ').trim())
}

/** An optional single word is one combination, not two. */
function optional(place: readonly string[]): readonly string[] {
  const [first, ...others] = place
  const word = others.find(other => !other.includes(' ') && !other.startsWith('?'))
  return first === '' && word !== undefined ? [`?${word}`, ...others.filter(other => other !== word)] : place
}
