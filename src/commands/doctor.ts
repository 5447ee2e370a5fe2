/**
 * `doctor`: checks the configuration, the machine and the stores, and on request calls each provider. It changes
 * nothing: it creates no folder and runs no migration.
 */
import { accessSync, constants, existsSync, statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import packageJson from '../../package.json'
import { type Config, ConfigError, readConfig, readStoreConfig } from '../config/config.ts'
import { withStoredKeys } from '../config/stored-keys.ts'
import { describeError } from '../core/validation/operator-errors.ts'
import { describeHolder, findHolder } from '../database/data-folder.ts'
import { systemNetwork } from '../web/network.ts'
import { bunCheck, type Check, diskCheck, failedCheck, okCheck, setAsideCheck, warningCheck } from './checks.ts'
import { CommandFailure, columns, command, json, print, printJson } from './command.ts'

const doctor = command({
  name: 'doctor',
  about: 'Check configuration, stores, clocks, disk and versions (exit code 1 on an error)',
  operands: {},
  options: {
    providers: { type: 'boolean', about: 'send one short request to each provider; costs less than $0.01 each' },
    json,
  },
  async run({ options }) {
    const checks = await allChecks(options.providers === true)
    const count = (state: Check['state']) => checks.filter(check => check.state === state).length
    const [errors, warnings] = [count('error'), count('warning')]
    if (options.json) printJson({ checks, errors, warnings })
    else
      print(
        ...checks.flatMap(getLines(checks)),
        '',
        `${checks.length} checks: ${counted(errors, 'error')}, ${counted(warnings, 'warning')}.`,
      )
    if (errors > 0) throw new CommandFailure(`${errors} of ${checks.length} checks failed; see above.`)
  },
})

export const doctorCommands = [doctor]

async function allChecks(callsProviders: boolean): Promise<readonly Check[]> {
  const checks: Check[] = [
    okCheck('gateway-ai', packageJson.version),
    bunCheck(Bun.version, packageJson.engines.bun),
    ...(await folderChecks()),
  ]
  const config = configuration(checks)
  const { embeddedChecks, postgresChecks, redisChecks } = await import('./store-checks.ts')
  const found = stores()
  checks.push(
    ...(found === null || found.databaseUrl === null
      ? await embeddedChecks(isRunning())
      : await postgresChecks(found.databaseUrl, found.serviceDeadlines)),
  )
  if (config === null) return checks
  if (config.redisUrls.length > 0) checks.push(...(await redisChecks(config.redisUrls, config.serviceDeadlines)))
  if (config.mail !== null) checks.push(await mailCheck(config.mail.smtpUrl, config.serviceDeadlines.commandConnectMs))
  const { providerChecks } = await import('./provider-checks.ts')
  // Reading them must change nothing: not create a schema, nor open an embedded database.
  const isReadable = checks.some(({ name, state }) => name === 'migrations' && state === 'ok')
  const { readStoredKeys } = await import('./provider-keys.ts')
  const keys = isReadable ? await readStoredKeys().catch(() => []) : []
  for (const { provider, name, apiKey } of keys)
    if (apiKey === null)
      checks.push(
        failedCheck(
          `provider ${provider}`,
          `its stored key "${name}" was sealed under another secret`,
          'Restore JWT_SECRET or session-secret, or rotate the key.',
        ),
      )
  return [...checks, ...(await providerChecks(withStoredKeys(config, keys), callsProviders))]
}

/** Adds the check of the configuration. Returns null if it is wrong. */
function configuration(checks: Check[]): Config | null {
  try {
    const config = readConfig()
    checks.push(okCheck('configuration', `valid; catalog of ${config.catalogDate}`))
    checks.push(okCheck('registration', registrationTexts[config.registration.mode]))
    for (const text of config.warnings) checks.push(warningCheck('configuration', text, 'See docs/configuration.md.'))
    return config
  } catch (cause) {
    const problems = cause instanceof ConfigError ? cause.problems : [describeError(cause)]
    for (const problem of problems)
      checks.push(failedCheck('configuration', problem, 'Correct it: the gateway does not start.'))
    return null
  }
}

const registrationTexts = {
  open: 'open: anyone can create an account',
  closed: 'closed: the operator creates accounts, and their owners and admins invite users',
} as const

async function folderChecks(): Promise<Check[]> {
  const found = stores()
  if (found === null) return []
  const folder = resolve(found.dataDirectory)
  const existing = existingFolder(folder)
  const name = 'data folder'
  const running = findHolder(folder)
  return [
    isWritable(existing)
      ? okCheck(
          name,
          running === null ? `${folder}; no gateway runs on it` : `${folder}; in use by ${describeHolder(running)}`,
        )
      : failedCheck(
          name,
          `${existing} is not writable`,
          'Give the user of the gateway write access, or set GATEWAY_DATA_DIR.',
        ),
    diskCheck(existing, getFreeBytes(existing)),
    setAsideCheck(await recordsAside(folder)),
  ]
}

/** Returns the number of usage records in a data folder that Postgres rejects. */
async function recordsAside(folder: string): Promise<number> {
  const { journalFolders } = await import('./usage-reports.ts')
  const { journalSource } = await import('../ledger/reconcile/sources.ts')
  const found = await Promise.all(journalFolders(folder).map(journal => journalSource(journal).read()))
  return found.reduce((sum, { refused }) => sum + refused.length, 0)
}

/** The configuration's check reports what is wrong with it. */
function stores() {
  try {
    return readStoreConfig()
  } catch {
    return null
  }
}

function isRunning(): boolean {
  const found = stores()
  return found !== null && findHolder(found.dataDirectory) !== null
}

function existingFolder(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : existingFolder(dirname(folder))
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

function getFreeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

async function mailCheck(smtpUrl: string, reachMs: number): Promise<Check> {
  const { protocol, hostname, port } = new URL(smtpUrl)
  const at = `${hostname}:${port || (protocol === 'smtps:' ? 465 : 587)}`
  return (await systemNetwork.reaches(`http://${at}`, reachMs))
    ? okCheck('mail server', `${at} accepts connections; no email was sent`)
    : failedCheck('mail server', `${at} does not accept connections`, 'Check SMTP_URL and the firewall.')
}

/** Formats a check as its line, and its action below. */
const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`

function getLines(checks: readonly Check[]) {
  const rows = columns(checks.map(({ state, name, detail }) => [state, name, detail]))
  return ({ action }: Check, index: number): readonly string[] =>
    action === null ? [rows[index] ?? ''] : [rows[index] ?? '', `         → ${action}`]
}
