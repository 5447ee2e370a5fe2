/** `serve`, `migrate` and `reload`: the gateway itself, its database and its configuration. */
import { readStoreConfig } from '../config/config.ts'
import { fileSchema } from '../config/config-file.ts'
import { readReloads, type StoredReload } from '../config/reload.ts'
import { describeHolder, findHolder } from '../database/data-folder.ts'
import { CommandFailure, command, json, print, printJson } from './command.ts'
import { withDatabase } from './open-database.ts'

/** Maximum wait for the first result. */
const patienceMs = 15_000
/** Wait for the results of the other workers after the first one. */
const othersMs = 500
const pollMs = 50

const reload = command({
  name: 'reload',
  about:
    'Reload providers, models, plans, routing and moderation, like SIGHUP; an invalid configuration changes nothing',
  operands: {},
  options: { json },
  async run({ options }) {
    const { dataDirectory } = readStoreConfig()
    const holder = findHolder(dataDirectory)
    if (holder === null)
      throw new CommandFailure(
        `No gateway runs on ${dataDirectory}. Set GATEWAY_DATA_DIR to the folder of the gateway.`,
      )
    if (holder.pid === null)
      throw new CommandFailure(`${dataDirectory} is in use by ${describeHolder(holder)}. Run the command there.`)
    const { processes, problems, restart } = await reloadGateway(dataDirectory, holder.pid)
    if (options.json) printJson({ reloaded: problems.length === 0, processes, problems, restart })
    if (problems.length > 0)
      throw new CommandFailure(
        [
          'The configuration is invalid. The gateway keeps the old one:',
          ...problems.map(problem => `  ${problem}`),
        ].join('\n'),
      )
    if (options.json) return
    print(`Configuration reloaded by ${processes} ${processes === 1 ? 'process' : 'processes'}.`)
    if (restart.length > 0) print(`Restart the gateway to apply changes of: ${restart.join(', ')}.`)
  },
})

/** Reloads the gateway with this process ID in all its workers. Throws `CommandFailure` if none of them reports a result. */
export async function reloadGateway(dataDirectory: string, pid: number) {
  const since = Date.now()
  process.kill(pid, 'SIGHUP')
  const results = await reported(dataDirectory, since)
  return { processes: results.length, problems: merged(results, 'problems'), restart: merged(results, 'restart') }
}

async function reported(dataDirectory: string, since: number): Promise<readonly StoredReload[]> {
  const newResults = () => readReloads(dataDirectory).filter(({ at }) => at >= since)
  for (const until = since + patienceMs; newResults().length === 0; await Bun.sleep(pollMs))
    if (Date.now() > until)
      throw new CommandFailure('The gateway did not report a result. See its log: config_reloaded.')
  await Bun.sleep(othersMs)
  return newResults()
}

function merged(results: readonly StoredReload[], field: 'problems' | 'restart'): string[] {
  return [...new Set(results.flatMap(result => result[field]))]
}

const schema = command({
  name: 'config schema',
  about: 'Print the JSON schema of the configuration file, for editors',
  operands: {},
  options: {},
  async run() {
    print(JSON.stringify({ $schema: 'http://json-schema.org/draft-07/schema#', ...fileSchema }, null, 2))
  },
})

export const reloadCommands = [reload, schema]

const serve = command({
  name: 'serve',
  about: 'Run the gateway, like `bun run start`',
  operands: {},
  options: {},
  async run() {
    await (await import('../server/start.ts')).start()
    // The gateway ends the process itself.
    await new Promise<never>(() => {})
  },
})

const migrate = command({
  name: 'migrate',
  about: 'Run migrations (also run at startup)',
  operands: {},
  options: {},
  run: () => withDatabase(async () => print('The database is up to date.'), { mayBegin: true, bringUpToDate: true }),
})

export const serviceCommands = [serve, migrate]
