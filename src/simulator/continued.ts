/** How a simulated model goes on with a text that was cut: it repeats the last words, as the gateway asks it to. */
import instructions from '../core/chat/continuations.json'

/** Returns the last words that the gateway asks to continue from; null = it asks something else. */
export function readLastWords(asked: string): string | null {
  for (const instruction of Object.values(instructions)) {
    const [before = '', after = ''] = instruction.split('{words}')
    if (asked.startsWith(before) && asked.endsWith(after))
      return asked.slice(before.length, asked.length - after.length)
  }
  return null
}

/** Repeats the words, and goes on as the text does. Another model wrote its own name at the beginning. */
export function continueFrom(text: string, before: string, words: string): string {
  const said = before.trimEnd()
  if (text.startsWith(said)) return words + text.slice(said.length)
  const name = /^\[simulated [^\]]*/
  return words + text.replace(name, '').slice(said.replace(name, '').length)
}
