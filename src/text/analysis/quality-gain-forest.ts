/**
 * A stored forest of oblivious trees with `depth` levels: each tree compares the same cue at each level for every text.
 */
export type StoredForest = {
  readonly depth: number
  /** The cue compared at each level of each tree: one byte each, in base64. */
  readonly asked: string
  /** Thresholds: single-precision floats. */
  readonly above: string
  /** Value of each leaf in steps of `scale`: 16-bit integers, 2^depth per tree. */
  readonly leaves: string
  readonly scale: number
}

/** Returns the sum of all trees for a text's cues. */
type Forest = (cues: Float64Array) => number

/**
 * Creates a forest that evaluates by cue instead of by tree: the thresholds of a cue are sorted and pass up to the
 * first that fails. Most cues of most texts fail at once.
 */
export function createForest({ depth, asked, above, leaves, scale }: StoredForest): Forest {
  const cueTable = Uint8Array.fromBase64(asked)
  const thresholdTable = new Float32Array(Uint8Array.fromBase64(above).buffer)
  const addends = new Int16Array(Uint8Array.fromBase64(leaves).buffer)
  const questions = Array.from(cueTable.keys()).sort(
    (value, other) =>
      (cueTable[value] ?? 0) - (cueTable[other] ?? 0) || (thresholdTable[value] ?? 0) - (thresholdTable[other] ?? 0),
  )
  const thresholds = Float64Array.from(questions, question => thresholdTable[question] ?? 0)
  const trees = Uint16Array.from(questions, question => Math.floor(question / depth))
  const bits = Uint8Array.from(questions, question => 1 << (question % depth))
  const firsts = getFirsts(questions.map(question => cueTable[question] ?? 0))
  const leafTable = new Uint8Array(cueTable.length / depth)

  return cues => {
    leafTable.fill(0)
    for (let cue = 0; cue + 1 < firsts.length; cue++) {
      const value = cues[cue] ?? 0
      const end = firsts[cue + 1] ?? 0
      for (let question = firsts[cue] ?? 0; question < end && value > (thresholds[question] ?? 0); question++) {
        const tree = trees[question] ?? 0
        leafTable[tree] = (leafTable[tree] ?? 0) | (bits[question] ?? 0)
      }
    }
    let steps = 0
    for (let tree = 0; tree < leafTable.length; tree++) steps += addends[(tree << depth) + (leafTable[tree] ?? 0)] ?? 0
    return steps * scale
  }
}

/** Returns the start of each cue's thresholds, and the end after the last. */
function getFirsts(cues: readonly number[]): Uint16Array {
  const firsts = new Uint16Array(Math.max(...cues) + 2)
  for (let cue = 0; cue < firsts.length; cue++) firsts[cue] = cues.filter(value => value < cue).length
  return firsts
}
