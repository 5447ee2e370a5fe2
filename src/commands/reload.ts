/** `reload`: makes the gateway of this data folder read its configuration again. */
import { readStoreConfig } from '../config/config.ts'
import { describeHolder, holderOf } from '../database/data-folder.ts'
import { readReloads, type StoredReload } from '../server/reload-result.ts'
import { CommandFailure, command, json, print, printJson } from './command.ts'

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
    const holder = holderOf(dataDirectory)
    if (holder === null)
      throw new CommandFailure(
        `No gateway runs on ${dataDirectory}. Set GATEWAY_DATA_DIR to the folder of the gateway.`,
      )
    if (holder.pid === null)
      throw new CommandFailure(`${dataDirectory} is in use by ${describeHolder(holder)}. Run the command there.`)
    const since = Date.now()
    process.kill(holder.pid, 'SIGHUP')
    const results = await reported(dataDirectory, since)
    const [problems, restart] = [merged(results, 'problems'), merged(results, 'restart')]
    if (options.json) printJson({ reloaded: problems.length === 0, processes: results.length, problems, restart })
    if (problems.length > 0)
      throw new CommandFailure(
        ['The configuration is invalid. The gateway keeps the old one:', ...problems.map(one => `  ${one}`)].join('\n'),
      )
    if (options.json) return
    print(`Configuration reloaded by ${results.length} ${results.length === 1 ? 'process' : 'processes'}.`)
    if (restart.length > 0) print(`Restart the gateway to apply changes of: ${restart.join(', ')}.`)
  },
})

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

export const reloadCommands = [reload]
