/** Reads single environment variables. `config.ts` lists them. */
import { readFileSync } from 'node:fs'
import { baseUrlProblem, withoutTrailingSlash } from './addresses.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Readers and validators of environment variables by type. */
export type EnvironmentReader = ReturnType<typeof environmentReader>

/** Creates readers for `environment`. Adds problems to `problems`, one line each, without secrets. */
export function environmentReader(environment: Environment, problems: string[]) {
  const text = (name: string): string | null => environment[name]?.trim() || null
  return {
    text,
    /**
     * Reads a secret from `NAME_FILE` or else `NAME`: a mounted file is safer than the environment, which all child
     * processes inherit.
     */
    secret(name: string): string | null {
      const path = text(`${name}_FILE`)
      if (path === null) return text(name)
      try {
        return readFileSync(path, 'utf8').trim() || null
      } catch {
        problems.push(`${name}_FILE: cannot read ${path}`)
        return null
      }
    },
    integer(name: string, fallback: number, minimum: number, maximum: number): number {
      const raw = text(name)
      if (raw === null) return fallback
      const value = Number(raw)
      if (/^\d+$/.test(raw) && value >= minimum && value <= maximum) return value
      problems.push(`${name}: must be a whole number from ${minimum} to ${maximum}`)
      return fallback
    },
    /** Reads an amount of US dollars with at most eight decimals. */
    usd(name: string, fallback: number, maximum: number): number {
      const raw = text(name)
      if (raw === null) return fallback
      const value = Number(raw)
      if (/^\d+(\.\d{1,8})?$/.test(raw) && value <= maximum) return value
      problems.push(`${name}: must be an amount of US dollars from 0 to ${maximum}, like 1.50`)
      return fallback
    },
    oneOf<const T extends string>(name: string, choices: readonly T[], fallback: T): T {
      const raw = text(name)?.toLowerCase() ?? fallback
      const choice = choices.find(candidate => candidate === raw)
      if (choice !== undefined) return choice
      problems.push(`${name}: must be one of ${choices.join(', ')}`)
      return fallback
    },
    list(name: string): readonly string[] | null {
      const raw = text(name)
      return raw === null
        ? null
        : raw
            .split(',')
            .map(item => item.trim())
            .filter(item => item !== '')
    },
    url(name: string, protocols: readonly string[]): string | null {
      const raw = this.secret(name)
      if (raw === null) return null
      if (URL.canParse(raw) && protocols.includes(new URL(raw).protocol)) return raw
      problems.push(`${name}: must be a ${protocols.map(protocol => `${protocol}//`).join(' or ')} URL`)
      return null
    },
    baseUrl(name: string): string | null {
      const raw = text(name)
      if (raw === null) return null
      const problem = baseUrlProblem(raw)
      if (problem !== null) problems.push(`${name}: ${problem}`)
      return withoutTrailingSlash(raw)
    },
  }
}
