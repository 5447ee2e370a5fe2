/** `accounts list`: all accounts of the database. */
import { readPlans } from '../config/config.ts'
import { getLimits, listAccounts } from '../database/repositories/accounts.ts'
import { shellCommand } from '../server/banner.ts'
import { columns, command, json, print, printJson } from './command.ts'
import { withDatabase } from './open-database.ts'

export const listing = command({
  name: 'accounts list',
  about: 'List all accounts, oldest first',
  operands: {},
  options: { json },
  run: ({ options }) =>
    withDatabase(async database => {
      const plans = readPlans()
      const listed = await listAccounts(database)
      if (options.json)
        return printJson({
          data: listed.map(({ account, email, members }) => ({
            id: account.id,
            email,
            plan: account.plan,
            members,
            requests_per_minute: getLimits(account, plans).requestsPerMinute,
            created_at: account.createdAt.toISOString(),
          })),
        })
      if (listed.length === 0)
        return print(`No accounts. Create one:  ${shellCommand('accounts create you@example.com')}`)
      print(
        ...columns([
          ['ID', 'OWNER', 'PLAN', 'MEMBERS', 'RPM', 'CREATED'],
          ...listed.map(({ account, email, members }) => [
            account.id,
            email,
            account.plan,
            String(members),
            String(getLimits(account, plans).requestsPerMinute),
            account.createdAt.toISOString().slice(0, 10),
          ]),
        ]),
      )
    }),
})
