import harmWords from './harm-words.json'

/**
 * Groups of related words that the classifier knows beyond its training data, so that a word unseen in training counts
 * like its group. Written by hand. Offensive words are listed because they must be detected.
 *
 * `kill+` also stands for its regular inflections (kills, killed, killing, killer, killers).
 */
export type HarmKind = keyof typeof harmWords
export const harmKinds = Object.keys(harmWords) as readonly HarmKind[]

const endings = ['', 's', 'd', 'ed', 'r', 'er', 'ers', 'rs', 'ing'] as const

/** Returns the words of a kind, with inflections. */
export function wordsOf(kind: HarmKind): readonly string[] {
  return harmWords[kind]
    .join(' ')
    .split(' ')
    .flatMap(word => {
      if (!word.endsWith('+')) return [word]
      const stem = word.slice(0, -1)
      const cut = stem.endsWith('e') ? [`${stem.slice(0, -1)}ing`] : []
      return [...endings.map(ending => stem + ending), ...cut]
    })
}
