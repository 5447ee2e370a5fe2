/** Progress of a long command as one line on stderr, if that is a terminal. */
type Screen = { readonly isTTY?: boolean; write(text: string): unknown }

const barCharacters = 24
const [start, rest] = ['\r', '\u001b[K']

type ProgressLine = {
  draw(): void
  /** Removes the line until it is drawn again, so that other output is readable. */
  clear(): void
  stop(): void
}

/**
 * Draws until `stop` is called. `look` returns what is done and the total (null = unknown), ten times per second. A
 * command that blocks the event loop calls `draw` itself.
 */
export function showProgress(
  what: string,
  look: () => { readonly done: number; readonly of: number | null },
  screen: Screen = process.stderr,
): ProgressLine {
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
