/** `accounts delete` and `users anonymize`: what a data-protection request asks of the operator. */
import { anonymizeUser, deleteAccount } from '../console/account/store.ts'
import { CommandFailure, command, json, newId, print, printJson, UsageError } from './command.ts'
import { withAccount } from './open-database.ts'

const email = '<email>'
const yes = { type: 'boolean', about: 'confirm it; this cannot be undone' } as const

const deletion = command({
  name: 'accounts delete',
  about:
    'Delete the account of a user, with all its users, keys and personal data; usage and invoices stay without names',
  operands: { email },
  options: { yes, json },
  run: ({ operands, options }) => {
    if (options.yes !== true) throw new UsageError(unconfirmed('accounts delete', operands.email))
    return withAccount(operands.email, async (database, { account }) => {
      if (!(await deleteAccount(database, account.id, parts()))) throw new CommandFailure('The account was deleted.')
      if (options.json) printJson({ id: account.id, deleted: true })
      else
        print(`${account.id}: deleted. Keys end within 1 s. A running billing cycle is invoiced 15 minutes from now.`)
    })
  },
})

const anonymization = command({
  name: 'users anonymize',
  about: 'End the access of one user and blank everything that names the user; an account without users is deleted',
  operands: { email },
  options: { yes, json },
  run: ({ operands, options }) => {
    if (options.yes !== true) throw new UsageError(unconfirmed('users anonymize', operands.email))
    return withAccount(operands.email, async (database, { account, user }) => {
      const successor = await anonymizeUser(database, { accountId: account.id, userId: user.id }, parts())
      if (successor === null) throw new CommandFailure('The user was removed concurrently.')
      const isDeleted = successor === 'account_deleted'
      const owner = typeof successor === 'string' ? null : successor.ownerId
      if (options.json)
        return printJson({ user_id: user.id, account_id: account.id, account_deleted: isDeleted, new_owner_id: owner })
      print(`${user.id}: anonymized. Keys end within 1 s.`)
      if (isDeleted) print(`${account.id}: deleted, since it has no other user.`)
      if (owner !== null) print(`${owner}: owner of ${account.id} now, since it had no other owner.`)
    })
  },
})

export const eraseCommands = [deletion, anonymization]

const unconfirmed = (name: string, address: string) => `This cannot be undone. To confirm: ${name} ${address} --yes`
const parts = () => ({ at: Date.now(), newId })
