/** The safety layers for a test: real ones, on a network and a clock that the test hands in. */
import { readConfig } from '../../src/config.ts'
import type { ModerationDeps } from '../../src/safety/classifier.ts'
import { createSafety, type Safety } from '../../src/safety/safety.ts'
import type { SafetySettings } from '../../src/safety/settings.ts'

const nobody = () => Promise.reject(new Error('nobody is asked'))

export function safetyFor(settings: Partial<SafetySettings> = {}, deps: Partial<ModerationDeps> = {}): Safety {
  return createSafety(
    {
      fetch: nobody,
      monotonic: () => 0,
      after: () => () => {},
      log: { info() {}, warn() {} },
      complete: nobody,
      ...deps,
    },
    { ...readConfig({}).safety, ...settings },
  )
}
