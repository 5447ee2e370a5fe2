/**
 * Operators' regular expressions as one automaton (RE2): a text is read once for all of them, in time linear in its
 * length for any expression and text. Ignores case, and a dot matches line breaks too. Instructions are bounded, per
 * expression and in sum: where the automaton outgrows its memory, each of them may cost a step per character.
 */

export type ExpressionSet = {
  /** Returns the numbers of the expressions that match, in order. */
  match(text: string): readonly number[]
}

/** Compiles expressions, numbered as given. Throws an Error with the reason if one is rejected. */
export function compileExpressions(sources: readonly string[]): ExpressionSet {
  // Loaded with the first expression: most gateways have none, and parsing the library takes as long as 10 ms.
  const { RE2JS, RE2Set } = require('re2js') as typeof import('re2js')
  const flags = RE2JS.CASE_INSENSITIVE | RE2JS.DOTALL
  const set = new RE2Set(RE2Set.UNANCHORED, flags)
  let instructions = 0
  for (const source of sources) {
    const size = RE2JS.compile(source, flags).programSize()
    instructions += size
    if (size > mostInstructions)
      throw new TypeError(`the expression is too large (in "${source}"); make repetitions shorter or fewer`)
    if (instructions > mostInstructionsTogether)
      throw new TypeError('all expressions together are too large; make them fewer, or repetitions shorter')
    set.add(source)
  }
  set.compile()
  return set
}

const mostInstructions = 1_000
const mostInstructionsTogether = 5_000
