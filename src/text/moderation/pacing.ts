import type { Steps, Verdict } from './text-moderator.ts'

/** Characters moderated per turn of the event loop: less than 20 ms of work, whatever the text. */
export const charactersPerTurn = 16_384

/** Returns a function that runs steps to their verdict and waits for `pause` after each `charactersPerTurn` of all its calls. */
export function createPacer(pause: () => Promise<void>): (steps: Steps) => Promise<Verdict> {
  let characters = 0
  return async steps => {
    let step = steps.next()
    for (; step.done !== true; step = steps.next()) {
      characters += step.value
      if (characters < charactersPerTurn) continue
      characters = 0
      await pause()
    }
    return step.value
  }
}

/** Ends this turn of the event loop. */
export const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))
