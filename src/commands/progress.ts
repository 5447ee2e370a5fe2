/** How far a long job is, as one line on a terminal's stderr; nothing where stderr is no terminal. */
type Screen = { readonly isTTY?: boolean; write(text: string): unknown }

const barCharacters = 24
const [start, rest] = ['\r', '\u001b[K']

export type Progress = {
  draw(): void
  /** Takes the line away until it is drawn again, so that others can write theirs. */
  clear(): void
  stop(): void
}

/**
 * Draws until `stop`; `look` says how much is done and of how much (null = nobody knows), ten times a second. A job that keeps
 * the loop busy draws for itself, by `draw`.
 */
export function showProgress(
  what: string,
  look: () => { readonly done: number; readonly of: number | null },
  screen: Screen = process.stderr,
): Progress {
  if (screen.isTTY !== true) return { draw() {}, clear() {}, stop() {} }
  const draw = () => {
    const { done, of } = look()
    screen.write(`${start}${what} ${of === null ? done : bar(done, of)}${rest}`)
  }
  const clear = () => void screen.write(start + rest)
  const timer = setInterval(draw, 100)
  timer.unref()
  draw()
  return {
    draw,
    clear,
    stop() {
      clearInterval(timer)
      clear()
    },
  }
}

function bar(done: number, of: number): string {
  const filled = of === 0 ? barCharacters : Math.round((Math.min(done, of) / of) * barCharacters)
  return `[${'#'.repeat(filled)}${'.'.repeat(barCharacters - filled)}] ${done} of ${of}`
}
