import { existsSync } from 'node:fs'

const candidates = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'] as const

/** Where Chromium is; null where there is none on this machine. `CHROMIUM_PATH` names another. */
export function chromiumPath(): string | null {
  const named = process.env.CHROMIUM_PATH
  if (named !== undefined && existsSync(named)) return named
  return candidates.map(name => Bun.which(name)).find(path => path !== null) ?? null
}
