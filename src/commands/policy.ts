/** `rules …` and `constraints …`: who may receive requests of an account, and which model they get. */
import { readConfig } from '../config/config.ts'
import { ruleTargets } from '../config/key-models.ts'
import { knownModels } from '../config/providers.ts'
import { changeSettings } from '../console/auth/stores/users.ts'
import { changeKey } from '../console/keys/stores/key-lineages.ts'
import { listKeys } from '../console/keys/stores/keys.ts'
import { changeProject, listProjects } from '../console/projects/store.ts'
import { constraintsExample, formatConstraints, parseConstraints } from '../core/policy/constraints-text.ts'
import { accountRulesSchema, ruleProblems } from '../core/policy/rules.ts'
import { validate } from '../core/validation/validate.ts'
import { command, json, print, printJson, printTable, readNamedFile, UsageError } from './command.ts'
import { namedKey } from './keys.ts'
import { withAccount } from './open-database.ts'
import { meantProject } from './projects.ts'

const email = '<email>'

const listRules = command({
  name: 'rules list',
  about: "List an account's rules in their order",
  operands: { email },
  options: { json },
  run: ({ operands, options }) =>
    withAccount(operands.email, async (_, { account }) => {
      const rules = account.rules ?? []
      if (options.json) return printJson({ data: rules })
      if (rules.length === 0) return print('No rules.')
      const cells = ({ name, when = {}, ...action }: (typeof rules)[number]) =>
        [name, JSON.stringify(when), JSON.stringify(action)] as const
      printTable([['NAME', 'WHEN', 'THEN'], ...rules.map(cells)])
    }),
})

const setRules = command({
  name: 'rules set',
  about: "Replace an account's rules by those of a JSON file; [] removes all",
  operands: { email, file: '<file>' },
  options: { json },
  run({ operands, options }) {
    const rules = validate(accountRulesSchema, parsed(operands.file))
    const { providers: settings, embeddingModels, ...config } = readConfig()
    const isTarget = ruleTargets({ known: knownModels(config), embeddingModels, settings })
    const [problem] = ruleProblems(rules, isTarget)
    if (problem !== undefined) throw new UsageError(problem)
    return withAccount(operands.email, async (database, { account }) => {
      await changeSettings(database, account.id, { rules })
      if (options.json) printJson({ data: rules })
      else print(`${rules.length} rules. Every gateway process uses them within 1 s.`)
    })
  },
})

const listConstraints = command({
  name: 'constraints list',
  about: "List the constraints of an account, its projects and its keys: those of a request's all hold",
  operands: { email },
  options: { json },
  run: ({ operands, options }) =>
    withAccount(operands.email, async (database, { account }) => {
      const [projects, keys] = [await listProjects(database, account.id, null), await listKeys(database, account.id)]
      const rows = [
        { of: 'account', ...account },
        ...projects.filter(({ archived_at }) => archived_at === null).map(row => ({ of: 'project', ...row })),
        ...keys.filter(({ revokedAt }) => revokedAt === null).map(row => ({ of: 'key', ...row })),
      ].flatMap(({ of, id, name, constraints }) => (constraints === null ? [] : [{ of, id, name, constraints }]))
      if (options.json) return printJson({ data: rows })
      if (rows.length === 0) return print('No constraints.')
      const cells = ({ of, id, name, constraints }: (typeof rows)[number]) =>
        [of, id, name, formatConstraints(constraints)] as const
      printTable([['OF', 'ID', 'NAME', 'CONSTRAINTS'], ...rows.map(cells)])
    }),
})

const setConstraints = command({
  name: 'constraints set',
  about: `Set the constraints of an account, or of a key or project of it: "${constraintsExample}", or none`,
  operands: { email, constraints: '<CONSTRAINTS>' },
  options: {
    key: { type: 'string', value: 'ID|PREFIX|NAME', about: 'of this API key' },
    project: { type: 'string', value: 'ID|NAME', about: 'of this project' },
    json,
  },
  run({ operands, options: { key, project, json: asJson } }) {
    const constraints = operands.constraints === 'none' ? null : parseConstraints(operands.constraints)
    if (constraints === null && operands.constraints !== 'none')
      throw new UsageError(`The constraints must be like "${constraintsExample}", or none.`)
    if (key !== undefined && project !== undefined) throw new UsageError('Use --key or --project, not both.')
    return withAccount(operands.email, async (database, { account: { id: accountId } }) => {
      if (key !== undefined) {
        const { id } = await namedKey(database, accountId, { email: operands.email, key })
        const details = { constraints: JSON.stringify(constraints) }
        await changeKey(database, { accountId, keyId: id, change: { constraints }, details })
      } else if (project !== undefined) {
        const { id } = meantProject(await listProjects(database, accountId, null), project, operands.email)
        await changeProject(database, accountId, id, { constraints })
      } else await changeSettings(database, accountId, { constraints })
      if (asJson) printJson({ constraints })
      else print(constraints === null ? 'No constraints.' : `Constraints: ${formatConstraints(constraints)}`)
    })
  },
})

export const policyCommands = [listRules, setRules, listConstraints, setConstraints]

function parsed(path: string): unknown {
  try {
    return JSON.parse(readNamedFile(path).toString('utf8'))
  } catch (cause) {
    if (cause instanceof SyntaxError) throw new UsageError(`${path} is no JSON: ${cause.message}.`)
    throw cause
  }
}
