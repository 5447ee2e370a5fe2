import { existsSync } from 'node:fs'

/** The first one has no window: it takes 60 % of the processor time of the others. */
const candidates = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
] as const

/** Returns the path of Chromium; null if it is not installed. `CHROMIUM_PATH` overrides it. */
export function chromiumPath(): string | null {
  const named = process.env.CHROMIUM_PATH
  if (named !== undefined && existsSync(named)) return named
  return candidates.map(name => Bun.which(name)).find(path => path !== null) ?? null
}
