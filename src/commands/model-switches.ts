/** `models enable`, `disable`, `hosts` and `switches`: what differs from the configuration in every running gateway. */
import { readConfig } from '../config/config.ts'
import { knownModels } from '../config/providers.ts'
import {
  findSwitchProblem,
  listModelSwitches,
  type SwitchChange,
  switchModel,
} from '../console/provider-keys/follow.ts'
import { findOperatorAccount } from '../console/provider-keys/store.ts'
import { publishedEmbeddingModels, toEmbeddingModel } from '../core/models/embedding-models.ts'
import type { Model } from '../core/models/models.ts'
import { formatHostChoices, parseHostChoices } from '../core/models/switches.ts'
import { shellCommand } from '../core/validation/errors.ts'
import { withHosts } from '../models/model-hosts.ts'
import { CommandFailure, command, json, print, printJson, printTable, UsageError } from './command.ts'
import { withDatabase } from './open-database.ts'

const named = { model: '<provider/model>' }

const list = command({
  name: 'models switches',
  about: 'List the models that are switched off or have another order of hosts than configured',
  operands: {},
  options: { json },
  run: ({ options }) =>
    withDatabase(async database => {
      const switches = await listModelSwitches(database)
      if (options.json) return printJson({ data: switches })
      if (switches.length === 0) return print('All models are as configured.')
      printTable([
        ['MODEL', 'STATE', 'HOSTS'],
        ...switches.map(({ model, enabled, hosts }) => [
          model,
          enabled ? 'on' : 'off',
          hosts === null ? 'as configured' : formatHostChoices(hosts),
        ]),
      ])
    }),
})

const enable = command({
  name: 'models enable',
  about: 'Switch a model on again; every gateway process offers it within 1 s',
  operands: named,
  options: { json },
  run: ({ operands: { model }, options }) => change({ model, enabled: true }, options.json, `${model} is on.`),
})

const disable = command({
  name: 'models disable',
  about: 'Switch a model off for all accounts within 1 s; requests in progress finish',
  operands: named,
  options: { json },
  run: ({ operands: { model }, options }) =>
    change({ model, enabled: false }, options.json, `${model} is off: it is neither listed nor called.`),
})

const hosts = command({
  name: 'models hosts',
  about: 'Order the hosts of a model, with weights to share its requests: a,b or a:3,b:1; default = as configured',
  operands: { ...named, hosts: '<HOSTS>' },
  options: { json },
  async run({ operands: { model, hosts: text }, options }) {
    const chosen = text === 'default' ? null : parseHostChoices(text)
    if (chosen === null && text !== 'default')
      throw new UsageError(
        'The hosts must be IDs of providers, with weights or without: openai,azure or openai:3,azure:1',
      )
    const shown = chosen === null ? 'as configured' : formatHostChoices(chosen)
    await change({ model, hosts: chosen }, options.json, `${model}: hosts ${shown}.`)
  },
})

export const modelSwitchCommands = [list, enable, disable, hosts]

async function change(given: SwitchChange, asJson: boolean | undefined, done: string): Promise<void> {
  const problem = findSwitchProblem(switchableModels(given.model), given)
  if (problem !== null) throw new UsageError(`The ${problem[0]} ${problem[1]}.`)
  await withDatabase(async database => {
    const accountId = await findOperatorAccount(database)
    if (accountId === null)
      throw new CommandFailure(`No account is the operator’s. Choose it:  ${shellCommand('accounts operator <email>')}`)
    const row = await switchModel(database, accountId, given)
    if (asJson) printJson(row)
    else print(done)
  })
}

type Switchable = Pick<Model, 'id' | 'provider' | 'hosts'>

/** Returns the models of the configuration; on a server that lists its own models every name may be one. */
function switchableModels(name: string): readonly Switchable[] {
  const config = readConfig()
  const models = [
    ...withHosts(knownModels(config), config.hosts, () => true),
    ...publishedEmbeddingModels,
    ...config.embeddingModels.map(({ provider, row }) => toEmbeddingModel(provider, row)),
  ]
  const server = config.providers.find(({ id, discovers }) => discovers === true && name.startsWith(`${id}/`))
  return server === undefined ? models : [...models, { provider: server.id, id: name.slice(server.id.length + 1) }]
}
